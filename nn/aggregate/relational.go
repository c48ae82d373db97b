package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// relational is h_i = Σ_r Σ_j w_ijr z_j·W_r over the in-edges (j, i) of each of R relations (Schlichtkrull et al., ESWC
// 2018, eq. 2; graph.Mean makes w_ijr their 1/c_ir): z is S×in, h D×out. A block has R·D rows, relation by relation
// (graph.Relations).
//
// Rows with edges are summed first and multiplied then. The sums are kept for the gradient of W, so it reads no source.
type relational struct {
	plain
	matrices
}

// NewRelational returns the sum of RGCN over the given number of relations.
func NewRelational(name string, in, out, relations, bases int, key rng.Key) SparseAggregator {
	return &relational{matrices: newMatrices(name, in, out, relations, bases, key)}
}

// Params returns the matrices, or the bases and their coefficients.
func (a *relational) Params() []*tape.Param { return a.params() }

// Dims returns the widths of z and h.
func (a *relational) Dims() (in, out int) { return a.in, a.out }

// relation is the edges of one relation, and its destinations that have edges.
type relation struct {
	kind int
	g    graph.CSR
	dst  []int32
}

// relationCut is a block split into its relations.
type relationCut struct{ of []relation }

// cutRelations splits a block of R·D rows into its relations, without those that have no edges; acc caches them.
func cutRelations(acc *Acc, g *graph.CSR, relations int) []relation {
	if len(g.Col) == 0 {
		return nil
	}
	return tape.Remember(acc.patterns(), g.RowPtr, g.Col, g.NumSrc, func() *relationCut {
		cut, n := new(relationCut), g.NumDst/relations
		for k := range relations {
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

// Begin allocates the rows of the destinations, one for each row of z, and computes the matrices if they have bases.
func (a *relational) Begin(acc *Acc, z mat.Dense) {
	if z.Cols != a.in {
		panic(shapeFault("columns of relational's input", z.Cols, a.in))
	}
	a.begin(acc, z.Rows)
}

func (a *relational) begin(acc *Acc, rows int) {
	acc.begin(rows, a.out)
	a.matrices.begin(acc)
}

// cut records a block and returns its relations and, in training, memory for the sums of its rows.
func (a *relational) cut(acc *Acc, g *graph.CSR) (of []relation, rows int) {
	if g.NumDst != a.relations*acc.sum.Rows {
		panic(shapeFault("rows of a block for relational", g.NumDst, a.relations*acc.sum.Rows))
	}
	acc.blocks = append(acc.blocks, addedBlock{g: g})
	of = cutRelations(acc, g, a.relations)
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
		y := mat.View(n, out, scratch[:n*out])
		a.product(y, s, acc.weight, r.kind)
		scatter(acc.sum, y, r.dst)
		if !acc.Infer {
			sums = sums[n*in:]
		}
	}
}

// EndGrad keeps dh, which must not change until BeginGrad.
func (a *relational) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.sum = dh
	a.beginGrad(dacc)
}

// AddGrad adds Σ_r Σ_i w_ijr dh_i·W_rᵀ to each source's dz_j, and the block's part to the gradient of W. z may be
// empty.
func (a *relational) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	in, out := a.Dims()
	of := cutRelations(acc, g, a.relations)
	sums := acc.sums[acc.index(g)]
	scratch := acc.takeEdges(largest(of) * (in + out))
	for k := range of {
		r := &of[k]
		n := len(r.dst)
		d, ds := mat.View(n, out, scratch[:n*out]), mat.View(n, in, scratch[n*out:n*(out+in)])
		r.gather(d, dacc.sum)
		a.weightGrad(dacc.weight, mat.View(n, in, sums[:n*in]), d, r.kind)
		sums = sums[n*in:]
		if dz.Cols > 0 {
			a.inputGrad(ds, d, acc.weight, r.kind)
			sumGrad(dz, &r.g, ds, acc.patterns(), true)
		}
	}
}

// BeginGrad adds the gradient of the matrices to the gradients of bases and coefficients.
func (a *relational) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) { a.endGrad(dacc) }

// SumSparse writes the result of Begin, Add and End over sparse rows x to h. Rows are multiplied first, relation by
// relation: the sums of sparse rows would be dense. With rows of the identity, W_r is a learned row for each node and
// relation.
func (a *relational) SumSparse(h mat.Dense, g *graph.CSR, x *mat.Sparse, t *tape.Tape) {
	acc := newAcc(t)
	a.begin(acc, h.Rows)
	of, _ := a.cut(acc, g)
	m := t.Mark()
	z, y := t.Raw(x.Rows, a.out), t.Raw(largest(of), a.out)
	for k := range of {
		r := &of[k]
		a.sparseProduct(z, x, acc.weight, r.kind)
		s := y.RowRange(0, len(r.dst))
		sumInto(s, &r.g, z, false)
		scatter(acc.sum, s, r.dst)
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
	of := cutRelations(acc, g, a.relations)
	m := t.Mark()
	dz, d := t.Raw(x.Rows, dh.Cols), t.Raw(largest(of), dh.Cols)
	for k := range of {
		r := &of[k]
		d := d.RowRange(0, len(r.dst))
		r.gather(d, dh)
		sumGrad(dz, &r.g, d, acc.patterns(), false)
		a.sparseWeightGrad(dacc.weight, x, dz, r.kind, t)
	}
	t.Release(m)
	a.BeginGrad(mat.Dense{}, mat.Dense{}, acc, dacc)
}

// gather writes to y the rows of the relation's destinations in h.
func (r *relation) gather(y, h mat.Dense) {
	kernels.GatherRows(h.Cols, r.dst, h.Data, h.Stride, y.Data, y.Stride)
}

// largest returns the largest number of rows in a relation.
func largest(of []relation) (n int) {
	for k := range of {
		n = max(n, len(of[k].dst))
	}
	return n
}
