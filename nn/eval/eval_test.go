package eval

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

var metrics = []Metric{"accuracy", "micro-f1", "macro-f1", "auc", "ap"}

// TestMetricsMatchSklearn compares with scikit-learn; testdata/golden.py writes the values.
func TestMetricsMatchSklearn(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases map[string]struct {
			Multi   bool
			Classes int
			Scores  []float32
			Labels  []int32
			Want    map[Metric]float64
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) != 5 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for name, c := range golden.Cases {
		n := len(c.Scores) / c.Classes
		scores := mat.View(n, c.Classes, c.Scores)
		labels := graph.Labels{Classes: c.Classes, Class: c.Labels}
		if c.Multi {
			labels.Class = nil
			for _, l := range c.Labels {
				labels.Bits = append(labels.Bits, uint8(l))
			}
		}
		for _, m := range metrics {
			if got := exactly(m, scores, labels, nil); math.Abs(got-c.Want[m]) > 1e-12 {
				t.Errorf("%s, %s: %v, scikit-learn has %v", name, m, got, c.Want[m])
			}
			counts := binnedCounts(m, scores, labels, nil)
			bound := 1e-12
			switch m {
			case "auc":
				bound += counts.AUCBound()
			case "ap":
				bound += counts.APBound()
			}
			if got := m.Of(&counts); math.Abs(got-c.Want[m]) > bound {
				t.Errorf("%s, %s from counts: %v, scikit-learn has %v", name, m, got, c.Want[m])
			}
		}
	}
}

// task returns scores of spread s about labels that they partly follow; every seventh row has no
// label.
func task(seed uint64, n, classes int, multi bool, s float64) (mat.Dense, graph.Labels) {
	key := rng.New(seed)
	scores, labels := mat.New(n, classes), graph.Labels{Classes: classes}
	for i := range n {
		at := key.Fold(uint64(i))
		class := int32(at.Uint64(0) % uint64(classes))
		for k := range classes {
			x := at.Normal(uint64(1 + k))
			is := uint8(0)
			if multi && at.Float64(uint64(100+k)) < 0.3 || !multi && int(class) == k {
				is = 1
				x++
			}
			scores.Set(i, k, float32(s*x))
			if multi {
				labels.Bits = append(labels.Bits, is)
			}
		}
		if i%7 == 6 {
			class = -1
		}
		if !multi {
			labels.Class = append(labels.Class, class)
		}
	}
	return scores, labels
}

// Peers that sum their vectors as float32 get the counts of all rows together, whoever holds which.
func TestSumOverPeersIsExact(t *testing.T) {
	for _, multi := range []bool{false, true} {
		for _, classes := range []int{2, 5} {
			for _, bins := range []int{0, 64} {
				scores, labels := task(3, 500, classes, multi, 2)
				want := count(scores, labels, nil, bins, nil, false)
				const peers = 7
				var sum []int64
				var added MetricCounts
				for p := range peers {
					rows := []int32{}
					for i := range scores.Rows {
						if i*i%peers == p { // some peers have no rows
							rows = append(rows, int32(i))
						}
					}
					c := count(scores, labels, rows, bins, nil, false)
					if p == 0 {
						sum, added = slices.Clone(c.Vector()), c
						added.n = slices.Clone(c.n)
						continue
					}
					for i, x := range c.Vector() {
						sum[i] += x
					}
					added.Add(c)
				}
				got := count(scores, labels, []int32{}, bins, nil, false)
				if err := got.FromVector(sum); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.n, want.n) || !slices.Equal(added.n, want.n) {
					t.Errorf("multi %v, %d classes, %d bins: the peers' sum differs from the whole", multi, classes,
						bins)
				}
				if wantRows := int64(429); !multi && want.n[0] != wantRows {
					t.Errorf("%d labelled rows, want %d", want.n[0], wantRows)
				}
			}
		}
	}
}

func TestFromVectorRefuses(t *testing.T) {
	scores, labels := task(1, 20, 3, false, 1)
	c := Count(scores, labels, nil)
	good := c.Vector()
	bad := slices.Clone(good)
	bad[3] = -1
	before := slices.Clone(c.n)
	if err := c.FromVector(bad); err == nil || !strings.Contains(err.Error(), "count 3") {
		t.Errorf("-1 in the vector: %v", err)
	}
	if !slices.Equal(c.n, before) {
		t.Error("a refused vector changed the counts")
	}
	if c.FromVector(good[1:]) == nil {
		t.Error("a short vector was taken")
	}
}

