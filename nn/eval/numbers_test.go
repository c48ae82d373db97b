package eval

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

var numberMetrics = []Metric{"r2", "mae", "rmse"}

// numberCase are predictions, N×C, and targets.
type numberCase struct {
	Columns        int
	Scores, Values []float32
	Want           map[Metric]float64
}

func numberCases(t *testing.T) map[string]numberCase {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Numbers map[string]numberCase }
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Numbers) != 3 {
		t.Fatalf("%d cases", len(golden.Numbers))
	}
	return golden.Numbers
}

// unitsFrom are the mean and the deviation of each column of a case.
func unitsFrom(c numberCase) (units []graph.Unit) {
	n := float64(len(c.Values) / c.Columns)
	for k := range c.Columns {
		sum, squares := 0.0, 0.0
		for i := k; i < len(c.Values); i += c.Columns {
			sum, squares = sum+float64(c.Values[i]), squares+float64(c.Values[i])*float64(c.Values[i])
		}
		units = append(units, graph.Unit{Mean: sum / n, Deviation: math.Sqrt(squares/n - sum/n*sum/n)})
	}
	return units
}

// standardise returns predictions and targets of a case in units.
func standardise(c numberCase, units []graph.Unit) (mat.Dense, graph.Labels) {
	scores := graph.Labels{Classes: c.Columns, Values: c.Scores}.Standardised(units)
	return mat.View(len(c.Scores)/c.Columns, c.Columns, scores.Values),
		graph.Labels{Classes: c.Columns, Values: c.Values}.Standardised(units)
}

// TestNumberMetricsMatchSklearn: metrics are those of scikit-learn, of numbers as they are and of standardised ones,
// over all rows and as sums of the rows of several peers.
func TestNumberMetricsMatchSklearn(t *testing.T) {
	for name, c := range numberCases(t) {
		for _, units := range [][]graph.Unit{nil, unitsFrom(c)} {
			scores, labels := standardise(c, units)
			for _, m := range numberMetrics {
				near := func(what string, got float64) {
					t.Helper()
					if want := c.Want[m]; math.Abs(got-want) > 2e-6*max(1, math.Abs(want)) {
						t.Errorf("%s, standardised %t, %s, %s: %v, scikit-learn has %v", name, units != nil, m, what,
							got, want)
					}
				}
				near("exact", exactly(m, scores, labels, nil))
				a, s := NewAccumulator(m, labels, 0), NewSheet(labels, Goal{})
				all, sheet := make([]int64, a.Size()), make([]int64, s.Size())
				for peer := range 3 {
					var rows []int32
					for i := peer; i < scores.Rows; i += 3 {
						rows = append(rows, int32(i))
					}
					one, page := make([]int64, a.Size()), make([]int64, s.Size())
					of, some := labels.Select(rows), scores.Select(rows)
					a.Write(one, 2, float64(len(rows)), some, of)
					s.Write(page, some, of, Temperatures{})
					for i, v := range one {
						if all[i] += v; v < 0 || !a.Wide(i) && v > int64(scores.Rows) {
							t.Fatalf("number %d is %d", i, v)
						}
					}
					for i, v := range page {
						sheet[i] += v
					}
				}
				if err := a.Check(all, int64(scores.Rows)); err != nil {
					t.Fatal(err)
				}
				got, loss, n, err := a.Read(all)
				if near("of three peers", got); err != nil || n != int64(scores.Rows) || loss != 6/float64(n) {
					t.Errorf("%s: %d rows, loss %v: %v", name, n, loss, err)
				}
				table, err := s.Read(sheet)
				if err != nil {
					t.Fatal(err)
				}
				near("of a sheet", table.Of(m))
				if low, high := table.Interval(m, rng.New(1)); !(low < c.Want[m] && c.Want[m] < high) {
					t.Errorf("%s: interval %v to %v of %v", name, low, high, c.Want[m])
				}
				if b := table.Baseline(m, nil, 0); m == "r2" && units != nil && math.Abs(b) > 1e-5 {
					t.Errorf("%s: the mean of all rows has an R² of %v, must be 0", name, b)
				}
				all[RealLen+1]--
				if err := a.Check(all, int64(scores.Rows)); err == nil {
					t.Error("a row too few must be refused")
				}
			}
		}
	}
}

// TestFalseNumbers: sums that no rows give are refused.
func TestFalseNumbers(t *testing.T) {
	scores, labels := standardise(numberCases(t)["one"], nil)
	a := NewAccumulator("r2", labels, 0)
	for _, at := range []int{sumOver, sumHigh} {
		v := make([]int64, a.Size())
		a.Write(v, 1, float64(scores.Rows), scores, labels)
		v[RealLen+1+perRow+at*RealLen+1] += 1 << 30
		if err := a.Check(v, int64(scores.Rows)); err == nil {
			t.Errorf("sum %d is too large for its squares, and must be refused", at)
		}
	}
}

// TestNumberIntervals: of many draws about 95 % of the intervals hold the figure of the whole population.
func TestNumberIntervals(t *testing.T) {
	const draws, rows = 400, 300
	truth := map[Metric]float64{"r2": 1 - 0.25/1.25, "rmse": 0.5, "mae": 0.5 * math.Sqrt(2/math.Pi)}
	for m, want := range truth {
		held := 0
		for d := range draws {
			key := rng.New(uint64(d))
			scores, labels := mat.New(rows, 1), graph.Labels{Classes: 1}
			for i := range rows {
				f := key.Normal(uint64(i))
				scores.Data[i] = float32(f)
				labels.Values = append(labels.Values, float32(f+0.5*key.Fold(1).Normal(uint64(i))))
			}
			s := NewSheet(labels, Goal{})
			v := make([]int64, s.Size())
			s.Write(v, scores, labels, Temperatures{})
			table, err := s.Read(v)
			if err != nil {
				t.Fatal(err)
			}
			if low, high := table.Interval(m, key); low <= want && want <= high {
				held++
			}
		}
		if share := float64(held) / draws; share < 0.91 || share > 0.985 {
			t.Errorf("%s: %.3f of the intervals hold %v, must be about 0.95", m, share, want)
		}
	}
}

// TestMetricOfKind: metrics of classes and of numbers are told apart, and know which way is better.
func TestMetricOfKind(t *testing.T) {
	for _, m := range numberMetrics {
		if m.Fits(graph.Numbers) != nil || m.Fits(graph.Single) == nil {
			t.Errorf("%s is a metric of numbers alone", m)
		}
		if better := m.Gain(0.6, 0.5) > 0; better != (m == "r2") {
			t.Errorf("%s: 0.6 better than 0.5: %t", m, better)
		}
	}
	if Metric("auc").Fits(graph.Numbers) == nil || Metric("auc").Fits(graph.Several) != nil ||
		Metric("auc").Gain(0.6, 0.5) <= 0 {
		t.Error("auc is a metric of classes alone, of which more is better")
	}
	for _, bad := range []Metric{"pinball", "pinball@0.9", "R2"} {
		if bad.Validate() == nil {
			t.Errorf("%q must be refused", bad)
		}
	}
}
