package infer

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/graph"
)

// Effort bounds the attacks of All.
type Effort struct {
	Rows    int // attacked
	Tries   int // sets of columns compared for a row of class means
	Shadows int // models that are trained to distinguish members (below 4 = none)
}

// All runs all passive attacks on a victim that apply to the run. For a numeric target these are the attacks on
// targets, edges and degrees; for task "links" the attacks on rows of the ends of links.
func (run *Run) All(ctx context.Context, victim int, e Effort) (all []Finding, err error) {
	keep := func(f Finding, err error) error {
		switch {
		case err == nil:
			all = append(all, f)
		case !errors.Is(err, ErrNothing):
			return err
		}
		return nil
	}
	several := func(list []Finding, err error) error {
		if errors.Is(err, ErrNothing) {
			return nil
		}
		all = append(all, list...)
		return err
	}
	if run.Plan.Task.Links() {
		return all, errors.Join(several(run.Ends(victim)), ctx.Err())
	}
	if run.Shards[victim].Labels.Kind() == graph.Numbers { // the others need classes
		return all, errors.Join(several(run.FewColumns(victim)), keep(run.RowTargets()), keep(run.Links(victim)),
			several(run.Degrees(victim)), ctx.Err())
	}
	if err := several(run.rowsOf(ctx, victim, e)); err != nil {
		return nil, err
	}
	for _, one := range []func() error{
		func() error { return keep(run.Gradients(ctx, victim)) },
		func() error { return several(run.Labels(victim)) },
		func() error { return keep(run.RowClasses()) },
		func() error { return keep(run.Links(victim)) },
		func() error { return several(run.Degrees(victim)) },
		func() error { return several(run.Membership(ctx, e.Shadows)) },
	} {
		if err := errors.Join(one(), ctx.Err()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// rowsOf inverts rows.
func (run *Run) rowsOf(ctx context.Context, victim int, e Effort) (all []Finding, err error) {
	const name, holder = "rows of features in rows", "a reader of the rows"
	var r recorded.Recovery
	n := len(run.Shards[victim].Boundary[run.Attacker])
	switch kind := run.Plan.Encoder().Kind; {
	case n == 0:
		return nil, ErrNothing
	case kind == "raw":
		return []Finding{{name, holder, "rows found", float64(n), 0, n}}, nil
	case kind == "pca":
		if r, err = run.ComponentRows(ctx, victim, e.Rows); err != nil {
			return nil, err
		}
		if sum, err := run.ComponentSum(ctx, victim); err == nil {
			all = append(all, Finding{"rows of features in the PCA sum", "who sums", "rows found", float64(sum.Exact),
				0, run.Shards[victim].Owned})
		}
	case kind == "mlp" && run.Plan.LayerWise.LayerOutput == "hidden":
		r, err = run.HiddenRows(ctx, victim, e.Rows)
	case run.Model.Closed != nil && run.Model.Closed.Own != nil:
		return run.FewColumns(victim)
	case run.Model.Closed != nil && run.Model.Closed.Spec.Own == 0 && run.Plan.Hops() > 0:
		if r, err = run.ClassRows(ctx, victim, recorded.Effort{Rows: e.Rows, Tries: e.Tries}); err != nil {
			return nil, err
		}
		columns, err := run.ClassColumns(ctx, victim, e.Rows)
		if err != nil {
			return nil, err
		}
		value, base := columns.Share()
		all = append(all, Finding{"columns of features in rows", holder + ", given class and number of values",
			"columns guessed", value, base, columns.Tried})
	default:
		return nil, ErrNothing
	}
	if err != nil {
		return nil, err
	}
	return append([]Finding{{name, holder, "rows found", float64(r.Exact), 0, r.Tried}}, all...), nil
}
