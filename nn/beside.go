package nn

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Beside is y = [x₀·W₀ | x₁·W₁ | …] + b: x and y are cut into as many pieces of columns, of one width each, and each piece
// has a matrix of its own.
type Beside struct {
	Pieces int
	W      *Param // in×(out/pieces): the matrices one below another
	B      *Param // 1×out, or nil: no bias
}

// NewBeside returns a Beside of so many pieces; in and out are the widths of all together.
func NewBeside(name string, in, out, pieces int, key rng.Key) *Beside {
	return &Beside{
		Pieces: pieces,
		W:      glorot(name+".weight", in, out/pieces, in/pieces, out/pieces, key),
		B:      newParam(name+".bias", 1, out, 0),
	}
}

// NewSIGN is SIGN's first layer, a Beside of the features' aggregates of 0 to hops hops, which the encoder has put beside one
// another (Frasca et al., 2020, arXiv 2004.11198, eq. 4).
func NewSIGN(name string, in, out, hops int, key rng.Key) Conv {
	return Conv{Self: NewBeside(name+".self", in, out, hops+1, key)}
}

// Params returns the matrices and, where there is one, the bias.
func (b *Beside) Params() []*Param {
	if b.B == nil {
		return []*Param{b.W}
	}
	return []*Param{b.W, b.B}
}

// Dims returns the widths of all pieces together.
func (b *Beside) Dims() (in, out int) { return b.W.Value.Rows, b.Pieces * b.W.Value.Cols }

// Forward writes y and keeps x, which must stay as it is until Backward.
func (b *Beside) Forward(y, x mat.Dense, t *Tape) {
	in, out := b.Dims()
	checkShape("Beside", y, x.Rows, out)
	in, out = in/b.Pieces, out/b.Pieces
	for k := range b.Pieces {
		xk, yk, w := x.ColRange(k*in, (k+1)*in), y.ColRange(k*out, (k+1)*out), b.W.Value.RowRange(k*in, (k+1)*in)
		kernels.GemmNN(y.Rows, out, in, xk.Data, xk.Stride, w.Data, w.Stride, yk.Data, yk.Stride, false)
	}
	t.push(entry{x: x})
	addBias(y, b.B)
}

// ForwardSparse is Forward of a sparse x, one product: a row of each piece of a row. Its Backward takes an empty dx.
func (b *Beside) ForwardSparse(y mat.Dense, x *mat.Sparse, t *Tape) {
	_, out := b.Dims()
	checkShape("Beside", y, x.Rows, out)
	out /= b.Pieces
	pieces := t.view(mat.Sparse{Rows: x.Rows * b.Pieces, Cols: x.Cols, RowPtr: t.pieces(x, b.Pieces), Col: x.Col, Val: x.Val})
	into := y
	if !y.Compact() {
		into = t.raw(y.Rows, y.Cols)
	}
	kernels.SpMM(pieces.RowPtr, pieces.Col, pieces.Val, out, b.W.Value.Data, b.W.Value.Stride, into.Data, out, false)
	copyRows(y, into)
	if t.training() {
		t.push(entry{sparse: pieces, lost: t.lost(x)})
	}
	addBias(y, b.B)
}

// Backward adds to dx, piece by piece, and to the parameters' gradients.
func (b *Beside) Backward(dx, dy mat.Dense, t *Tape) {
	in, out := b.Dims()
	in, out = in/b.Pieces, out/b.Pieces
	biasGrad(b.B, dy)
	e := t.pop()
	if e.sparse != nil {
		m := t.arena.at
		if !dy.Compact() {
			d := t.raw(dy.Rows, dy.Cols)
			d.CopyFrom(dy)
			dy = d
		}
		sparseGrad(b.W.Grad, e.sparse, &e.lost, b.Pieces, mat.View(e.sparse.Rows, out, dy.Data), t)
		t.arena.release(m)
		return
	}
	for k := range b.Pieces {
		xk, d := e.x.ColRange(k*in, (k+1)*in), dy.ColRange(k*out, (k+1)*out)
		w, dw := b.W.Value.RowRange(k*in, (k+1)*in), b.W.Grad.RowRange(k*in, (k+1)*in)
		kernels.GemmTN(in, out, dy.Rows, xk.Data, xk.Stride, d.Data, d.Stride, dw.Data, dw.Stride, true)
		if !dx.Empty() {
			dxk := dx.ColRange(k*in, (k+1)*in)
			kernels.GemmNT(dy.Rows, in, out, d.Data, d.Stride, w.Data, w.Stride, dxk.Data, dxk.Stride, true)
		}
	}
}

// pieces returns the row pointers of x with each row cut into pieces of one width: row i's piece k is row i·pieces+k.
// A tape remembers them.
func (t *Tape) pieces(x *mat.Sparse, pieces int) []int64 {
	cut := func() []int64 {
		ptr, width := make([]int64, 1, x.Rows*pieces+1), x.Cols/pieces
		for i := range x.Rows {
			col, _ := x.Row(i)
			for k := range pieces {
				end, _ := slices.BinarySearch(col, int32((k+1)*width))
				ptr = append(ptr, x.RowPtr[i]+int64(end))
			}
		}
		return ptr
	}
	if t == nil || len(x.Col) == 0 {
		return cut()
	}
	p := pattern{&x.Col[0], x.Rows, x.Cols}
	c := t.trans.rows[p]
	if c == nil {
		if t.trans.rows == nil {
			t.trans.rows = map[pattern]*piecePtr{}
		}
		c = &piecePtr{ptr: cut()}
		t.trans.rows[p] = c
	}
	c.used, t.trans.used = t.trans.now, true
	return c.ptr
}

// piecePtr is the row pointers of the pieces of some rows.
type piecePtr struct {
	ptr  []int64
	used int
}

// Hops returns the rows x of g's nodes and beside them their weighted sums over 1 to hops hops.
func Hops(g *graph.CSR, x graph.Features, hops int) graph.Features {
	list := []graph.Features{x}
	for k := range hops {
		list = append(list, Aggregate(Sum{}, g, list[k]))
	}
	return Columns(list)
}

// Columns returns the rows of list beside one another, sparse if all of them are.
func Columns(list []graph.Features) graph.Features {
	rows, cols, sparse := list[0].Rows(), 0, true
	for _, f := range list {
		cols += f.Cols()
		sparse = sparse && f.Sparse != nil
	}
	if !sparse {
		out := mat.New(rows, cols)
		at := 0
		for _, f := range list {
			d := f.Dense
			if f.Sparse != nil {
				d = f.Sparse.Dense()
			}
			out.ColRange(at, at+d.Cols).CopyFrom(d)
			at += d.Cols
		}
		return graph.Features{Dense: out}
	}
	out := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	for i := range rows {
		at := int32(0)
		for _, f := range list {
			col, val := f.Sparse.Row(i)
			for _, j := range col {
				out.Col = append(out.Col, at+j)
			}
			out.Val = append(out.Val, val...)
			at += int32(f.Cols())
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return graph.Features{Sparse: out}
}

// OneHot returns a row for each class of the list, 1 at its column; of zeros where it is −1.
func OneHot(class []int32, classes int) graph.Features {
	s := &mat.Sparse{Rows: len(class), Cols: classes, RowPtr: make([]int64, len(class)+1)}
	for i, y := range class {
		if y >= 0 {
			s.Col, s.Val = append(s.Col, y), append(s.Val, 1)
		}
		s.RowPtr[i+1] = int64(len(s.Col))
	}
	return graph.Features{Sparse: s}
}
