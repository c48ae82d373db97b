package tape

import "github.com/heddle-gnn/heddle/mat"

// Operator is an operator that acts on each row by itself: Linear, LayerNorm, ReLU, Dropout, or a Stack
// of them. BatchNorm alone, while it trains, sees all rows together.
type Operator interface {
	Params() []*Param
	Dims() (in, out int) // 0, 0: keeps any width
	// Forward writes y (R×out) from x (R×in). t is nil in inference: no dropout, nothing kept.
	Forward(y, x mat.Dense, t *Tape)
	// Backward takes what Forward kept, last in first out, and adds to dx (R×in; empty: not
	// computed) and to each Param's Grad.
	Backward(dx, dy mat.Dense, t *Tape)
}
