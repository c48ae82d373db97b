package linear

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	hmat "github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// drawnRows returns rows of every kind that is hard for sums in float32: columns of any scale, some constant, zero,
// nearly so, or the same as another one; the first is the constant 1.
func drawnRows(t *rapid.T, n, d int) hmat.Dense {
	x, key := hmat.New(n, d), rng.New(rapid.Uint64().Draw(t, "seed"))
	for j := range d {
		kind, scale := rapid.IntRange(0, 5).Draw(t, "kind"),
			math.Exp2(float64(rapid.IntRange(-30, 30).Draw(t, "scale")))
		for i := range n {
			v := key.Fold(uint64(j)).Normal(uint64(i))
			switch {
			case j == 0 || kind == 0:
				v = 1
			case kind == 1:
				v = 0
			case kind == 2:
				v = 1000 + v*1e-4
			case kind == 3 && j > 1:
				v = float64(x.At(i, j-1))
			}
			if j > 0 && kind != 3 {
				v *= scale
			}
			x.Set(i, j, float32(v))
		}
	}
	return x
}

// blur moves the products of columns from k.From on by the largest error that k allows.
func blur(sums []float32, d, c int, k Joint) {
	at, diagonal := 0, make([]float64, d)
	for i := range d {
		for j := range i + 1 {
			if i == j {
				diagonal[i] = float64(sums[at])
			}
			if i >= k.From && i > 0 {
				most := 0.99 * k.Apart
				if j < k.From {
					most *= math.Sqrt2 * math.Sqrt(diagonal[j]/k.Weight)
				}
				sums[at] += float32(most * (2*rng.New(3).Float64(uint64(at)) - 1))
			}
			at++
		}
	}
	for ; at < len(sums); at++ {
		if row := (at - d*(d+1)/2) / c; row >= k.From && row > 0 {
			sums[at] += float32(0.99 * k.Apart * (2*rng.New(3).Float64(uint64(at)) - 1))
		}
	}
}

// TestJointIsNoAlarm: the normal equations of any rows pass, also as sums in fixed point have them.
func TestJointIsNoAlarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d, c := rapid.IntRange(3, 200).Draw(t, "n"), rapid.IntRange(1, 12).Draw(t, "d"),
			rapid.IntRange(1, 4).Draw(t, "c")
		x, y, weight := drawnRows(t, n, d), hmat.New(n, c), make([]float32, n)
		k := Joint{Rows: float64(n), Squares: make([]float64, c), Exclusive: rapid.Bool().Draw(t, "exclusive")}
		of := make([]float32, c)
		for i := range of {
			of[i] = float32(math.Exp2(float64(rapid.IntRange(-8, 8).Draw(t, "weight"))))
		}
		if k.Numbers = !k.Exclusive && n > 1 && rapid.Bool().Draw(t, "numbers"); k.Numbers {
			standardNumbers(y)
		}
		for i := range n {
			if k.Numbers {
				weight[i] = 1
				k.Weight++
				for o, v := range y.Row(i) {
					k.Squares[o] += float64(v) * float64(v)
				}
				continue
			}
			class := rapid.IntRange(0, c-1).Draw(t, "class")
			y.Set(i, class, 1)
			if weight[i] = of[class]; !k.Exclusive {
				weight[i] = 1
				y.Set(i, (class+i)%c, 1)
			}
			k.Weight += float64(weight[i])
			for o, v := range y.Row(i) {
				k.Squares[o] += float64(weight[i]) * float64(v)
			}
		}
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		var parts [2][]float32
		for p, rows := range [2][2]int{{0, cut}, {cut, n}} {
			parts[p] = Part(x.RowRange(rows[0], rows[1]), d, y.RowRange(rows[0], rows[1]), weight[rows[0]:rows[1]])
		}
		sums := slices.Clone(parts[0])
		for i, v := range parts[1] {
			sums[i] += v
		}
		if rapid.Bool().Draw(t, "fixed point") {
			k.Apart = k.Weight * math.Exp2(float64(-rapid.IntRange(5, 30).Draw(t, "apart")))
			k.From = rapid.IntRange(0, 1).Draw(t, "from") * (d - 1)
			blur(sums, d, c, k)
		}
		all, err := Normal{}.Extend(sums, d, c)
		if err != nil {
			t.Fatal(err)
		}
		for p, rows := range [2][2]int{{cut, n}, {0, cut}} {
			own, err := Normal{}.Extend(parts[p], d, c)
			if err != nil {
				t.Fatal(err)
			}
			k.Rest = make([]float64, c)
			for i := rows[0]; i < rows[1]; i++ {
				for o, v := range y.Row(i) {
					// of zeros and ones the same without the square
					k.Rest[o] += float64(weight[i]) * float64(v) * float64(v)
				}
			}
			if err := all.Check(t.Context(), own, k); err != nil {
				t.Fatalf("own rows %v of %d: %v", rows, n, err)
			}
		}
	})
}