// TestRealsSumExactly sums real numbers of very different size over many peers, in any order.
func TestRealsSumExactly(t *testing.T) {
	const peers = 4096
	sum := make([]int64, RealLen)
	add := func(x float64) {
		var v [RealLen]int64
		PutReal(v[:], x)
		for i, d := range v {
			sum[i] += d
		}
	}
	for p := range peers / 4 {
		for _, x := range []float64{1e26, 0.1 * float64(p), -1e26, float64(float32(0.7))} {
			add(x)
		}
	}
	want := 0.0
	for p := range peers / 4 { // no large terms: float64 adds these with an error far below 2⁻³⁰
		want += 0.1*float64(p) + float64(float32(0.7))
	}
	if got := Real(sum); math.Abs(got-want) > 1e-8 {
		t.Errorf("sum %.12f, want %.12f", got, want)
	}
	for _, x := range []float64{0, 1, -1, 0x1p-40, 123.456e6, -0x1p89, float64(math.MaxInt32)} {
		var v [RealLen]int64
		PutReal(v[:], x)
		if got := Real(v[:]); math.Abs(got-x) > 0x1p-41 {
			t.Errorf("%g is read as %g", x, got)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		clear(sum)
		add(1)
		add(x)
		if got := Real(sum); got == got {
			t.Errorf("a sum with %g is read as %g, want NaN", x, got)
		}
	}
}

// The binned values keep to their own bounds, for soft scores, sure ones and few bins; default bins
// are near exact.
func TestBinsKeepTheirBounds(t *testing.T) {
	for seed := range uint64(5) {
		for _, spread := range []float64{0.1, 1, 30} {
			for _, bins := range []int{1, 8, 128, DefaultBins} {
				for _, classes := range []int{2, 4} {
					for _, multi := range []bool{false, true} {
						scores, labels := task(seed, 400, classes, multi, spread)
						c := count(scores, labels, nil, bins, nil, false)
						auc, ap := exactly(Metric("auc"), scores, labels, nil),
							exactly(Metric("ap"), scores, labels, nil)
						if off := math.Abs(c.AUC() - auc); off > c.AUCBound()+1e-12 {
							t.Errorf("%d bins, spread %v: AUC off by %v, bound %v", bins, spread, off, c.AUCBound())
						}
						if off := math.Abs(c.AP() - ap); off > c.APBound()+1e-12 {
							t.Errorf("%d bins, spread %v: AP off by %v, bound %v", bins, spread, off, c.APBound())
						}
						if bins == DefaultBins && (max(c.AUCBound(), math.Abs(c.AUC()-auc)*10) > 3e-3) {
							t.Errorf("spread %v: AUC off by %v, bound %v", spread, c.AUC()-auc, c.AUCBound())
						}
						if bins == 1 && c.AUC() != 0.5 {
							t.Errorf("one bin: AUC %v", c.AUC())
						}
					}
				}
			}
		}
	}
}

// Bins and exact ranks order alike: no score lies in a lower bin than a smaller one.
func TestBinsAscend(t *testing.T) {
	last := 0
	for x := -1e4; x < 1e4; x += 0.37 {
		b := Scale{}.binOf(x, 1000)
		if b < last || b >= 1000 {
			t.Fatalf("bin %d of %v follows bin %d", b, x, last)
		}
		last = b
	}
	if a, b, c := (Scale{}).binOf(math.Inf(-1), 9), (Scale{}).binOf(math.NaN(), 9),
		(Scale{}).binOf(math.Inf(1), 9); a != 0 || b != 0 || c != 8 {
		t.Errorf("bins of −Inf, NaN, Inf: %d %d %d", a, b, c)
	}
}

// TestScaledBins: bins on the scale of the log-odds are about as full as one another, wherever these lie, so that 32
// tell as much as 1,024 of any log-odds do.
func TestScaledBins(t *testing.T) {
	for _, s := range []Scale{{0, 1}, {-0.56, 0.38}, {-1.4, 0.005}, {20, 1e-3}} {
		last := 0
		for z := -1e3; z < 1e3; z += 0.01 {
			b := s.binOf(s.Centre+z*s.Width, 100)
			if b < last || b >= 100 {
				t.Fatalf("%+v: bin %d of %v follows bin %d", s, b, z, last)
			}
			last = b
		}
		if s.binOf(math.NaN(), 9) != 0 || s.binOf(math.Inf(1), 9) != 8 || s.binOf(math.Inf(-1), 9) != 0 {
			t.Errorf("%+v: NaN and infinities must lie at the ends", s)
		}
		key, n := rng.New(8), 4000
		scores, labels := mat.New(n, 2), graph.Labels{Classes: 2, Class: make([]int32, n)}
		for i := range n {
			labels.Class[i] = int32(i % 2)
			z := key.Normal(uint64(i)) + float64(i%2)
			scores.Set(i, 1, float32(s.Centre+s.Width*z))
		}
		a := NewAccumulator("auc", labels, 32).Alone().On([]Scale{s})
		v := make([]int64, a.Size())
		if a.Write(v, 0, 0, scores, labels); len(v) != 64 {
			t.Errorf("%d counts, must be 64", len(v))
		}
		auc, _, rows, err := a.Read(v)
		if exact := exactly(Metric("auc"), scores, labels, nil); err != nil || rows != int64(n) ||
			math.Abs(auc-exact) > 1e-3 {
			t.Errorf("%+v: AUC of %d rows is %.4f, must be %.4f (%v)", s, rows, auc, exact, err)
		}
		if v[5] += 7; a.Check(v, int64(n)) == nil {
			t.Error("a count too many is taken")
		}
	}
}

// Log-odds agree with softmax where that has digits, and stay finite and ordered where it has none.
func TestLogOdds(t *testing.T) {
	got := make([]float64, 3)
	logOdds(got, []float32{0.5, -1, 2}, false)
	e := []float64{math.Exp(0.5), math.Exp(-1), math.Exp(2)}
	for k, x := range got {
		p := e[k] / (e[0] + e[1] + e[2])
		if math.Abs(x-math.Log(p/(1-p))) > 1e-6 {
			t.Errorf("class %d: %v, want %v", k, x, math.Log(p/(1-p)))
		}
	}
	logOdds(got, []float32{2000, 0, -2000}, false)
	if got[0] != 2000 || got[1] != -2000 || got[2] != -4000 {
		t.Errorf("of a sure row: %v", got)
	}
}

func TestEdges(t *testing.T) {
	empty := graph.Labels{Classes: 3, Class: []int32{-1, -1}}
	for _, m := range metrics {
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		c := binnedCounts(m, mat.New(2, 3), empty, nil)
		if v, want := m.Of(&c), exactly(m, mat.New(2, 3), empty, nil); m.Ranks() != (v != v) || !m.Ranks() && v != 0 ||
			v == v && v != want {
			t.Errorf("%s of no labelled row is %v", m, v)
		}
	}
	if err := Metric("f1").Validate(); err == nil || !strings.Contains(err.Error(), "macro-f1") {
		t.Errorf("unknown metric: %v", err)
	}
	// All of one class: nothing to rank. All equal scores: chance.
	if areaUnder([]float64{1, 2}, []uint8{1, 1}) != 0 || areaUnder([]float64{1, 1, 1}, []uint8{1, 0, 0}) != 0.5 {
		t.Error("AUC without negatives, or of ties")
	}
	nan := math.NaN()
	if got := areaUnder([]float64{nan, 0, 1, nan}, []uint8{0, 1, 1, 0}); got != 1 {
		t.Errorf("NaN below all: AUC %v", got)
	}
	if averagePrecision(nil, nil) != 0 || areaUnder(nil, nil) != 0 {
		t.Error("of nothing")
	}
	// A class no one has and no one was given is left out of the mean.
	c := Count(mat.View(2, 3, []float32{1, 0, 0, 0, 1, 0}), graph.Labels{Classes: 3, Class: []int32{0, 1}}, nil)
	if c.MacroF1() != 1 {
		t.Errorf("macro F1 %v, want 1", c.MacroF1())
	}
}

// TestCheckCounts: counts of any rows pass, in sums too; one that is changed anywhere but in the loss does not.
func TestCheckCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(2, 5).Draw(t, "classes")
		labels := graph.Labels{Classes: classes}
		n := rapid.IntRange(0, 20).Draw(t, "rows")
		scores, rows := mat.New(n, classes), 0
		multi := rapid.Bool().Draw(t, "multi")
		for i := range n {
			for c := range classes {
				scores.Set(i, c, float32(rapid.IntRange(-3, 3).Draw(t, "score")))
			}
			if k := rapid.IntRange(-1, classes-1).Draw(t, "class"); multi {
				labels.Bits = append(labels.Bits, make([]uint8, classes)...)
				labels.Bits[i*classes+max(k, 0)] = 1
				rows++
			} else if labels.Class = append(labels.Class, int32(k)); k >= 0 {
				rows++
			}
		}
		if multi && n == 0 {
			labels.Bits = []uint8{}
		}
		a := NewAccumulator(Metric(rapid.SampledFrom([]string{"accuracy", "micro-f1", "auc"}).Draw(t, "metric")),
			labels, 8)
		first := RealLen
		if rapid.Bool().Draw(t, "alone") {
			a, first = a.Alone(), 0
		}
		v := make([]int64, a.Size())
		a.Write(v, 1.5, float64(rows), scores, labels)
		if err := a.Check(v, int64(rows)); err != nil || a.Rows(v) != int64(rows) {
			t.Fatalf("%d rows: %v (got %d)", rows, err, a.Rows(v))
		}
		for i := range v {
			if v[i] > a.Most(i, int64(rows)) {
				t.Fatalf("count %d must be at most %d (got %d)", i, a.Most(i, int64(rows)), v[i])
			}
		}
		at := rapid.IntRange(first, len(v)-1).Draw(t, "at")
		v[at] += int64(rapid.SampledFrom([]int{-1000, 1000}).Draw(t, "by"))
		if a.Check(v, int64(rows)) == nil {
			t.Fatalf("count %d is false, of %v", at, v)
		}
	})
}
