package linear

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	hmat "github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// What the other peers may add to the sums of Components. Each of their rows has length 1 at most. G is the Gram matrix
// of their rows: its trace is at most their number.

// lengths returns the length of each column.
func lengths(q hmat.Dense) []float64 {
	all := make([]float64, q.Cols)
	for i := range q.Rows {
		for c, v := range q.Row(i) {
			all[c] += float64(v) * float64(v)
		}
	}
	for c, v := range all {
		all[c] = math.Sqrt(v)
	}
	return all
}

// productLimit returns what a number of another peer's GQ may be: no more than the row's part in G times the column's
// length.
func productLimit(q hmat.Dense, rows float64) func(i int) comm.Limit {
	most := lengths(q)
	return func(i int) comm.Limit {
		v := rows * most[i%len(most)] * rounding
		return comm.Limit{What: "a product with the Gram matrix", Least: -v, Most: v}
	}
}

// checkProducts checks the columns of GQ, of all peers less this one's own: none is longer than the trace of G times
// the column of Q.
func checkProducts(all, own, q hmat.Dense, rows float64, apart []float64) error {
	square := make([]float64, q.Cols)
	for j := range q.Rows {
		for c := range square {
			v := math.Abs(float64(all.At(j, c))-float64(own.At(j, c))) - math.Abs(float64(all.At(j, c)))*(rounding-1)
			if apart != nil {
				v -= apart[c%len(apart)]
			}
			v = max(v, 0)
			square[c] += v * v
		}
	}
	for c, length := range lengths(q) {
		if most := rows * length * rounding; math.Sqrt(square[c]) > most {
			return comm.Refused("column %d of the products with the Gram matrix of the other peers' %g rows must be "+
				"at most %.6g long (got %.6g)", c, rows, most, math.Sqrt(square[c]))
		}
	}
	return nil
}

// projectedLimit returns what a number of another peer's QᵀGQ, W×W, may be, Q orthonormal.
func projectedLimit(w int, rows float64) func(i int) comm.Limit {
	return func(i int) comm.Limit {
		if i/w == i%w {
			return comm.Limit{What: "the projected Gram matrix's diagonal", Least: 0, Most: rows * rounding}
		}
		return comm.Limit{What: "the projected Gram matrix", Least: -rows * rounding, Most: rows * rounding}
	}
}

// checkProjected checks QᵀGQ of all peers less this one's own: its trace, and that it is positive semidefinite.
func checkProjected(ctx context.Context, all, own hmat.Dense, mine, rows float64, apart []float64) error {
	w, off := all.Rows, (8*math.Sqrt(mine+rows)+16)*0x1p-24*(mine+rows)
	if apart != nil {
		off += slices.Max(apart)
	}
	if math.IsInf(off, 1) {
		return nil // noise hides all
	}
	a := symmetric(all)
	b, trace := symmetric(own), 0.0
	for i, v := range b.Data {
		a.Data[i] -= v
	}
	for i := range w {
		trace += a.Data[i*w+i]
	}
	if most := rows*rounding + float64(w)*off; trace > most {
		return comm.Refused("the trace of the projected Gram matrix of the other peers must be at most %.6g, "+
			"their rows (got %.6g)", most, trace)
	}
	for i := range w {
		a.Data[i*w+i] += 2 * float64(w) * off
	}
	if rows == 0 && mine == 0 {
		return nil
	}
	ok, err := cholesky(ctx, a)
	if err == nil && !ok {
		err = comm.Refused("the projected Gram matrix of the other peers must be positive semidefinite")
	}
	return err
}

const (
	leastOwn   = 8  // of this peer's own components; fewer show nothing
	rowsEach   = 32 // rows for each own component: components of few rows are the rows themselves
	lessKept   = 4  // how many times less of this peer's features than its own the components may keep, or
	lessSpread = 4  // how many times fewer columns they may lie on
)

// checkComponents refuses components that one peer has steered, within the limits above. Steered components lie on few
// columns, so that the rows that this peer sends would show these, although its own components lie on many; and they
// keep little of its rows, although its own keep much. Either one may come from the data of the others. This is a
// threshold, not an inequality that is true for any data.
func (p products) checkComponents(ctx context.Context, v hmat.Dense, key rng.Key) error {
	f, k := v.Rows, min(v.Cols, p.x.Rows()/rowsEach)
	if k < leastOwn || 2*v.Cols >= f {
		return nil
	}
	alone := componentSums{products: func(int, hmat.Dense, hmat.Dense) error { return nil },
		projected: func(_, _ hmat.Dense) error { return nil }}
	own, err := alone.components(ctx, p, k, 1, key)
	if err != nil {
		return err
	}
	got, err := p.keep(ctx, v)
	if err != nil {
		return err
	}
	mine, err := p.keep(ctx, own)
	if err != nil {
		return err
	}
	wide, ownWide := spread(v.ColRange(0, k)), spread(own)
	if got*lessKept < mine && wide*lessSpread < ownWide {
		return comm.Refused("the components must keep %.3g of this peer's features at least, or lie on %.3g columns "+
			"each (got %.3g and %.3g), where its own keep %.3g and lie on %.3g: the sums of another peer decide "+
			"them. Use encoder classes",
			mine/lessKept, ownWide/lessSpread, got, wide, mine, ownWide)
	}
	return nil
}

// spread returns the median number of columns in which a component is spread: 1/Σv⁴ of a component of length 1.
func spread(v hmat.Dense) float64 {
	all := make([]float64, v.Cols)
	for i := range v.Rows {
		for c, x := range v.Row(i) {
			all[c] += float64(x) * float64(x) * float64(x) * float64(x)
		}
	}
	slices.Sort(all)
	return 1 / max(all[len(all)/2], math.SmallestNonzeroFloat64)
}

// keep returns how much of the rows, of their squares, projections to v keep.
func (p products) keep(ctx context.Context, v hmat.Dense) (float64, error) {
	y, err := p.apply(ctx, v)
	square, all := 0.0, 0.0
	for _, x := range y.Data {
		square += float64(x) * float64(x)
	}
	for i := range p.x.Rows() {
		var row []float32
		if s := p.x.Sparse; s != nil {
			_, row = s.Row(i)
		} else {
			row = p.x.Dense.Row(i)
		}
		if slices.ContainsFunc(row, func(x float32) bool { return x != 0 }) {
			all++
		}
	}
	return square / max(all, 1), err
}
