package classmeans

import (
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/nn/eval"
)

// TestRankCap: in all rounds of a run together, rows of nodes of up to MostFew features have at most half as many
// numbers of the node as there are features, whatever the settings, and the first rounds of other options have none.
func TestRankCap(t *testing.T) {
	tried, metrics := 0, map[string]eval.Metric{"single": "accuracy", "multi": "micro-f1", "regression": "r2"}
	for features := 2; features <= MostFew; features++ {
		for classes := 1; classes <= 10; classes++ {
			for _, task := range []string{"single", "multi", "regression"} {
				for _, rounds := range []int{0, 1, 2, 5, maxRounds} {
					for _, hops := range []int{1, 6} {
						for _, target := range []string{Auto, "labels", "residual"} {
							c := Config{Few: true, Task: task, Features: features, Classes: classes,
								Metric: metrics[task], RowNorm: Auto, Target: target, LeaveOut: Auto,
								ClassRounds: rounds, Hops: hops, Random: -1, Shrink: 1, MinClass: 1, Lambdas: Lambdas(),
								Exchange: "halo", Sums: Auto}
							if c.Validate() != nil {
								continue
							}
							tried++
							if n, err := sentOf(c); err != nil || n < 1 || 2*n > features {
								t.Fatalf("%d features, %d classes, %s, rounds %d, hops %d, target %s: %d numbers of "+
									"a node are sent: %v", features, classes, task, rounds, hops, target, n, err)
							}
						}
					}
				}
			}
		}
	}
	if tried < 10_000 {
		t.Errorf("%d configurations were tried, must be at least 10,000", tried)
	}
}

// sentOf returns how many numbers rows of a node have in a run by c, of the option that sends most.
func sentOf(c Config) (most int, err error) {
	for _, labelled := range []float64{0.01, 0.9} {
		for k, option := range c.Options(labelled, 1) {
			first := option.First()
			for r := range firstRounds {
				if s := first.Layout(); s.HopsOf(r)+s.LogitHopsOf(r) > 0 {
					return 0, fmt.Errorf("first rounds of option %d send rows", k)
				}
			}
			s, n := option.Layout(), 0
			for r := range s.Rounds {
				if s.LogitHopsOf(r) > 0 {
					n += s.Width(c.Classes)
				}
				if s.HopsOf(r) > 0 {
					n += s.MapWidth(r, c.Classes)
				}
			}
			most = max(most, n)
		}
	}
	return most, nil
}
