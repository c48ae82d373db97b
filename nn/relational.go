package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// newRGCN is y_i = x_i·W₀ + b + Σ_r mean_{j∈N_r(i)} x_j·W_r over typed edges normalised by
// graph.Mean: x R×In, y R×Out. The W_r are combinations of s.Bases bases, or a matrix each where
// that is 0 (Schlichtkrull et al., ESWC 2018, eqs. 2 and 3).
func newRGCN(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Self: newLinear(name+".self", s.In, s.Out, !s.BatchNorm, key),
		Agg:  newRelational(name+".nbr", s.In, s.Out, s.Relations, s.Bases, key), Relations: s.Relations,
	}
}

// weightsOfRGCN are those of a node's own row, of the relations or their bases, and the bases'
// coefficients.
func weightsOfRGCN(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, s.Out)
	matrices := s.Bases
	if matrices == 0 {
		matrices = s.Relations
	}
	for range matrices {
		matrix(s.In, s.Out)
	}
	matrix(s.Relations, s.Bases)
}

// relational is h_i = Σ_r Σ_j w_ijr z_j·W_r over the in-edges (j, i) of each of R relations
// (Schlichtkrull et al., ESWC 2018, eq. 2; graph.Mean makes w_ijr their 1/c_ir): z is S×in, h
// D×out. With B bases W_r = Σ_b a_rb V_b (eq. 3). A block has R·D rows, relation by relation
// (graph.Relations).
//
// The rows that have edges are summed first and multiplied then; their sums are kept for the
// gradient of W, which so reads no source.
type relational struct {
	Relations int
	In        int
	Weight    *Param // (R·in)×out, W_r one below another; with bases (B·in)×out, V_b likewise
	Coef      *Param // R×B: a; nil without bases
}

// newRelational returns a Relational of that many relations and bases; no bases: a matrix for each
// relation.
func newRelational(name string, in, out, relations, bases int, key rng.Key) *relational {
	a := &relational{Relations: relations, In: in}
	if bases == 0 {
		a.Weight = glorot(name+".weight", relations*in, out, in, out, key)
		return a
	}
	a.Weight = glorot(name+".bases", bases*in, out, in, out, key)
	a.Coef = glorot(name+".coefficients", relations, bases, relations, bases, key)
	return a
}

// Params returns the matrices, or the bases and their coefficients.
func (a *relational) Params() []*Param {
	if a.Coef == nil {
		return []*Param{a.Weight}
	}
	return []*Param{a.Weight, a.Coef}
}

// IsSum returns false.
func (a *relational) IsSum() bool { return false }

// NeedsSource returns false.
func (a *relational) NeedsSource() bool { return false }

// Dims returns the widths of z and h.
func (a *relational) Dims() (in, out int) { return a.In, a.Weight.Value.Cols }

// relation is the destinations of one relation that have edges, and these.
type relation struct {
	kind int
	g    graph.CSR
	dst  []int32
}

// relations cuts a block of R·D rows into its relations, without those that have no edges; it
// remembers them.
func (ts *transposes) relations(g *graph.CSR, count int) []relation {
	if len(g.Col) == 0 {
		return nil
	}
	p := pattern{&g.Col[0], g.NumDst, g.NumSrc}
	c := ts.cuts[p]
	if c == nil {
		c = &relationCut{}
		if ts.cuts == nil {
			ts.cuts = map[pattern]*relationCut{}
		}
		ts.cuts[p] = c
		n := g.NumDst / count
		for k := range count {
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
			c.of = append(c.of, r)
		}
	}
	c.used, ts.used = ts.now, true
	return c.of
}

// relationCut is a block cut into its relations.
type relationCut struct {
	of   []relation
	used int
}

// Begin makes room for the rows of z, the destinations, and computes the matrices where they are
// made of bases.
func (a *relational) Begin(acc *Acc, z mat.Dense) {
	if z.Cols != a.In {
		panic(shapeFault("columns of Relational's input", z.Cols, a.In))
	}
	a.begin(acc, z.Rows)
}

