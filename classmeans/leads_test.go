package classmeans

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// TestTrainingNodesLeadNoMore: after the first round the columns of training nodes favour their own classes as much as
// those of validation nodes, over all of them. With own parts out alone they favour them more.
func TestTrainingNodesLeadNoMore(t *testing.T) {
	g := communities(600, 6)
	c := plain(g)
	c.ClassRounds = 2
	tr := mustRun(t, c, cut(t, g, 3), options{setup: func(_ int, t *Trainer) { t.AllRounds = true }}).trainers[0]
	form := tr.model.Closed
	x := tr.model.Encoder.Input(g.X)
	train, others := form.Spec.Present(g.Split, g.Labels)
	logits, _, err := form.UpTo(1).Walk(closed.WholeGraph(&g.Adj, x, form.Spec), g.Labels, g.Split, true)
	if err != nil {
		t.Fatal(err)
	}
	p := form.Spec.Targets(1, train, others, g.Labels.Rows(train), logits)
	for _, out := range []bool{true, false} {
		if !out {
			clear(form.Counts[1].Value.Row(2))
		}
		z := closed.Times(x, form.Means[1].Value)
		form.LeaveOwn(1, x, z, p)
		lead := func(i int32) float64 {
			row, own := slices.Clone(z.Row(int(i))), g.Labels.Class[i]
			v := row[own]
			row[own] = float32(math.Inf(-1))
			return float64(v - slices.Max(row))
		}
		sums, counts := make([]float64, 3), make([]float64, 3)
		for _, i := range g.InSplit(graph.Val) {
			sums[g.Labels.Class[i]] += lead(i)
			counts[g.Labels.Class[i]]++
		}
		above := 0.0
		for _, i := range train {
			above += (lead(i) - sums[g.Labels.Class[i]]/counts[g.Labels.Class[i]]) / float64(len(train))
		}
		t.Logf("own lead out: %v: training nodes lead by %.4f more", out, above)
		if out && math.Abs(above) > 0.01 || !out && above < 0.02 {
			t.Errorf("own lead out: %v: training nodes lead by %.4f more than validation nodes", out, above)
		}
	}
}
