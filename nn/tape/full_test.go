package tape

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestGradientOfFullRows: the weights' gradient of sparse rows, few or many of whose values are
// stored, in one block or several, is that of the same rows as a dense matrix, the same elements
// dropped.
func TestGradientOfFullRows(t *testing.T) {
	for _, c := range []struct {
		rows, cols, out int
		share           float64
	}{
		{1500, 400, 64, 0.1}, {1500, 400, 64, 0.5}, {1500, 400, 70, 1}, {1500, 400, 8, 0.5}, {1311, 400, 65, 0.3},
		{1, 64, 64, 1}, {70, 5000, 64, 0.25}, {3, 2, 64, 0}, {0, 5, 64, 0},
	} {
		key := rng.New(3)
		x := &mat.Sparse{Rows: c.rows, Cols: c.cols, RowPtr: make([]int64, c.rows+1)}
		for i := range c.rows {
			for j := range c.cols {
				if u := key.Float64(uint64(i*c.cols + j)); u < c.share {
					x.Col, x.Val = append(x.Col, int32(j)), append(x.Val, float32(u+0.1))
				}
			}
			x.RowPtr[i+1] = int64(len(x.Col))
		}
		dy := mat.New(c.rows, c.out)
		for i := range dy.Data {
			dy.Data[i] = float32(key.Fold(1).Float64(uint64(i)) - 0.5)
		}
		gradient := func(x graph.Features) []float32 {
			l, kept := NewLinear("l", c.cols, c.out, false, rng.New(1)), New()
			l.W.Grad = mat.New(c.cols, c.out)
			kept.Key = rng.New(2)
			y := mat.New(c.rows, c.out)
			Forward(l, y, (&Dropout{"d", 0.4}).Features(x, kept), kept)
			l.Backward(mat.Dense{}, dy, kept)
			return l.W.Grad.Data
		}
		got, want := gradient(graph.Features{Sparse: x}), gradient(graph.Features{Dense: x.Dense()})
		for i, v := range want {
			if d := math.Abs(float64(got[i] - v)); !(d <= 1e-5*(1+math.Sqrt(float64(c.rows)))) {
				t.Fatalf("%+v: element %d is %v, want %v", c, i, got[i], v)
			}
		}
	}
}

// TestLostPatterns: step by step, as dropout leaves another pattern in the same memory, a linear map of sparse rows and
// its gradient are those of the same rows as a dense matrix, in one piece or two, in one block or several, of rows for
// L1 and for L2.
func TestLostPatterns(t *testing.T) {
	for _, c := range []struct{ rows, cols, out, pieces, every int }{{1200, 96, 64, 1, 5}, {700, 96, 48, 2, 5},
		{300, 400, 64, 1, 40}, {5000, 400, 64, 1, 40}} {
		key := rng.New(5)
		x := &mat.Sparse{Rows: c.rows, Cols: c.cols, RowPtr: make([]int64, c.rows+1)}
		for i := range c.rows {
			for j := i % c.every; j < c.cols; j += c.every {
				x.Col, x.Val = append(x.Col, int32(j)), append(x.Val, float32(key.Normal(uint64(i*c.cols+j))))
			}
			x.RowPtr[i+1] = int64(len(x.Col))
		}
		dy, kept := drawn(rng.New(6), c.rows, c.out), [2]*Tape{New(), New()}
		for step := range 3 {
			var y, dw [2]mat.Dense
			for k, in := range []graph.Features{{Sparse: x}, {Dense: x.Dense()}} {
				l := NewBlockLinear("l", c.cols, c.out, c.pieces, false, rng.New(7))
				kept[k].Reset()
				kept[k].Key = rng.New(uint64(step))
				y[k] = mat.New(c.rows, c.out)
				dropped := (&Dropout{"d", 0.4}).Features(in, kept[k])
				l.Product(y[k], dropped, false, nil, false, kept[k])
				l.Backward(mat.Dense{}, dy, kept[k])
				dw[k] = l.W.Grad
			}
			for k, pair := range [][2]mat.Dense{y, dw} {
				for i, v := range pair[0].Data {
					if d := math.Abs(float64(v - pair[1].Data[i])); !(d <= 1e-4) {
						t.Fatalf("%+v, step %d, result %d: element %d is %v, must be %v", c, step, k, i, v,
							pair[1].Data[i])
					}
				}
			}
		}
	}
}

func drawn(key rng.Key, rows, cols int) mat.Dense {
	m := mat.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(key.Normal(uint64(i)))
	}
	return m
}
