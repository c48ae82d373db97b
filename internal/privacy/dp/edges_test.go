package dp

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

func edges(t *testing.T, g Guarantee, releases int) *PrivateEdges {
	t.Helper()
	e, err := NewEdges(g, releases, [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// adjacency returns the graph of undirected edges among n nodes.
func adjacency(n int, pairs [][2]int) *graph.CSR {
	var from, to []int32
	for _, p := range pairs {
		from, to = append(from, int32(p[0]), int32(p[1])), append(to, int32(p[1]), int32(p[0]))
	}
	adj := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	for i := range n {
		for j := range n {
			for k := range from {
				if int(to[k]) == i && int(from[k]) == j {
					adj.Col = append(adj.Col, int32(j))
				}
			}
		}
		adj.RowPtr[i+1] = int64(len(adj.Col))
	}
	return adj
}

func ids(n int) (all []int64) {
	for i := range n {
		all = append(all, int64(i))
	}
	return all
}

// Removing any edge of a graph changes all its sums together by √2 at most, in units of a row's length,
// whatever the rows were before Bound; and rows that point one way reach it.
func TestSensitivity(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := edges(t, Guarantee{4, 1e-5}, 2)
	worst := 0.0
	for try := range 300 {
		n, width := 2+r.IntN(7), 1+r.IntN(6)
		var pairs [][2]int
		for i := range n {
			for j := range i + 1 { // with loops
				for range max(0, r.IntN(4)-1) { // some of them twice
					pairs = append(pairs, [2]int{i, j})
				}
			}
		}
		rows := mat.New(n, width)
		for k := range rows.Data {
			rows.Data[k] = float32(math.Ldexp(r.NormFloat64(), r.IntN(8)-2))
			if try%7 == 0 {
				rows.Data[k] = 1e30
			}
		}
		e.Bound(rows)
		sums := func(adj *graph.CSR) (all []int64) {
			for i := range n {
				one := make([]int64, width)
				neighbours(one, adj, i, rows)
				all = append(all, one...)
			}
			return all
		}
		with := sums(adjacency(n, pairs))
		for _, gone := range pairs {
			var rest [][2]int
			for _, p := range pairs {
				if p != gone {
					rest = append(rest, p)
				}
			}
			square := 0.0
			for k, v := range sums(adjacency(n, rest)) {
				square += float64(v-with[k]) * float64(v-with[k])
			}
			worst = max(worst, math.Sqrt(square)/float64(e.bound))
		}
	}
	if worst > math.Sqrt2 || worst < math.Sqrt2*0.999 {
		t.Errorf("the sensitivity must be √2 (got %.6f)", worst)
	}
}

// A row of any length, direction and content becomes one that a release accepts, and a unit row loses at most a step of
// the grid in each number.
func TestBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, epsilon := range []float64{0.05, 1, 4, 100} {
		e := edges(t, Guarantee{epsilon, 1e-5}, 1)
		for range 2000 {
			rows := mat.New(1, 1+r.IntN(20))
			scale := math.Ldexp(1, r.IntN(40)-20)
			for k := range rows.Data {
				rows.Data[k] = float32(scale * r.NormFloat64())
			}
			before := rows.Clone()
			e.Bound(rows)
			if !e.takes(rows.Data) {
				t.Fatalf("ε %g: a release does not take %v", epsilon, rows.Data)
			}
			length := 0.0
			for _, v := range before.Data {
				length = math.Hypot(length, float64(v))
			}
			for k, v := range before.Data {
				exact := float64(v) / max(1, length) * float64(e.bound)
				if d := float64(rows.Data[k]) - exact; math.Abs(d) > 2.001 ||
					math.Abs(float64(rows.Data[k])) > math.Abs(exact)+1e-3 {
					t.Fatalf("ε %g: %g steps became %g", epsilon, exact, rows.Data[k])
				}
			}
		}
		odd := mat.View(3, 2, []float32{float32(math.NaN()), 1, float32(math.Inf(1)), 0, 0, 0})
		e.Bound(odd)
		for _, v := range odd.Data {
			if v != 0 {
				t.Errorf("a row that is not finite must become zeros (got %v)", odd.Data)
			}
		}
	}
}

// An audit: 2,000 releases of two graphs that differ in one edge, told apart by the likelihood ratio.
// The lower bound on μ that the rates of error give (Nasr et al., USENIX Security 2023, §4) must stay
// below what is claimed, and come near it; with noise of half the deviation it must exceed the claim,
// or this test could not fail.
func TestAudit(t *testing.T) {
	const draws = 2000
	claim := Guarantee{4, 1e-5}
	audit := func(halved bool) (least float64) {
		e := edges(t, claim, 1)
		if halved {
			e.bound *= 2
		}
		rows := mat.View(3, 2, []float32{1, 0, 0, 1, 0.6, 0.8})
		e.Bound(rows)
		kept := [][2]int{{0, 2}, {1, 2}}
		without, with := adjacency(3, kept), adjacency(3, append(kept, [2]int{0, 1}))
		ratio := func(adj *graph.CSR, seed uint64) float64 {
			e.done = map[string]mat.Dense{}
			e.secret = [32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}
			sums, err := e.Release("audit", adj, ids(3), rows)
			if err != nil {
				t.Fatal(err)
			}
			exact, at := make([]int64, 2), 0.0
			for _, end := range []int{0, 1} { // against the sums without the edge, along the other end's row
				neighbours(exact, without, end, rows)
				for k := range exact {
					at += (float64(sums.At(end, k)) - float64(exact[k])/float64(e.bound)) * float64(rows.At(1-end, k)) /
						float64(e.bound)
				}
			}
			return at
		}
		hits, alarms := 0, 0
		for k := range uint64(draws) {
			if ratio(with, 2*k) > 1 { // both ends add a row of length 1: between 0 and 2
				hits++
			}
			if ratio(without, 2*k+1) > 1 {
				alarms++
			}
		}
		low, _ := wilson(hits, draws)
		_, high := wilson(alarms, draws)
		return quantile(low) - quantile(high)
	}
	if mu := audit(false); Gaussian(mu).Epsilon(claim.Delta) > claim.Epsilon {
		t.Errorf("the audit finds ε ≥ %.2f, claimed is %g", Gaussian(mu).Epsilon(claim.Delta), claim.Epsilon)
	} else if got := Gaussian(mu).Epsilon(claim.Delta); got < 0.75*claim.Epsilon {
		t.Errorf("the audit finds no more than ε ≥ %.2f of %g: it is too weak to mean anything", got, claim.Epsilon)
	} else {
		t.Logf("claimed ε %g, audited ε ≥ %.2f", claim.Epsilon, got)
	}
	if got := Gaussian(audit(true)).Epsilon(claim.Delta); got <= claim.Epsilon {
		t.Errorf("with half the noise the audit finds ε ≥ %.2f only", got)
	} else {
		t.Logf("with half the noise audited ε ≥ %.2f", got)
	}
}

// wilson returns Wilson's interval of a rate, of 2.5 deviations to each side.
func wilson(of, n int) (low, high float64) {
	const z = 2.5
	p, m := float64(of)/float64(n), float64(n)
	centre, half := (p+z*z/(2*m))/(1+z*z/m), z/(1+z*z/m)*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return centre - half, centre + half
}

// quantile returns Φ⁻¹(p).
func quantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// A run spends its guarantee, up to the rounding of the grid, for any number of releases.
func TestSpent(t *testing.T) {
	for _, g := range []Guarantee{{0.1, 1e-6}, {1, 1e-5}, {4, 1e-5}, {100, 1e-9}} {
		for _, releases := range []int{1, 2, 7} {
			e := edges(t, g, releases)
			if got := e.Spent().Epsilon(g.Delta); got > g.Epsilon || got < 0.95*g.Epsilon {
				t.Errorf("%+v, %d releases: spent ε %g", g, releases, got)
			}
		}
	}
	for _, c := range []struct {
		g        Guarantee
		releases int
		want     string
	}{
		{Guarantee{0, 1e-5}, 1, "epsilon must be above 0"},
		{Guarantee{math.NaN(), 1e-5}, 1, "epsilon must be above 0"},
		{Guarantee{101, 1e-5}, 1, "at most 100"},
		{Guarantee{1, 0}, 1, "delta must be above 0"},
		{Guarantee{1, 1}, 1, "delta must be above 0"},
		{Guarantee{1e-3, 1e-9}, 2, "too small for 2 sums"},
		{Guarantee{1, 1e-5}, 0, "at least 1"},
	} {
		if _, err := NewEdges(c.g, c.releases, [32]byte{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %d releases: %v, must be %q", c.g, c.releases, err, c.want)
		}
	}
}

// A release samples its noise once, whatever its rows are the second time. Another name, node or secret has other
// noise. Only the first release spends, and not if that fails.
func TestReleaseIsDrawnOnce(t *testing.T) {
	adj := adjacency(4, [][2]int{{0, 1}, {2, 3}})
	e := edges(t, Guarantee{4, 1e-5}, 2)
	full := errors.New("spent")
	calls := 0
	e.Spend = func(s train.Privacy) error {
		calls++
		if s.Unit != "edge" || s.Epsilon != 4 || s.Releases != 2 || s.Noise < 1.5 {
			t.Errorf("%+v", s)
		}
		return full
	}
	rows := mat.View(4, 1, []float32{1, 1, 1, 1})
	e.Bound(rows)
	if _, err := e.Release("one", adj, ids(4), rows); !errors.Is(err, full) || len(e.Releases()) != 0 {
		t.Errorf("%v, %d releases", err, len(e.Releases()))
	}
	full = nil
	one, err := e.Release("one", adj, ids(4), rows)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Release("one", adj, ids(4), mat.New(4, 1))
	if err != nil || &again.Data[0] != &one.Data[0] {
		t.Errorf("%v, %v after %v", err, again.Data, one.Data)
	}
	two, err := e.Release("two", adj, ids(4), rows)
	if err != nil {
		t.Fatal(err)
	}
	if calls != 2 {
		t.Errorf("Spend was called %d times, expected at two tries of the first release", calls)
	}
	if _, err := e.Release("three", adj, ids(4), rows); err == nil {
		t.Error("a third release of two")
	}
	seen := map[float32]bool{}
	for _, v := range append(one.Data, two.Data...) {
		seen[v] = true
	}
	if len(seen) != 8 {
		t.Errorf("all noise must differ: %v %v", one.Data, two.Data)
	}
	resumed := edges(t, Guarantee{4, 1e-5}, 2)
	resumed.secret[0] = 77
	resumed.Spend = func(train.Privacy) error { return errors.New("spent twice") }
	resumed.Restore("one", one)
	if back, err := resumed.Release("one", adj, ids(4), rows); err != nil || back.At(0, 0) != one.At(0, 0) {
		t.Errorf("%v, %v", back.Data, err)
	}
	if other, err := resumed.Release("two", adj, ids(4), rows); err != nil || other.At(0, 0) == two.At(0, 0) {
		t.Errorf("%v, %v: another secret must give other noise", other.Data, err)
	}
}

// A row that its owner has not bounded is refused, and nothing is spent.
func TestReleaseRefusesRows(t *testing.T) {
	adj := adjacency(2, [][2]int{{0, 1}})
	e := edges(t, Guarantee{1, 1e-5}, 1)
	e.Spend = func(train.Privacy) error { t.Error("spent"); return nil }
	b := float32(e.bound)
	for _, row := range [][]float32{{b + 1, 0}, {b, 1}, {0.5, 0}, {float32(math.NaN()), 0},
		{0, float32(math.Inf(-1))}} {
		_, err := e.Release("x", adj, ids(2), mat.View(2, 2, append([]float32{0, 0}, row...)))
		if wrong := (*RowError)(nil); !errors.As(err, &wrong) || wrong.Row != 1 {
			t.Errorf("%v: %v", row, err)
		}
	}
}
