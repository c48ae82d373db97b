package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// relational is h_i = Σ_r Σ_j w_ijr z_j·W_r over the in-edges (j, i) of each of R relations
// (Schlichtkrull et al., ESWC 2018, eq. 2; graph.Mean makes w_ijr their 1/c_ir): z is S×in, h
// D×out. With B bases W_r = Σ_b a_rb V_b (eq. 3). A block has R·D rows, relation by relation
// (graph.Relations).
//
// The rows that have edges are summed first and multiplied then; their sums are kept for the
// gradient of W, which so reads no source.
type relational struct {
	plain
	Relations int
	In        int
	Weight    *tape.Param // (R·in)×out, W_r one below another; with bases (B·in)×out, V_b likewise
	Coef      *tape.Param // R×B: a; nil without bases
}

// NewRelational returns the sum over so many relations of RGCN; no bases: a matrix for each
// relation.
func NewRelational(name string, in, out, relations, bases int, key rng.Key) SparseAggregator {
	a := &relational{Relations: relations, In: in}
	if bases == 0 {
		a.Weight = tape.Glorot(name+".weight", relations*in, out, in, out, key)
		return a
	}
	a.Weight = tape.Glorot(name+".bases", bases*in, out, in, out, key)
	a.Coef = tape.Glorot(name+".coefficients", relations, bases, relations, bases, key)
	return a
}

// Params returns the matrices, or the bases and their coefficients.
func (a *relational) Params() []*tape.Param {
	if a.Coef == nil {
		return []*tape.Param{a.Weight}
	}
	return []*tape.Param{a.Weight, a.Coef}
}

// Dims returns the widths of z and h.
func (a *relational) Dims() (in, out int) { return a.In, a.Weight.Value.Cols }

// relation is the destinations of one relation that have edges, and these.
type relation struct {
	kind int
	g    graph.CSR
	dst  []int32
}

// relationCut is a block cut into its relations.
type relationCut struct{ of []relation }

// relations cuts a block of R·D rows into its relations, without those that have no edges; acc
// remembers them.
func (a *relational) relations(acc *Acc, g *graph.CSR) []relation {
	if len(g.Col) == 0 {
		return nil
	}
	return tape.Remember(acc.patterns(), g.RowPtr, g.Col, g.NumSrc, func() *relationCut {
		cut, n := new(relationCut), g.NumDst/a.Relations
		for k := range a.Relations {
			lo, hi := g.RowPtr[k*n], g.RowPtr[(k+1)*n]
			if lo == hi {
				continue
			}
			r := relation{kind: k, g: graph.CSR{NumSrc: g.NumSrc, RowPtr: []int64{0}, Col: g.Col[lo:hi:hi]}}
			if g.Weight != nil {
				r.g.Weight = g.Weight[lo:hi:hi]
			}
			for i := range n {
				if end := g.RowPtr[k*n+i+1]; end > g.RowPtr[k*n+i] {
					r.dst = append(r.dst, int32(i))
					r.g.RowPtr = append(r.g.RowPtr, end-lo)
				}
			}
			r.g.NumDst = len(r.dst)
			cut.of = append(cut.of, r)
		}
		return cut
	}).of
}

// Begin makes room for the rows of z, the destinations, and computes the matrices where they are
// made of bases.
func (a *relational) Begin(acc *Acc, z mat.Dense) {
	if z.Cols != a.In {
		panic(shapeFault("columns of relational's input", z.Cols, a.In))
	}
	a.begin(acc, z.Rows)
}

func (a *relational) begin(acc *Acc, rows int) {
	_, out := a.Dims()
	acc.begin(rows, out)
	acc.weight = a.Weight.Value
	if a.Coef != nil {
		acc.weight = acc.take(1, a.Relations*a.In, out)
		b, n := a.Coef.Value.Cols, a.In*out
		coef := a.Coef.Value
		kernels.GemmNN(a.Relations, n, b, coef.Data, coef.Stride, a.Weight.Value.Data, n, acc.weight.Data, n, false)
	}
}

// of returns W_r in a stack of matrices.
func (a *relational) of(weights mat.Dense, r int) mat.Dense {
	return weights.RowRange(r*a.In, (r+1)*a.In)
}

// cut notes a block and returns its relations and, in training, memory for the sums of its rows.
func (a *relational) cut(acc *Acc, g *graph.CSR) (of []relation, rows int) {
	if g.NumDst != a.Relations*acc.sum.Rows {
		panic(shapeFault("rows of a block for relational", g.NumDst, a.Relations*acc.sum.Rows))
	}
	acc.blocks = append(acc.blocks, block{g: g})
	of = a.relations(acc, g)
	for k := range of {
		rows += len(of[k].dst)
	}
	return of, rows
}

