package aggregate

import (
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Sharing is how the matrices of relations share parameters; at most one of the two is set, and the
// zero value is a matrix of its own for each relation.
type Sharing struct {
	Bases  int // B: W_r = Σ_b a_rb V_b (Schlichtkrull et al., ESWC 2018, eq. 3)
	Blocks int // B: W_r = diag(Q_r1, …, Q_rB), each in/B × out/B (the same, eq. 4); in and out are multiples of it
}

// matrices are the in×out matrices W_r of R relations.
type matrices struct {
	relations, in, out, blocks int
	weight                     *tape.Param // (R·in)×(out/blocks), W_r or its blocks one below another; with bases (B·in)×out, V_b likewise
	coef                       *tape.Param // R×B: a; nil without bases
}

func newMatrices(name string, in, out, relations int, s Sharing, key rng.Key) matrices {
	m := matrices{relations: relations, in: in, out: out, blocks: max(s.Blocks, 1)}
	if s.Bases == 0 {
		m.weight = tape.Glorot(name+".weight", relations*in, out/m.blocks, in/m.blocks, out/m.blocks, key)
		return m
	}
	m.weight = tape.Glorot(name+".bases", s.Bases*in, out, in, out, key)
	m.coef = tape.Glorot(name+".coefficients", relations, s.Bases, relations, s.Bases, key)
	return m
}

// params returns the matrices, or the bases and their coefficients.
func (m *matrices) params() []*tape.Param {
	if m.coef == nil {
		return []*tape.Param{m.weight}
	}
	return []*tape.Param{m.weight, m.coef}
}

// begin computes the matrices where they are made of bases.
func (m *matrices) begin(acc *Acc) {
	acc.weight = m.weight.Value
	if m.coef != nil {
		acc.weight = acc.take(4, m.relations*m.in, m.out)
		b, n := m.coef.Value.Cols, m.in*m.out
		coef := m.coef.Value
		kernels.GemmNN(m.relations, n, b, coef.Data, coef.Stride, m.weight.Value.Data, n, acc.weight.Data, n, false)
	}
}

// beginGrad makes room for the gradient of the matrices.
func (m *matrices) beginGrad(dacc *Acc) {
	dacc.weight = m.weight.Grad
	if m.coef != nil {
		dacc.weight = dacc.take(4, m.relations*m.in, m.out)
		dacc.weight.Zero()
	}
}

// endGrad adds the gradient of the matrices to those of bases and coefficients.
func (m *matrices) endGrad(dacc *Acc) {
	if m.coef == nil {
		return
	}
	b, n := m.coef.Value.Cols, m.in*m.out
	dw := dacc.weight.Data
	kernels.GemmNT(m.relations, b, n, dw, n, m.weight.Value.Data, n, m.coef.Grad.Data, m.coef.Grad.Stride, true)
	kernels.GemmTN(b, n, m.relations, m.coef.Value.Data, m.coef.Value.Stride, dw, n, m.weight.Grad.Data, n, true)
}

// of returns W_r, or its blocks, in a stack of matrices.
func (m *matrices) of(weights mat.Dense, r int) mat.Dense {
	return weights.RowRange(r*m.in, (r+1)*m.in)
}

// block returns block b of W_r's blocks w, of x the columns that it takes, and of y those that it makes.
func (m *matrices) block(w, x, y mat.Dense, b int) (wb, xb, yb mat.Dense) {
	in, out := m.in/m.blocks, m.out/m.blocks
	return w.RowRange(b*in, (b+1)*in), x.ColRange(b*in, (b+1)*in), y.ColRange(b*out, (b+1)*out)
}

// product writes y = x·W_r.
func (m *matrices) product(y, x mat.Dense, weights mat.Dense, r int) {
	for b := range m.blocks {
		w, xb, yb := m.block(m.of(weights, r), x, y, b)
		kernels.GemmNN(x.Rows, w.Cols, w.Rows, xb.Data, xb.Stride, w.Data, w.Stride, yb.Data, yb.Stride, false)
	}
}

// weightGrad adds xᵀ·dy to the gradient of W_r.
func (m *matrices) weightGrad(grads, x, dy mat.Dense, r int) {
	for b := range m.blocks {
		dw, xb, db := m.block(m.of(grads, r), x, dy, b)
		kernels.GemmTN(dw.Rows, dw.Cols, x.Rows, xb.Data, xb.Stride, db.Data, db.Stride, dw.Data, dw.Stride, true)
	}
}

// inputGrad writes dx = dy·W_rᵀ.
func (m *matrices) inputGrad(dx, dy, weights mat.Dense, r int) {
	for b := range m.blocks {
		w, xb, db := m.block(m.of(weights, r), dx, dy, b)
		kernels.GemmNT(dy.Rows, w.Rows, w.Cols, db.Data, db.Stride, w.Data, w.Stride, xb.Data, xb.Stride, false)
	}
}

// sparseProduct writes y = x·W_r of sparse rows.
func (m *matrices) sparseProduct(y mat.Dense, x *mat.Sparse, weights mat.Dense, r int, t *tape.Tape) {
	at := t.Mark()
	w := m.of(weights, r)
	if m.blocks > 1 {
		w = t.Scratch(m.in, m.out)
		m.eachBlock(m.of(weights, r), w, func(part, whole []float32) { copy(whole, part) })
	}
	kernels.SpMM(x.RowPtr, x.Col, x.Val, m.out, w.Data, w.Stride, y.Data, y.Stride, false)
	t.Release(at)
}

// sparseWeightGrad adds to the gradient of W_r that of sparseProduct.
func (m *matrices) sparseWeightGrad(grads mat.Dense, x *mat.Sparse, dy mat.Dense, r int, t *tape.Tape) {
	if m.blocks == 1 {
		t.SparseGrad(m.of(grads, r), x, dy)
		return
	}
	at := t.Mark()
	dw := t.Scratch(m.in, m.out)
	t.SparseGrad(dw, x, dy)
	m.eachBlock(m.of(grads, r), dw, func(part, whole []float32) { kernels.Add(whole, part) })
	t.Release(at)
}

// eachBlock calls do with each row of the blocks w and its place in the matrix that they are.
func (m *matrices) eachBlock(w, whole mat.Dense, do func(part, whole []float32)) {
	in, out := m.in/m.blocks, m.out/m.blocks
	for i := range m.in {
		lo := i / in * out
		do(w.Row(i), whole.Row(i)[lo:lo+out])
	}
}
