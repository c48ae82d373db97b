package graph

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/rng"
)

// TestUnionOfAnyTwo deals out the edges of a graph and puts them together again.
func TestUnionOfAnyTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := &CSR{NumDst: rapid.IntRange(0, 6).Draw(t, "destinations"),
			NumSrc: rapid.IntRange(0, 9).Draw(t, "sources"), RowPtr: []int64{0}}
		weighted := rapid.Bool().Draw(t, "weighted")
		if weighted {
			whole.Weight = []float32{}
		}
		side := [2]*CSR{}
		for k := range side {
			side[k] = &CSR{NumDst: whole.NumDst, NumSrc: whole.NumSrc, RowPtr: []int64{0},
				Weight: slices.Clone(whole.Weight)}
		}
		for range whole.NumDst {
			for j := range int32(whole.NumSrc) {
				k := rapid.IntRange(0, 2).Draw(t, "side")
				if k == 2 {
					continue
				}
				for _, g := range []*CSR{whole, side[k]} {
					if g.Col = append(g.Col, j); weighted {
						g.Weight = append(g.Weight, float32(len(whole.Col)))
					}
				}
			}
			for _, g := range []*CSR{whole, side[0], side[1]} {
				g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
			}
		}
		got := Union(side[0], side[1])
		if err := got.Valid(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.RowPtr, whole.RowPtr) || !slices.Equal(got.Col, whole.Col) ||
			!slices.Equal(got.Weight, whole.Weight) {
			t.Fatalf("%v and %v make %v, want %v", side[0], side[1], got, whole)
		}
	})
}

func TestUnionOfWeightedAndNot(t *testing.T) {
	a := &CSR{NumDst: 1, NumSrc: 3, RowPtr: []int64{0, 2}, Col: []int32{0, 2}}
	b := &CSR{NumDst: 1, NumSrc: 3, RowPtr: []int64{0, 1}, Col: []int32{1}, Weight: []float32{5}}
	if got := Union(a, b); !slices.Equal(got.Weight, []float32{1, 5, 1}) {
		t.Errorf("weights %v, want 1 5 1", got.Weight)
	}
}

// TestFactorsMakeTheWeights: the weights of Normalise are products of what the two ends have.
func TestFactorsMakeTheWeights(t *testing.T) {
	const n = 30
	key := rng.New(4)
	g := &CSR{NumDst: n, NumSrc: n, RowPtr: []int64{0}}
	for i := range int32(n) {
		for j := range int32(n) {
			if i != j && i%7 != 0 && key.Float64(uint64(i*n+j)) < 0.2 { // every seventh has no edge
				g.Col, g.Weight = append(g.Col, j), append(g.Weight, float32(key.Fold(1).Float64(uint64(i*n+j))))
			}
		}
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	degree := g.Degrees()
	for _, norm := range []Norm{Plain, Loops, GCN, Mean} {
		dst, src := Factors(degree, norm)
		of := func(f []float64, i int) float64 {
			if f == nil {
				return 1
			}
			return f[i]
		}
		normed, edges := Normalise(g, degree, norm), 0
		for i := range n {
			raw := map[int32]float32{}
			col, weight := g.Row(i)
			for k, j := range col {
				raw[j] = weight[k]
			}
			col, weight = normed.Row(i)
			for k, j := range col {
				w, ok := raw[j]
				if !ok {
					continue // a loop that norm adds
				}
				edges++
				if want := float64(w) * of(dst, i) * of(src, int(j)); math.Abs(float64(weight[k])-want) > 1e-6*want {
					t.Errorf("norm %d: edge (%d, %d) weighs %g, the factors make %g", norm, j, i, weight[k], want)
				}
			}
		}
		if edges != len(g.Col) {
			t.Errorf("norm %d: %d edges seen, want %d", norm, edges, len(g.Col))
		}
	}
}