// Add adds a block of sources z.
func (a *relational) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	if z.Rows != g.NumSrc {
		panic(shapeFault("rows of sources for relational", z.Rows, g.NumSrc))
	}
	in, out := a.Dims()
	of, rows := a.cut(acc, g)
	var sums []float32
	if acc.Infer {
		sums = acc.takeSums(0, largest(of)*in)
	} else {
		sums = acc.takeSums(len(acc.blocks)-1, rows*in)
	}
	scratch := acc.takeEdges(largest(of) * out)
	for k := range of {
		r := &of[k]
		n := len(r.dst)
		s := mat.View(n, in, sums[:n*in])
		sumInto(s, &r.g, z, false)
		y, w := mat.View(n, out, scratch[:n*out]), a.of(acc.weight, r.kind)
		kernels.GemmNN(n, out, in, s.Data, s.Stride, w.Data, w.Stride, y.Data, y.Stride, false)
		r.scatter(acc.sum, y)
		if !acc.Infer {
			sums = sums[n*in:]
		}
	}
}

// EndGrad keeps dh, which must stay as it is until BeginGrad.
func (a *relational) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.sum, dacc.weight = dh, a.Weight.Grad
	if a.Coef != nil {
		dacc.weight = dacc.take(1, a.Relations*a.In, dh.Cols)
		dacc.weight.Zero()
	}
}

// AddGrad adds Σ_r Σ_i w_ijr dh_i·W_rᵀ to each source's dz_j and what the block brings to the
// gradient of W. z may be empty.
func (a *relational) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	in, out := a.Dims()
	of := a.relations(acc, g)
	sums := acc.sums[acc.index(g)]
	scratch := acc.takeEdges(largest(of) * (in + out))
	for k := range of {
		r := &of[k]
		n := len(r.dst)
		d, ds := mat.View(n, out, scratch[:n*out]), mat.View(n, in, scratch[n*out:n*(out+in)])
		r.gather(d, dacc.sum)
		w, dw := a.of(acc.weight, r.kind), a.of(dacc.weight, r.kind)
		kernels.GemmTN(in, out, n, sums, in, d.Data, d.Stride, dw.Data, dw.Stride, true)
		sums = sums[n*in:]
		if dz.Cols > 0 {
			kernels.GemmNT(n, in, out, d.Data, d.Stride, w.Data, w.Stride, ds.Data, ds.Stride, false)
			sumGrad(dz, &r.g, ds, acc.patterns())
		}
	}
}

// BeginGrad adds the gradient of the matrices to those of bases and coefficients.
func (a *relational) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {
	if a.Coef == nil {
		return
	}
	_, out := a.Dims()
	b, n := a.Coef.Value.Cols, a.In*out
	dw := dacc.weight.Data
	kernels.GemmNT(a.Relations, b, n, dw, n, a.Weight.Value.Data, n, a.Coef.Grad.Data, a.Coef.Grad.Stride, true)
	kernels.GemmTN(b, n, a.Relations, a.Coef.Value.Data, a.Coef.Value.Stride, dw, n, a.Weight.Grad.Data, n, true)
}

// SumSparse writes to h what Begin, Add and End make of sparse rows x, which are multiplied first,
// relation by relation: the sums of sparse rows would be dense. Rows of the identity make W_r a
// learned row for each node and relation.
func (a *relational) SumSparse(h mat.Dense, g *graph.CSR, x *mat.Sparse, t *tape.Tape) {
	acc := newAcc(t)
	_, out := a.Dims()
	a.begin(acc, h.Rows)
	of, _ := a.cut(acc, g)
	m := t.Mark()
	z, y := t.Raw(x.Rows, out), t.Raw(largest(of), out)
	for k := range of {
		r := &of[k]
		w := a.of(acc.weight, r.kind)
		kernels.SpMM(x.RowPtr, x.Col, x.Val, out, w.Data, w.Stride, z.Data, z.Stride, false)
		s := y.RowRange(0, len(r.dst))
		sumInto(s, &r.g, z, false)
		r.scatter(acc.sum, s)
	}
	t.Release(m)
	h.CopyFrom(acc.sum)
	t.Push(tape.Entry{State: acc, Sparse: x})
}

// SumSparseGrad adds to the gradients of the parameters.
func (a *relational) SumSparseGrad(dh mat.Dense, g *graph.CSR, t *tape.Tape) {
	e := t.Pop()
	x, acc, dacc := e.Sparse, e.State.(*Acc), newAcc(t)
	a.EndGrad(dacc, dh, acc)
	of := a.relations(acc, g)
	m := t.Mark()
	dz, d := t.Raw(x.Rows, dh.Cols), t.Raw(largest(of), dh.Cols)
	for k := range of {
		r := &of[k]
		d := d.RowRange(0, len(r.dst))
		r.gather(d, dh)
		dz.Zero()
		sumGrad(dz, &r.g, d, acc.patterns())
		t.SparseGrad(a.of(dacc.weight, r.kind), &e, 1, dz)
	}
	t.Release(m)
	a.BeginGrad(mat.Dense{}, mat.Dense{}, acc, dacc)
}

// scatter adds y's rows to those of the relation's destinations in h.
func (r *relation) scatter(h, y mat.Dense) {
	for k, i := range r.dst {
		kernels.Add(y.Row(k), h.Row(int(i)))
	}
}

// gather writes to y the rows of the relation's destinations in h.
func (r *relation) gather(y, h mat.Dense) {
	kernels.GatherRows(h.Cols, r.dst, h.Data, h.Stride, y.Data, y.Stride)
}

// largest returns the most rows that a relation has.
func largest(of []relation) (n int) {
	for k := range of {
		n = max(n, len(of[k].dst))
	}
	return n
}
