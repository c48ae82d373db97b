package closedform

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/nn/closed"
)

// TestOwnExact: a node's own columns are exact at home where all hops of soft labels are kept, and only there: logits that
// are made of them cross with residuals. Without hops nothing is rounded.
func TestOwnExact(t *testing.T) {
	base := plain(communities(60, 6))
	base.Coarse, base.Hops = true, 2
	for _, c := range []struct {
		target, kept string
		hops         int
		coarse, want bool
	}{
		{"labels", "all", 2, true, true}, {"labels", "all", 2, false, false}, {"labels", "last", 2, true, false},
		{"labels", "all", 0, true, false}, {"residual", "all", 2, true, false}, {"residual", "last", 2, true, false},
	} {
		one := base
		one.Target, one.HopsKept, one.Hops, one.Coarse = c.target, c.kept, c.hops, c.coarse
		if got := one.Layout(c.target == "residual").OwnExact; got != c.want {
			t.Errorf("%+v: own columns are exact: %v", c, got)
		}
	}
	for _, residual := range []bool{false, true} {
		alone := base
		if alone.Hops, alone.HopsKept = 0, "auto"; alone.Layout(residual).Rounded() {
			t.Errorf("columns are rounded, but no row crosses (residual %v)", residual)
		}
		if alone.Adjacent = 40; !alone.Layout(residual).Rounded() {
			t.Errorf("columns of nodes without features must be rounded (residual %v)", residual)
		}
	}
	base.Target, base.HopsKept, base.Adjacent = "labels", "all", 40
	if base.Layout(false).OwnExact {
		t.Error("own columns of nodes without features must not be exact")
	}
}

// TestOwnColumnsStayExact: of a run whose rows are coarse the columns before any hop are those of the map itself, and those
// after it are not their aggregates.
func TestOwnColumnsStayExact(t *testing.T) {
	g := words(600)
	c := plain(g)
	c.Coarse, c.HopsKept, c.Target, c.LeaveOut, c.ClassRounds = true, "all", "labels", "false", 1
	tr := mustRun(t, c, cut(t, g, 2), options{}).trainers[0]
	form := tr.model.Closed
	own := closed.Times(tr.x, form.Means[0].Value)
	width := own.Cols
	for i, v := range withoutConstant(tr.full.columns).ColRange(0, width).Clone().Data {
		if math.Abs(float64(v-own.Data[i])) > 1e-5 {
			t.Fatalf("a node's own columns must be exact at home: %g is %g", own.Data[i], v)
		}
	}
	if rows := form.Spec.Coarsen(0, tr.x, own); slices.Equal(rows.Data, own.Data) {
		t.Error("rows that cross must be coarser")
	}
}
