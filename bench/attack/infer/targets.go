package infer

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// RowTargets infers the numeric targets of other members' training nodes from the rows of the closed form that are
// sent. It uses the one number of a row that follows the target most closely. Value is their correlation, for the
// number and round whose correlation exceeds the baseline most. The baseline is the same for test nodes, whose targets
// are not used, so the excess comes from targets.
func (run *Run) RowTargets() (Finding, error) {
	f := Finding{Attack: "targets of training nodes off rows", Holder: "a reader of the rows",
		Measure: "correlation, training against test nodes"}
	labels := run.Shards[0].Labels
	if run.Model.Closed == nil || labels.Kind() != graph.Numbers {
		return f, ErrNothing
	}
	// Rounds are the same of all others, and are also read if the model does not keep them.
	rounds, err := run.classRows((run.Attacker + 1) % len(run.Shards))
	if err != nil {
		return f, err
	}
	for r := range rounds {
		numbers := make([][2][]float64, rounds[r].Cols) // of training and test nodes, by column
		targets := make([][2][]float64, labels.Classes)
		err := run.compared(func(own *shard.Shard, v int32, before []mat.Dense, i, of int) {
			if !own.Labels.Has(int(v)) {
				return
			}
			for k := range numbers {
				numbers[k][of] = append(numbers[k][of], float64(before[r].At(i, k)))
			}
			for c := range targets {
				targets[c][of] = append(targets[c][of], float64(own.Labels.Values[int(v)*labels.Classes+c]))
			}
		})
		if err != nil {
			return f, err
		}
		for _, x := range numbers {
			for _, y := range targets {
				if min(len(x[0]), len(x[1])) < 3 {
					return f, ErrNothing
				}
				if _, deviation := moments(x[0]); deviation == 0 { // no direction was found
					continue
				}
				value, base := linked(x[0], y[0]), linked(x[1], y[1])
				if f.Tried == 0 || value-base > f.Value-f.Base {
					f.Value, f.Base, f.Tried = value, base, len(x[0])
				}
			}
		}
	}
	return f, nil
}

// linked is the magnitude of the correlation of x and y (0 = one of them is constant).
func linked(x, y []float64) float64 {
	if r := stat.Correlation(x, y, nil); !math.IsNaN(r) {
		return math.Abs(r)
	}
	return 0
}