func (a *relational) begin(acc *Acc, rows int) {
	_, out := a.Dims()
	acc.begin(rows)
	acc.sum = acc.take(0, rows, out)
	acc.sum.Zero()
	acc.weight = a.Weight.Value
	if a.Coef != nil {
		acc.weight = acc.take(1, a.Relations*a.In, out)
		b, n := a.Coef.Value.Cols, a.In*out
		kernels.GemmNN(a.Relations, n, b, a.Coef.Value.Data, a.Coef.Value.Stride, a.Weight.Value.Data, n, acc.weight.Data, n, false)
	}
}

// of returns W_r in a stack of matrices.
func (a *relational) of(weights mat.Dense, r int) mat.Dense {
	return weights.RowRange(r*a.In, (r+1)*a.In)
}

// cut notes a block and returns its relations and, in training, memory for the sums of its rows.
func (a *relational) cut(acc *Acc, g *graph.CSR) (of []relation, rows int) {
	if g.NumDst != a.Relations*acc.rows {
		panic(shapeFault("rows of a block for Relational", g.NumDst, a.Relations*acc.rows))
	}
	acc.blocks = append(acc.blocks, block{g: g})
	of = acc.transposes().relations(g, a.Relations)
	for k := range of {
		rows += len(of[k].dst)
	}
	return of, rows
}

// Add adds a block of sources z.
func (a *relational) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	if z.Rows != g.NumSrc {
		panic(shapeFault("rows of sources for Relational", z.Rows, g.NumSrc))
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

// End writes the sums to h.
func (a *relational) End(h mat.Dense, acc *Acc) { h.CopyFrom(acc.sum) }

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
	of := acc.transposes().relations(g, a.Relations)
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
			sumGrad(dz, &r.g, ds, acc.transposes())
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

// sumSparse writes to h what Begin, Add and End make of sparse rows x, which are multiplied first,
// relation by relation: the sums of sparse rows would be dense. Rows of the identity make W_r a
// learned row for each node and relation.
func (a *relational) sumSparse(h mat.Dense, g *graph.CSR, x *mat.Sparse, t *Tape) {
	acc := t.acc()
	_, out := a.Dims()
	a.begin(acc, h.Rows)
	of, _ := a.cut(acc, g)
	var m mark
	if t != nil {
		m = t.arena.at
	}
	z, y := t.raw(x.Rows, out), t.raw(largest(of), out)
	for k := range of {
		r := &of[k]
		w := a.of(acc.weight, r.kind)
		kernels.SpMM(x.RowPtr, x.Col, x.Val, out, w.Data, w.Stride, z.Data, z.Stride, false)
		s := y.RowRange(0, len(r.dst))
		sumInto(s, &r.g, z, false)
		r.scatter(acc.sum, s)
	}
	if t != nil {
		t.arena.release(m)
	}
	h.CopyFrom(acc.sum)
	if t.training() {
		t.push(entry{acc: acc, sparse: x, lost: t.lost(x)})
	}
}

// sumSparseGrad adds to the gradients of the parameters.
func (a *relational) sumSparseGrad(dh mat.Dense, g *graph.CSR, t *Tape) {
	e := t.pop()
	x, dacc := e.sparse, t.acc()
	a.EndGrad(dacc, dh, e.acc)
	of := e.acc.transposes().relations(g, a.Relations)
	m := t.arena.at
	dz, d := t.raw(x.Rows, dh.Cols), t.raw(largest(of), dh.Cols)
	for k := range of {
		r := &of[k]
		d := d.RowRange(0, len(r.dst))
		r.gather(d, dh)
		dz.Zero()
		sumGrad(dz, &r.g, d, e.acc.transposes())
		sparseGrad(a.of(dacc.weight, r.kind), x, &e.lost, 1, dz, t)
	}
	t.arena.release(m)
	a.BeginGrad(mat.Dense{}, mat.Dense{}, e.acc, dacc)
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
