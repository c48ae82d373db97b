package tape

import (
	"fmt"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// NewHead returns Linear, then ReLU, dropout of probability p and Linear for each further width: a
// classifier of rows of width in.
func NewHead(name string, in int, widths []int, p float32, key rng.Key) Operator {
	var s Stack
	for k, out := range widths {
		at := fmt.Sprintf("%s.%d", name, k)
		if k > 0 {
			s = append(s, NewActivation("relu"), &Dropout{at + ".dropout", p})
		}
		s = append(s, NewLinear(at, in, out, true, key))
		in = out
	}
	return s
}
