package classmeans

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/nn/closed"
)

// TestOwnExact: a node's own columns are exact at home where all hops of soft labels are kept, and only there: logits
// that are made of them cross with residuals. Without hops nothing is rounded.
func TestOwnExact(t *testing.T) {
	base := plain(communities(60, 6))
	base.Coarse, base.Hops = true, 2
	for _, c := range []struct {
		target       string
		last         bool
		hops         int
		coarse, want bool
	}{
		{"labels", false, 2, true, true}, {"labels", false, 2, false, false}, {"labels", true, 2, true, false},
		{"labels", false, 0, true, false}, {"residual", false, 2, true, false}, {"residual", true, 2, true, false},
	} {
		one := base
		one.Target, one.LastHop, one.Hops, one.Coarse = c.target, c.last, c.hops, c.coarse
		if got := one.Layout().OwnExact; got != c.want {
			t.Errorf("%+v: own columns are exact: %v", c, got)
		}
	}
	for _, target := range []string{"labels", "residual"} {
		alone := base.learning(target)
		if alone.Hops = 0; alone.Layout().Rounded() {
			t.Errorf("columns are rounded, but no row crosses (%s)", target)
		}
		if alone.Adjacent = 40; !alone.Layout().Rounded() {
			t.Errorf("columns of nodes without features must be rounded (%s)", target)
		}
	}
	base.Target, base.Adjacent = "labels", 40
	if base.Layout().OwnExact {
		t.Error("own columns of nodes without features must not be exact")
	}
}

// TestOwnColumnsStayExact: of a run whose rows are coarse the columns before any hop are those of the map itself, and
// those after it are not their aggregates.
func TestOwnColumnsStayExact(t *testing.T) {
	g := words(600)
	c := plain(g)
	c.Coarse, c.Target, c.LeaveOut, c.ClassRounds = true, "labels", "false", 1
	tr := mustRun(t, c, cut(t, g, 2), options{setup: func(_ int, t *Trainer) { t.KeepHidden = true }}).trainers[0]
	form := tr.model.Closed
	own := closed.Times(tr.features(), form.Means[0].Value)
	width := own.Cols
	for i, v := range tr.Rows.ColRange(0, width).Clone().Data {
		if math.Abs(float64(v-own.Data[i])) > 1e-5 {
			t.Fatalf("a node's own columns must be exact at home: %g is %g", own.Data[i], v)
		}
	}
	if rows := form.Spec.Coarsen(0, tr.features(), own); slices.Equal(rows.Data, own.Data) {
		t.Error("rows that cross must be coarser")
	}
}