// standardNumbers fills columns with numbers whose mean is 0 and whose deviation is 1.
func standardNumbers(y hmat.Dense) {
	for o := range y.Cols {
		mean, square := 0.0, 0.0
		for i := range y.Rows {
			v := rng.New(7).Fold(uint64(o)).Normal(uint64(i))
			mean, square = mean+v/float64(y.Rows), square+v*v/float64(y.Rows)
		}
		for i := range y.Rows {
			v := rng.New(7).Fold(uint64(o)).Normal(uint64(i))
			y.Set(i, o, float32((v-mean)/math.Sqrt(square-mean*mean)))
		}
	}
}

// TestRestIsNoAlarm: statistics and class sums of any rows pass.
func TestRestIsNoAlarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, f, c := rapid.IntRange(2, 60).Draw(t, "n"), rapid.IntRange(1, 9).Draw(t, "f"),
			rapid.IntRange(1, 3).Draw(t, "c")
		x := drawnRows(t, n, f)
		r := Rest{Length: math.Inf(1)}
		if rapid.Bool().Draw(t, "normalised") {
			r.Length = 1
			for i := range n {
				row, length := x.Row(i), 0.0
				for _, v := range row {
					length += float64(v) * float64(v)
				}
				for j := range row {
					row[j] = float32(float64(row[j]) / math.Sqrt(max(length, math.SmallestNonzeroFloat32)))
				}
			}
		}
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		own, rest := new(Means), new(Means)
		ownX, restX := graph.Features{Dense: x.RowRange(0, cut)}, graph.Features{Dense: x.RowRange(cut, n)}
		every := func(n int) (all []int32) {
			for i := range n {
				all = append(all, int32(i))
			}
			return all
		}
		mine, others := Statistics(ownX, every(cut)), Statistics(restX, every(n-cut))
		r.Rows = float64(n - cut)
		limit := r.StatisticsLimit()
		sums := mine.Clone()
		for i, v := range others.Data {
			sums.Data[i] += v
			if l := limit(i); !(float64(v) >= l.Least && float64(v) <= l.Most) {
				t.Fatalf("%s, at %d: %g, limit %+v", l.What, i, v, l)
			}
		}
		if err := r.Learn(sums, mine, nil); err != nil {
			t.Fatal(err)
		}
		own.Agree(sums, float64(n), 0.5)
		rest.Agree(sums, float64(n), 0.5)
		p, counts := hmat.New(n, c), make([]float64, c)
		for i := range n {
			class := rapid.IntRange(0, c-1).Draw(t, "class")
			p.Set(i, class, float32(1-2*(i%2)))
			if i >= cut {
				counts[class]++
			}
		}
		a, b := own.Sums(ownX, p.RowRange(0, cut)), rest.Sums(restX, p.RowRange(cut, n))
		limit, sums = r.SumsLimit(own, counts, c, 1), a.Clone()
		for i, v := range b.Data {
			sums.Data[i] += v
			if l := limit(i); !(float64(v) >= l.Least && float64(v) <= l.Most) {
				t.Fatalf("%s, at %d: %g, limit %+v", l.What, i, v, l)
			}
		}
		if err := r.CheckSums(own, sums, a, counts, 1, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestJointRefuses: equations of no rows are refused, each for what is wrong with them.
func TestJointRefuses(t *testing.T) {
	x, y := hmat.New(40, 3), hmat.New(40, 2)
	for i := range 40 {
		x.Set(i, 0, 1)
		x.Set(i, 1, float32(rng.New(1).Normal(uint64(i))))
		x.Set(i, 2, float32(rng.New(2).Normal(uint64(i))))
		y.Set(i, i%2, 1)
	}
	weight := slices.Repeat([]float32{1}, 40)
	part := func(lo, hi int) []float32 {
		return Part(x.RowRange(lo, hi), 3, y.RowRange(lo, hi), weight[lo:hi])
	}
	own, err := Normal{}.Extend(part(0, 20), 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	// Sums: 11, 21 22, 31 32 33 of the Gram matrix, then two products a column.
	for name, change := range map[string]func(s []float32){
		"the weights of all training nodes must add up to 40 (got 41)": func(s []float32) { s[0]++ },
		"the labels of class 1 must add up to 20 (got 25)":             func(s []float32) { s[7] += 5 },
		"the products of column 1 with all labels must add up to":      func(s []float32) { s[8] += 5 },
		"the Gram matrix's diagonal at the other peers must be at least 0": func(s []float32) {
			s[2] = part(0, 20)[2] - 1
		},
		"the Gram matrix of the other peers must be positive semidefinite": func(s []float32) { s[4] += 60 },
		"the columns of the other peers must explain at most 10 of class 0 (got 2": func(s []float32) {
			s[8], s[9] = s[8]+20, s[9]-20
		},
	} {
		s := part(0, 40)
		change(s)
		all, err := Normal{}.Extend(s, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		k := Joint{Rows: 40, Weight: 40, Squares: []float64{20, 20}, Rest: []float64{10, 10}, Exclusive: true}
		if err := all.Check(t.Context(), own, k); !errors.Is(err, comm.ErrRefused) || len(err.Error()) < len(name) ||
			err.Error()[:len(name)] != name {
			t.Errorf("%v, must be %q", err, name)
		}
	}
}
