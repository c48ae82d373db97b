package tape

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
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
