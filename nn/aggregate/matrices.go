package aggregate

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// matrices are the in×out matrices W_r of R relations; with B bases, W_r = Σ_b a_rb V_b (Schlichtkrull et al., ESWC
// 2018, eq. 3).
type matrices struct {
	relations, in, out int
	weight             *tape.Param // (R·in)×out, the W_r one below another; with bases (B·in)×out, the V_b likewise
	coef               *tape.Param // R×B: coefficients a; nil without bases
}

// newMatrices returns matrices with the given number of bases (0 = each relation has its own matrix).
func newMatrices(name string, in, out, relations, bases int, key rng.Key) matrices {
	m := matrices{relations: relations, in: in, out: out}
	if bases == 0 {
		m.weight = tape.Glorot(name+".weight", relations*in, out, in, out, key)
		return m
	}
	m.weight = tape.Glorot(name+".bases", bases*in, out, in, out, key)
	m.coef = tape.Glorot(name+".coefficients", relations, bases, relations, bases, key)
	return m
}

// params returns the matrices, or the bases and their coefficients.
func (m *matrices) params() []*tape.Param {
	if m.coef == nil {
		return []*tape.Param{m.weight}
	}
	return []*tape.Param{m.weight, m.coef}
}

// begin computes the matrices if they have bases.
func (m *matrices) begin(acc *Acc) {
	acc.weight = m.weight.Value
	if m.coef != nil {
		acc.weight = acc.take(4, m.relations*m.in, m.out)
		b, n := m.coef.Value.Cols, m.in*m.out
		coef := m.coef.Value
		kernels.GemmNN(m.relations, n, b, coef.Data, coef.Stride, m.weight.Value.Data, n, acc.weight.Data, n, false)
	}
}

// beginGrad allocates the gradient of the matrices.
func (m *matrices) beginGrad(dacc *Acc) {
	dacc.weight = m.weight.Grad
	if m.coef != nil {
		dacc.weight = dacc.take(4, m.relations*m.in, m.out)
		dacc.weight.Zero()
	}
}

// endGrad adds the gradient of the matrices to the gradients of bases and coefficients.
func (m *matrices) endGrad(dacc *Acc) {
	if m.coef == nil {
		return
	}
	b, n := m.coef.Value.Cols, m.in*m.out
	dw := dacc.weight.Data
	kernels.GemmNT(m.relations, b, n, dw, n, m.weight.Value.Data, n, m.coef.Grad.Data, m.coef.Grad.Stride, true)
	kernels.GemmTN(b, n, m.relations, m.coef.Value.Data, m.coef.Value.Stride, dw, n, m.weight.Grad.Data, n, true)
}

// of returns W_r in a stack of matrices.
func (m *matrices) of(weights mat.Dense, r int) mat.Dense {
	return weights.RowRange(r*m.in, (r+1)*m.in)
}

// product writes y = x·W_r.
func (m *matrices) product(y, x mat.Dense, weights mat.Dense, r int) {
	w := m.of(weights, r)
	kernels.GemmNN(x.Rows, w.Cols, w.Rows, x.Data, x.Stride, w.Data, w.Stride, y.Data, y.Stride, false)
}

// weightGrad adds xᵀ·dy to the gradient of W_r.
func (m *matrices) weightGrad(grads, x, dy mat.Dense, r int) {
	dw := m.of(grads, r)
	kernels.GemmTN(dw.Rows, dw.Cols, x.Rows, x.Data, x.Stride, dy.Data, dy.Stride, dw.Data, dw.Stride, true)
}

// inputGrad writes dx = dy·W_rᵀ.
func (m *matrices) inputGrad(dx, dy, weights mat.Dense, r int) {
	w := m.of(weights, r)
	kernels.GemmNT(dy.Rows, w.Rows, w.Cols, dy.Data, dy.Stride, w.Data, w.Stride, dx.Data, dx.Stride, false)
}

// sparseProduct writes y = x·W_r of sparse rows.
func (m *matrices) sparseProduct(y mat.Dense, x *mat.Sparse, weights mat.Dense, r int) {
	w := m.of(weights, r)
	kernels.SpMM(x.RowPtr, x.Col, x.Val, m.out, w.Data, w.Stride, y.Data, y.Stride, false)
}

// sparseWeightGrad adds the gradient of sparseProduct to the gradient of W_r.
func (m *matrices) sparseWeightGrad(grads mat.Dense, x *mat.Sparse, dy mat.Dense, r int, t *tape.Tape) {
	t.SparseGrad(m.of(grads, r), x, dy)
}
