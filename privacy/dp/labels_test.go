package dp

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

var one, half = Release{"training", "all", 1}, Release{"training", "half", 0.5}

func labels(t *testing.T, g Guarantee, peers, colluding int, planned ...Release) *Labels {
	t.Helper()
	l, err := NewLabels(g, peers, colluding, [32]byte{1})
	if err == nil {
		err = l.Plan(planned)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Of releases with one noise, another class of any node changes the sums by √2 rows at most, whatever the rows are, sparse or not, and by as much where a
// row has its full length. Another class changes counts of right predictions by no more.
func TestLabelSensitivity(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	change := func(a, b []int64, bound int64) float64 {
		square := 0.0
		for k := range a {
			square += float64(a[k]-b[k]) * float64(a[k]-b[k])
		}
		return math.Sqrt(square) / float64(bound)
	}
	worst, counted := 0.0, 0.0
	for try := range 200 {
		release := []Release{one, half}[try%2]
		n, width, classes := 2+r.IntN(6), 1+r.IntN(6), 2+r.IntN(4)
		rows, class := mat.New(n, width), make([]int32, n)
		for i := range n {
			class[i] = int32(r.IntN(classes))
			for j := range rows.Row(i) {
				if rows.Set(i, j, float32(math.Ldexp(r.NormFloat64(), r.IntN(8)-4))); try%7 == 0 {
					rows.Set(i, j, 1e30)
				}
			}
		}
		x, constant := graph.Features{Dense: rows}, float32(try%3)/4
		if try%5 == 0 {
			x = graph.Features{Sparse: sparse(rows)}
		}
		sums := func(class []int32) []int64 {
			all, err := labels(t, Guarantee{4, 1e-5}, 3, 1, release).Sums(release, x, constant, class, classes, 1)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before, bound := sums(class), labels(t, Guarantee{4, 1e-5}, 3, 1, release).bound(release)
		for i := range n {
			for c := range classes {
				other := slices.Clone(class)
				other[i] = int32(c)
				worst = max(worst, change(before, sums(other), bound))
			}
		}
		right := make([]int64, 1+r.IntN(20)) // all of which another class of one node makes wrong
		for k := range right {
			right[k] = 1
		}
		counts := func(right []int64) []int64 {
			all, err := labels(t, Guarantee{4, 1e-5}, 3, 1, release).Right(release, right)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		counted = max(counted, change(counts(right), counts(make([]int64, len(right))), bound))
	}
	if worst > math.Sqrt2 || worst < 0.999*math.Sqrt2 {
		t.Errorf("the sensitivity of sums is %.6f, must be √2", worst)
	}
	if counted > math.Sqrt2 || counted < 0.99*math.Sqrt2 {
		t.Errorf("the sensitivity of counts is %.6f, must be √2", counted)
	}
}

// sparse sets a third of the values to 0, and returns the others as sparse rows.
func sparse(rows mat.Dense) *mat.Sparse {
	s := &mat.Sparse{Rows: rows.Rows, Cols: rows.Cols, RowPtr: []int64{0}}
	for i := range rows.Rows {
		for j, v := range rows.Row(i) {
			if (i+j)%3 == 0 {
				rows.Set(i, j, 0)
			} else {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	return s
}

// An audit as that of edges: 2,000 sums of two data sets in which a node has another class, by the parts of noise of the
// peers that do not collude. The lower bound stays below what is claimed and comes near it; with noise of half the deviation
// it exceeds the claim.
func TestLabelAudit(t *testing.T) {
	const draws, peers, colluding = 2000, 4, 1
	claim := Guarantee{4, 1e-5}
	audit := func(halved bool) float64 {
		row := graph.Features{Dense: mat.View(1, 2, []float32{0.6, 0.8})}
		ratio := func(class int32, seed int) float64 {
			sums := make([]int64, 4)
			for q := range peers - colluding {
				l := labels(t, claim, peers, colluding, one)
				if l.secret = [32]byte{byte(seed), byte(seed >> 8), byte(q), byte(class)}; halved {
					l.sigma /= 2
				}
				of := []int32{class}
				if q > 0 { // others have no node
					of = nil
				}
				part, err := l.Sums(one, row, 0, of, 2, 1)
				if err != nil {
					t.Fatal(err)
				}
				for k, v := range part {
					sums[k] += v
				}
			}
			return 0.6*float64(sums[0]-sums[1]) + 0.8*float64(sums[2]-sums[3])
		}
		hits, alarms := 0, 0
		for k := range draws {
			if ratio(0, k) > 0 {
				hits++
			}
			if ratio(1, k) > 0 {
				alarms++
			}
		}
		low, _ := wilson(hits, draws)
		_, high := wilson(alarms, draws)
		return Gaussian(quantile(low) - quantile(high)).Epsilon(claim.Delta)
	}
	if found := audit(false); found > claim.Epsilon || found < 0.75*claim.Epsilon {
		t.Errorf("the audit finds ε ≥ %.2f, must be below %g and near it", found, claim.Epsilon)
	} else {
		t.Logf("claimed ε %g, audited ε ≥ %.2f", claim.Epsilon, found)
	}
	if found := audit(true); found <= claim.Epsilon {
		t.Errorf("with half the noise the audit finds ε ≥ %.2f, must be above %g", found, claim.Epsilon)
	}
}

// All noise of K − C peers has at least the variance that the guarantee needs, and what all releases of a split tell is what
// it allows, up to the rounding of the grid.
func TestLabelNoiseOfAll(t *testing.T) {
	for _, c := range [][2]int{{1, 0}, {2, 1}, {3, 1}, {10, 4}, {50, 24}} {
		l := labels(t, Guarantee{1, 1e-5}, c[0], c[1], one)
		if all := float64(c[0]-c[1]) * float64(l.sigma*l.sigma); all < labelSigma*labelSigma || all > 1.01*labelSigma*labelSigma {
			t.Errorf("%v peers: the variance of those that do not collude is %g, must be just above %d", c, all, labelSigma*labelSigma)
		}
	}
	planned := []Release{{"training", "a", 0.5}, {"training", "b", 0.3}, {"training", "c", 0.2}, {"test", "a", 1}}
	for _, g := range []Guarantee{{0.1, 1e-6}, {1, 1e-5}, {4, 1e-5}, {100, 1e-9}} {
		l, spent := labels(t, g, 3, 1, planned...), Gaussian(0)
		for _, r := range planned[:3] {
			spent = compose(spent, Gaussian(float64(l.bound(r))*math.Sqrt(2/float64(labelVariance))))
		}
		if got := spent.Epsilon(g.Delta); got > g.Epsilon || got < 0.97*g.Epsilon {
			t.Errorf("%+v: all releases spend ε %g", g, got)
		}
		if got := l.Spent().Epsilon(g.Delta); math.Abs(got-g.Epsilon) > 1e-6*g.Epsilon {
			t.Errorf("%+v: the run states ε %g", g, got)
		}
	}
}

// A release is drawn once, by a plan, and the first one alone spends.
func TestLabelsAreReleasedOnce(t *testing.T) {
	first, second := Release{"training", "first", 0.5}, Release{"training", "second", 0.5}
	x, class := graph.Features{Dense: mat.View(2, 1, []float32{1, 1})}, []int32{0, 1}
	l := labels(t, Guarantee{4, 1e-5}, 3, 1, first, second)
	full, calls := errors.New("spent"), 0
	l.Spend = func(s Statement) error {
		if calls++; s.Unit != "label" || s.Epsilon != 4 || s.Releases != 2 || math.Abs(s.Noise-1.53) > 0.01 {
			t.Errorf("%+v", s)
		}
		return full
	}
	if _, err := l.Sums(first, x, 0, class, 2, 1); !errors.Is(err, full) || len(l.Releases()) != 0 {
		t.Errorf("%v, %d releases", err, len(l.Releases()))
	}
	full = nil
	a, err := l.Sums(first, x, 0, class, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Sums(first, x, 0, []int32{1, 0}, 2, 1); err != nil || !slices.Equal(a, again) {
		t.Errorf("%v: %v after %v", err, again, a)
	}
	b, err := l.Sums(second, x, 0, class, 2, 1)
	if err != nil || slices.Equal(a, b) || calls != 2 {
		t.Errorf("%v: %v after %v, %d calls", err, b, a, calls)
	}
	if _, err := l.Sums(Release{"training", "third", 0.1}, x, 0, class, 2, 1); err == nil {
		t.Error("a release that was not planned")
	}
	resumed := labels(t, Guarantee{4, 1e-5}, 3, 1, first, second)
	resumed.secret[0], resumed.Spend = 77, func(Statement) error { return errors.New("spent twice") }
	resumed.Restore("training/first", a)
	if got, err := resumed.Sums(first, x, 0, class, 2, 1); err != nil || !slices.Equal(got, a) {
		t.Errorf("%v: %v after %v", err, got, a)
	}
	if got, err := resumed.Sums(second, x, 0, class, 2, 1); err != nil || slices.Equal(got, b) {
		t.Errorf("%v: another secret must give other noise", err)
	}
}

func TestLabelsRefuse(t *testing.T) {
	for text, c := range map[string]struct {
		g                Guarantee
		peers, colluding int
		planned          []Release
	}{
		"epsilon must be above 0":                {Guarantee{0, 1e-5}, 3, 1, []Release{one}},
		"of 3 peers at least 0, and not all":     {Guarantee{1, 1e-5}, 3, 3, []Release{one}},
		"must have shares above 0 that add up":   {Guarantee{1, 1e-5}, 3, 1, []Release{one, half}},
		"label_epsilon is too small for 1 sums":  {Guarantee{1e-3, 1e-9}, 3, 1, []Release{one}},
		"shares above 0 that add up to 1 at mos": {Guarantee{1, 1e-5}, 3, 1, []Release{{"test", "x", 0}}},
	} {
		l, err := NewLabels(c.g, c.peers, c.colluding, [32]byte{})
		if err == nil {
			err = l.Plan(c.planned)
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, must be %q", err, text)
		}
	}
	l := labels(t, Guarantee{1, 1e-5}, 3, 1, one)
	if _, err := l.Right(one, make([]int64, mostCandidates+1)); err == nil {
		t.Error("too many candidates")
	}
}
