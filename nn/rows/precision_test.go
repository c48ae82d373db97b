package rows

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// rounded returns m with its values rounded to bfloat16.
func rounded(m mat.Dense) mat.Dense {
	half, c := make([]uint16, m.Rows*m.Cols), m.Clone()
	kernels.ToBF16(c.Data, half)
	kernels.FromBF16(half, c.Data)
	return c
}

func drawn(key rng.Key, rows, cols int) mat.Dense {
	m := mat.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(key.Normal(uint64(i)))
	}
	return m
}

// TestBF16RoundsWhatProductsRead: with a tape in bfloat16 a linear map and its gradients, of dense and of sparse rows,
// in one piece or two, are those in float32 of rows, weights and gradients that were rounded before, up to the order of
// sums; and narrow maps are those of float32 to the bit.
func TestBF16RoundsWhatProductsRead(t *testing.T) {
	for _, c := range []struct {
		rows, in, out, pieces int
		sparse, gaps          bool
	}{
		{300, 64, 96, 1, false, false}, {77, 129, 65, 1, false, true}, {150, 128, 256, 2, false, true},
		{300, 64, 16, 1, false, false}, {90, 200, 64, 1, true, false}, {90, 200, 128, 2, true, false},
	} {
		narrow := min(c.in, c.out)/c.pieces < roundFrom && !c.sparse
		x, dy := drawn(rng.New(1), c.rows, c.in), drawn(rng.New(2), c.rows, c.out)
		var sparse *mat.Sparse
		if c.sparse {
			sparse = &mat.Sparse{Rows: c.rows, Cols: c.in, RowPtr: []int64{0}}
			for i := range c.rows {
				for j := i % 11; j < c.in; j += 11 {
					sparse.Col, sparse.Val = append(sparse.Col, int32(j)), append(sparse.Val, x.At(i, j))
				}
				sparse.RowPtr = append(sparse.RowPtr, int64(len(sparse.Col)))
			}
		}
		if c.gaps { // rows with others' values between them
			wide := drawn(rng.New(4), c.rows, c.in+3)
			wide.ColRange(0, c.in).CopyFrom(x)
			x = wide.ColRange(0, c.in)
		}
		run := func(half bool, of func(mat.Dense) mat.Dense) (y, dw, dx mat.Dense) {
			l, kept := NewBlockLinear("l", c.in, c.out, c.pieces, true, rng.New(3)), tape.New()
			kept.Half = half
			l.W.Value = of(l.W.Value)
			l.B.Value.Data[1] = 5
			y, dx = mat.New(c.rows, c.out), mat.New(c.rows, c.in)
			if c.sparse {
				l.Product(y, graph.Features{Sparse: sparse}, false, l.B, kept)
			} else {
				l.Forward(y, of(x), kept)
			}
			l.Backward(dx, of(dy), kept)
			if kept.Len() > 0 || kept.Mark() != (tape.Mark{}) {
				t.Errorf("%+v: memory is left on the tape", c)
			}
			return y, l.W.Grad, dx
		}
		as := func(m mat.Dense) mat.Dense { return m }
		before := as
		if !narrow {
			before = rounded
		}
		y, dw, dx := run(true, as)
		y0, dw0, dx0 := run(false, before)
		for k, pair := range [][2]mat.Dense{{y, y0}, {dw, dw0}, {dx, dx0}} {
			worst, top := 0.0, 0.0
			for i, v := range pair[0].Data {
				worst = max(worst, math.Abs(float64(v-pair[1].Data[i])))
				top = max(top, math.Abs(float64(v)))
			}
			if bound := 3e-6 * top; worst > bound || narrow && worst > 0 || top == 0 && !(c.sparse && k == 2) {
				t.Errorf("%+v: result %d differs by %g, must be at most %g", c, k, worst, bound)
			}
		}
	}
}
