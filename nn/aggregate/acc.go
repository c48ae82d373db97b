package aggregate

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Acc is the state of an aggregator for each destination: the running aggregate between Begin and End, and what the
// backward pass needs until EndGrad. In its second role (dacc) it has the gradients until BeginGrad. The zero value is
// ready; Begin and EndGrad reuse its buffers, so an Acc that is kept from step to step allocates nothing.
type Acc struct {
	Train bool    // whether attention dropout is on
	Infer bool    // whether no gradient is needed
	Key   rng.Key // key of the step
	// Global node IDs, which key attention dropout (nil = the index). Dst is set before Begin; Src, the IDs of the
	// block's sources, before each Add and AddGrad.
	Dst, Src []int64
	EdgeX    mat.Dense // rows of the edges' columns, indexed by a block (graph.CSR.Edge); set before Begin
	State    any       // state of an Aggregator of another package from Begin on; it is kept from step to step

	key   rng.Key   // of attention dropout
	sum   mat.Dense // R×width: running sum, maximum or numerator; of dacc, the gradient of the aggregate
	stat  mat.Dense // R×heads: running maximum, then logarithm of the softmax's sum; of dacc, dh·h
	norm  mat.Dense // R×heads: running sum of the softmax
	dst   mat.Dense // R×heads: the destination's part of the logit; in dacc, its gradient
	edges mat.Dense // mapped columns of the edges; in dacc, their gradient
	ofDst []rng.Key // keys of attention dropout by destination
	from  int       // first source of the next band of gradients
	// sum, stat and norm are uninitialized; in dacc, the next gradient of sources is written, not added
	fresh  bool
	arg    []int32      // R×width: index of the maximum, counted through the blocks
	argNow []int32      // the same within one block
	blocks []addedBlock // blocks added so far
	added  int          // number of sources in them
	buf    [6][]float32 // memory of the matrices
	edge   []float32    // scratch of one Add or AddGrad
	weight mat.Dense    // matrices of relations; in dacc, their gradient
	sums   [][]float32  // [block] sums of its rows by relation

	messages *messageLoop

	loop loop          // loop of End and EndGrad, and of gatv2's edges
	tape *tape.Tape    // the tape that owns buf's memory until its Reset; nil if this Acc owns it
	own  tape.Patterns // used without a tape
}

// newAcc returns an Acc that is valid until t's Reset.
func newAcc(t *tape.Tape) *Acc {
	if t == nil {
		return new(Acc)
	}
	a := tape.Next[Acc](t)
	a.tape = t
	return a
}

// addedBlock is a block of sources that was added, with the number of sources before it.
type addedBlock struct {
	g    *graph.CSR
	base int
}

// begin makes a running row of zeros for each of rows destinations.
func (a *Acc) begin(rows, width int) {
	a.room(rows, width)
	a.sum.Zero()
}

// room is begin without zeros: the rows are uninitialized.
func (a *Acc) room(rows, width int) {
	a.added, a.blocks = 0, a.blocks[:0]
	a.sum = a.take(0, rows, width)
}

// Aggregate returns the aggregate if the aggregator keeps it.
func (a *Acc) Aggregate() mat.Dense { return a.sum }

// take returns buffer k as an uninitialized rows×cols matrix.
func (a *Acc) take(k, rows, cols int) mat.Dense {
	if a.tape != nil {
		return a.tape.Raw(rows, cols)
	}
	if cap(a.buf[k]) < rows*cols {
		a.buf[k] = make([]float32, rows*cols)
	}
	return mat.View(rows, cols, a.buf[k][:rows*cols])
}

// takeEdges returns scratch memory for one Add or AddGrad.
func (a *Acc) takeEdges(n int) []float32 {
	if cap(a.edge) < n {
		a.edge = make([]float32, n)
	}
	return a.edge[:n]
}

// takeUntil returns scratch memory until the tape's next Release.
func (a *Acc) takeUntil(n int) []float32 {
	if a.tape == nil {
		return a.takeEdges(n)
	}
	return a.tape.Raw(1, n).Data
}

// takeSums returns memory for the sums of block k.
func (a *Acc) takeSums(k, n int) []float32 {
	for len(a.sums) <= k {
		a.sums = append(a.sums, nil)
	}
	if cap(a.sums[k]) < n {
		a.sums[k] = make([]float32, n)
	}
	a.sums[k] = a.sums[k][:n]
	return a.sums[k]
}

// add records a block and returns the number of sources before it.
func (a *Acc) add(g *graph.CSR, who string, z mat.Dense) (base int) {
	checkBlock(who, a.sum.Rows, g, z)
	base = a.added
	a.blocks = append(a.blocks, addedBlock{g, base})
	a.added += g.NumSrc
	return base
}

// base returns the number of sources before an added block.
func (a *Acc) base(g *graph.CSR) int { return a.blocks[a.index(g)].base }

// index returns the index of a block among the added ones.
func (a *Acc) index(g *graph.CSR) int {
	k := slices.IndexFunc(a.blocks, func(b addedBlock) bool { return b.g == g })
	if k < 0 {
		panic("nn: AddGrad must follow Add of the same block")
	}
	return k
}

// patterns returns the tape's transposes, or a's own without a tape.
func (a *Acc) patterns() *tape.Patterns {
	if a.tape != nil {
		return a.tape.Patterns()
	}
	return &a.own
}

// Bytes returns the memory of a, without its tape.
func (a *Acc) Bytes() int64 {
	n := cap(a.arg) + cap(a.argNow) + cap(a.edge)
	n += 2 * cap(a.ofDst)
	for _, b := range a.buf {
		n += cap(b)
	}
	for _, s := range a.sums {
		n += cap(s)
	}
	return 4 * int64(n)
}

// checkBlock panics unless the rows of g and z have the numbers that a block must have.
func checkBlock(who string, rows int, g *graph.CSR, z mat.Dense) {
	if g.NumDst != rows {
		panic(shapeFault("destinations of a block for "+who, g.NumDst, rows))
	}
	if z.Rows != g.NumSrc {
		panic(shapeFault("rows of sources for "+who, z.Rows, g.NumSrc))
	}
}

func shapeFault(who string, got, must int) string {
	return fmt.Sprintf("%s must be %d (got %d)", who, must, got)
}
