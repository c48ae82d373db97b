package eval

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// TestOrderMatchesSklearn: rows of which each names a class for sure have the kappa of scikit-learn 1.9
// (cohen_kappa_score(weights="quadratic") of true [0 1 2 3 0 1 2 3 3 2] and said [0 2 2 1 0 1 3 3 2 0]) and its mean
// absolute error, however the rows are shared out, and the bootstrap interval holds both.
func TestOrderMatchesSklearn(t *testing.T) {
	is, said := []int32{0, 1, 2, 3, 0, 1, 2, 3, 3, 2, -1}, []int{0, 2, 2, 1, 0, 1, 3, 3, 2, 0, 1}
	scores := mat.New(len(is), 4)
	for i, k := range said {
		scores.Set(i, k, 9)
	}
	labels := graph.Labels{Classes: 4, Class: is, Ordered: true}
	sheet := NewSheet(labels, Goal{})
	table := make([]int64, sheet.Size())
	sheet.Write(table, scores, labels, Temperatures{})
	all, err := sheet.Read(table)
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[Metric]float64{"rank-mae": 0.7, "qwk": 0.5669291338582677} {
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		a := NewAccumulator(m, labels, 8)
		sum := make([]int64, a.Size())
		for _, rows := range [][]int32{{0, 3, 5, 10}, {1, 2, 4, 6, 7, 8, 9}, {}} {
			one, v := labels.Select(rows), make([]int64, a.Size())
			a.Write(v, 1, float64(one.Labelled()), scores.Select(rows), one)
			if err := a.Check(v, int64(one.Labelled())); err != nil {
				t.Error(err)
			}
			for i, n := range v {
				if n > a.Most(i, int64(one.Labelled())) {
					t.Errorf("%s: count %d is %d, must be at most %d", m, i, n, a.Most(i, int64(one.Labelled())))
				}
				sum[i] += n
			}
		}
		x, _, rows, err := a.Read(sum)
		if err != nil || rows != 10 || math.Abs(x-want) > 1e-12 {
			t.Errorf("%s is %v of %d rows (%v), must be %v of 10", m, x, rows, err, want)
		}
		if x := all.Of(m); math.Abs(x-want) > 1e-12 {
			t.Errorf("%s of a sheet is %v, must be %v", m, x, want)
		}
		if x := exactly(m, scores, labels, nil); math.Abs(x-want) > 1e-12 {
			t.Errorf("%s of the rows is %v, must be %v", m, x, want)
		}
		if low, high := all.Interval(m, 1); !(low < want && want < high) {
			t.Errorf("%s is %v, must be within its interval, %v to %v", m, want, low, high)
		}
		sum[len(sum)-1] += 1000
		if a.Check(sum, 10) == nil {
			t.Errorf("%s: false counts must be refused", m)
		}
	}
	if x := all.Baseline("rank-mae", []float64{5, 1, 1, 1}, 8); math.Abs(x-1.7) > 1e-12 { // always class 0
		t.Errorf("the median training class is %v ranks off, must be 1.7", x)
	}
	if Metric("rank-mae").Gain(0.2, 0.3) <= 0 || Metric("qwk").Gain(0.2, 0.3) >= 0 {
		t.Error("fewer ranks off are better, and more kappa")
	}
}

// TestMedian: of ordered classes the median is predicted, of others the most probable one.
func TestMedian(t *testing.T) {
	row := []float32{float32(math.Log(0.4)), float32(math.Log(0.25)), float32(math.Log(0.35))}
	if k := Median(row); k != 1 {
		t.Errorf("the median is class %d, must be 1", k)
	}
	labels := graph.Labels{Classes: 3, Class: []int32{1}}
	if x := exactly(Metric("accuracy"), mat.View(1, 3, row), labels, nil); x != 0 {
		t.Errorf("accuracy of the most probable class is %v, must be 0", x)
	}
	labels.Ordered = true
	if x := exactly(Metric("accuracy"), mat.View(1, 3, row), labels, nil); x != 1 {
		t.Errorf("accuracy of the median is %v, must be 1", x)
	}
	nan := float32(math.NaN())
	if k := Median([]float32{nan, nan}); k != 0 {
		t.Errorf("the median of no numbers is class %d, must be 0", k)
	}
}
