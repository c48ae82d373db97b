package aggregate

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// denseRows are the dense rows of a block's sources and destinations, and their gradients.
type denseRows struct {
	z, own, dz, dOwn mat.Dense
	room             [2][]float32
}

// take returns memory k as a rows×cols matrix.
func (d *denseRows) take(k, rows, cols int) mat.Dense {
	if cap(d.room[k]) < rows*cols {
		d.room[k] = make([]float32, rows*cols)
	}
	return mat.View(rows, cols, d.room[k][:rows*cols])
}

// gather copies the given rows of x to memory k.
func (d *denseRows) gather(k int, x mat.Dense, rows []int32) mat.Dense {
	y := d.take(k, len(rows), x.Cols)
	kernels.GatherRows(x.Cols, rows, x.Data, x.Stride, y.Data, y.Stride)
	return y
}

func (d *denseRows) sources(y mat.Dense, m *matrices, weights mat.Dense, r *attended) {
	m.product(y, d.gather(0, d.z, r.src), weights, r.kind)
}

func (d *denseRows) destinations(q, u mat.Dense, r *attended) {
	x := d.gather(0, d.own, r.dst)
	kernels.GemmNN(q.Rows, q.Cols, u.Rows, x.Data, x.Stride, u.Data, u.Stride, q.Data, q.Stride, false)
}

func (d *denseRows) sourcesGrad(dy mat.Dense, m *matrices, weights, grads mat.Dense, r *attended) {
	m.weightGrad(grads, d.gather(0, d.z, r.src), dy, r.kind)
	if d.dz.Cols == 0 {
		return
	}
	dx := d.take(1, dy.Rows, m.in)
	m.inputGrad(dx, dy, weights, r.kind)
	scatter(d.dz, dx, r.src)
}

func (d *denseRows) destinationsGrad(dq, u, du mat.Dense, r *attended) {
	x, dx := d.gather(0, d.own, r.dst), d.take(1, dq.Rows, u.Rows)
	kernels.GemmTN(du.Rows, du.Cols, dq.Rows, x.Data, x.Stride, dq.Data, dq.Stride, du.Data, du.Stride, false)
	kernels.GemmNT(dq.Rows, u.Rows, u.Cols, dq.Data, dq.Stride, u.Data, u.Stride, dx.Data, dx.Stride, false)
	scatter(d.dOwn, dx, r.dst)
}

// scatter adds row k of x to row rows[k] of y.
func scatter(y, x mat.Dense, rows []int32) {
	for k, i := range rows {
		kernels.Add(x.Row(k), y.Row(int(i)))
	}
}

// sparseRows are the sparse rows of a graph's nodes, which need no gradient.
type sparseRows struct {
	x *mat.Sparse
	t *tape.Tape
}

// sources multiplies all rows, because sparse rows have no gather, and then gathers the relation's.
func (s *sparseRows) sources(y mat.Dense, m *matrices, weights mat.Dense, r *attended) {
	at := s.t.Mark()
	all := s.t.Raw(s.x.Rows, m.out)
	m.sparseProduct(all, s.x, weights, r.kind)
	kernels.GatherRows(m.out, r.src, all.Data, all.Stride, y.Data, y.Stride)
	s.t.Release(at)
}

func (s *sparseRows) destinations(q, u mat.Dense, r *attended) {
	at := s.t.Mark()
	all := s.t.Raw(s.x.Rows, u.Cols)
	kernels.SpMM(s.x.RowPtr, s.x.Col, s.x.Val, u.Cols, u.Data, u.Stride, all.Data, all.Stride, false)
	kernels.GatherRows(u.Cols, r.dst, all.Data, all.Stride, q.Data, q.Stride)
	s.t.Release(at)
}

func (s *sparseRows) sourcesGrad(dy mat.Dense, m *matrices, _, grads mat.Dense, r *attended) {
	at := s.t.Mark()
	m.sparseWeightGrad(grads, s.x, s.spread(dy, r.src), r.kind, s.t)
	s.t.Release(at)
}

func (s *sparseRows) destinationsGrad(dq, _, du mat.Dense, r *attended) {
	at := s.t.Mark()
	s.t.SparseGrad(du, s.x, s.spread(dq, r.dst))
	s.t.Release(at)
}

// spread returns a row for each node: d's for the given rows, zeros for the others.
func (s *sparseRows) spread(d mat.Dense, rows []int32) mat.Dense {
	all := s.t.Scratch(s.x.Rows, d.Cols)
	scatter(all, d, rows)
	return all
}
