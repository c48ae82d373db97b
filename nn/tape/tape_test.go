package tape

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestTapeMemory: scratch is zeroed, apart from all other scratch, and the same memory after Reset.
func TestTapeMemory(t *testing.T) {
	tape := New()
	shapes := [][2]int{{3, 5}, {1, chunkLen}, {7, 1}, {2, chunkLen}, {0, 4}, {4, 4}, {1, chunkLen - 16}, {1, 16},
		{1, 17}}
	var first []*float32
	for step := range 4 { // the first one is in chunks, the others in one piece that is as long as they need
		tape.Reset()
		var all []mat.Dense
		for k, s := range shapes {
			m := tape.Scratch(s[0], s[1])
			if m.Rows != s[0] || m.Cols != s[1] || m.Valid() != nil {
				t.Fatalf("scratch of %v is %d×%d, %v", s, m.Rows, m.Cols, m.Valid())
			}
			for i, v := range m.Data {
				if v != 0 {
					t.Fatalf("step %d, scratch %d: element %d is %v", step, k, i, v)
				}
				m.Data[i] = float32(k + 1)
			}
			all = append(all, m)
		}
		for k, m := range all {
			for i, v := range m.Data {
				if v != float32(k+1) {
					t.Fatalf("scratch %d shares element %d with scratch %v", k, i, v-1)
				}
			}
			if m.Empty() {
				continue
			}
			if step == 0 {
				continue
			}
			if step == 1 {
				first = append(first, &m.Data[0])
			} else if at := &m.Data[0]; at != first[0] {
				t.Fatalf("step %d: scratch %d is new memory", step, k)
			}
			if step > 1 {
				first = append(first[1:], first[0])
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Backward without its Forward does not panic")
		}
	}()
	tape.Pop()
}

// TestTransposesAge: a graph is transposed once while steps use it, and forgotten after a step that
// does not.
func TestTransposesAge(t *testing.T) {
	g := &graph.CSR{NumDst: 1, NumSrc: 1, RowPtr: []int64{0, 1}, Col: []int32{0}}
	tape := New()
	use := func() *Transpose { return tape.patterns.Transpose(g.RowPtr, g.Col, g.NumSrc) }
	first := use()
	for range 3 {
		tape.Reset()
		tape.Reset() // an idle Reset is no step
		if use() != first {
			t.Fatal("transposed again")
		}
	}
	tape.Reset()
	tape.patterns.Transpose([]int64{0, 1}, []int32{0}, 1) // a step on another graph
	tape.Reset()
	if len(tape.patterns.of) != 1 {
		t.Errorf("%d transposes are kept, want that of the last step", len(tape.patterns.of))
	}
}

// TestBF16 holds that a tape of BF16 rounds the factors of a map's three products, in one piece or two, and nothing
// else: a map and rows that are rounded before have the same output and gradients without it, except for sums' order.
func TestBF16(t *testing.T) {
	const rows, in, out = 90, 68, 34
	key := rng.New(4)
	round := func(x []float32) {
		half := make([]uint16, len(x))
		kernels.ToBF16(x, half)
		kernels.FromBF16(half, x)
	}
	for _, pieces := range []int{1, 2} {
		run := func(bf16, before bool) [][]float32 {
			l, kept := NewBlockLinear("l", in, out, pieces, true, key), New()
			kept.BF16 = bf16
			x, y, dy, dx := mat.New(rows, in), mat.New(rows, out), mat.New(rows, out), mat.New(rows, in)
			l.W.Grad, l.B.Grad = mat.New(l.W.Value.Rows, l.W.Value.Cols), mat.New(1, out)
			for i := range x.Data {
				x.Data[i] = float32(key.Fold(1).Normal(uint64(i)))
			}
			for i := range dy.Data {
				dy.Data[i] = float32(key.Fold(2).Normal(uint64(i)))
			}
			if before {
				round(x.Data)
				round(dy.Data)
				round(l.W.Value.Data)
			}
			l.Forward(y, x, kept)
			l.Backward(dx, dy, kept)
			return [][]float32{y.Data, dx.Data, l.W.Grad.Data}
		}
		got, want, exact := run(true, false), run(false, true), run(false, false)
		for k := range want {
			differs := false
			for i, v := range want[k] {
				if d := math.Abs(float64(got[k][i] - v)); !(d <= 1e-4) {
					t.Fatalf("%d pieces: value %d of matrix %d is %g, must be %g", pieces, i, k, got[k][i], v)
				}
				differs = differs || math.Abs(float64(got[k][i]-exact[k][i])) > 1e-3
			}
			if !differs {
				t.Errorf("%d pieces: matrix %d is not of rounded factors", pieces, k)
			}
		}
	}
}
