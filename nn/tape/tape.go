// Package tape has what training keeps of a forward pass for its backward pass: rows, the memory that both compute in
// and the transposes of sparse matrices; and the parameters that they train.
//
// Operators act on each row by itself, with hand-written backward passes: linear maps, activations, dropout, and stacks
// of them.
package tape

import (
	"runtime/debug"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Tape has the values that a forward pass keeps for its backward pass, last in first out, and the memory of both. Reset
// it before each step: from the second step of a shape on nothing is allocated. A nil Tape means inference;
// NewInference returns a Tape for inference that keeps its memory.
//
// A tape caches the transposes of graphs and sparse inputs by the address of their columns, which must not change
// between steps.
type Tape struct {
	Key   rng.Key // key of the step; dropout is a function of it, the operator's name, the node and the column
	Nodes []int64 // global IDs of the current rows (nil = their index), which key dropout; nn.Forward sets them
	BF16  bool    // factors of a Linear's dense products are rounded to bfloat16

	infer    bool
	kept     []Entry
	arena    *arena
	patterns Patterns
	pools    []pool
	dropped  []*dropped
}

// Entry is one thing kept; each operator fills in what its backward pass reads.
type Entry struct {
	X, Y   mat.Dense
	Sparse *mat.Sparse
	Key    rng.Key
	Nodes  []int64
	Graph  *graph.CSR
	State  any
	At     int
}

// New returns an empty tape.
func New() *Tape { return &Tape{arena: new(arena)} }

// NewInference returns a tape that drops nothing and keeps nothing but its memory.
func NewInference() *Tape { return New().Inference() }

// Inference returns a tape for inference in t's memory: resetting either one takes back the memory of both.
func (t *Tape) Inference() *Tape { return &Tape{infer: true, arena: t.arena} }

// Training reports whether there will be a backward pass.
func (t *Tape) Training() bool { return t != nil && !t.infer }

// Infers reports whether t is a tape for inference.
func (t *Tape) Infers() bool { return t != nil && t.infer }

// rounds reports whether factors of dense products are rounded.
func (t *Tape) rounds() bool { return t != nil && t.BF16 }

// Reset drops all entries and takes back all scratch memory.
func (t *Tape) Reset() {
	t.kept = t.kept[:0]
	t.arena.at = Mark{}
	if t.arena.gaps() {
		t.gather()
	}
	for _, p := range t.pools {
		p.reset()
	}
	t.dropped = t.dropped[:0]
	t.patterns.age()
}

// gather replaces the chunks of the arena by a single one: once in a run, if its steps are alike.
func (t *Tape) gather() {
	clear(t.kept[:cap(t.kept)]) // a reference would keep a chunk alive
	t.pools = nil
	held := t.arena.held()
	t.arena.chunks = nil
	if held > 1<<20 { // 4 MiB: it must be freed before as much is allocated
		debug.FreeOSMemory()
	}
}

// Mark returns the current end of t's used memory.
func (t *Tape) Mark() Mark {
	if t == nil {
		return Mark{}
	}
	return t.arena.at
}

// Release takes back the memory handed out since m.
func (t *Tape) Release(m Mark) {
	if t != nil {
		t.arena.at = m
	}
}

// Scratch returns a zeroed rows×cols matrix that is valid until Reset. A nil tape allocates it.
func (t *Tape) Scratch(rows, cols int) mat.Dense {
	m := t.Raw(rows, cols)
	if t != nil {
		clear(m.Data)
	}
	return m
}

// Raw is Scratch without the zeros.
func (t *Tape) Raw(rows, cols int) mat.Dense {
	if t == nil {
		return mat.New(rows, cols)
	}
	return mat.View(rows, cols, t.arena.take(rows*cols))
}

// Push keeps e in training.
func (t *Tape) Push(e Entry) {
	if !t.Training() {
		return
	}
	t.kept = append(t.kept, e)
}

// Pop removes and returns the last entry.
func (t *Tape) Pop() Entry {
	e := *t.Last(0)
	t.kept = t.kept[:len(t.kept)-1]
	return e
}

// Last returns the entry with the given number of entries after it.
func (t *Tape) Last(followed int) *Entry { return t.Entry(len(t.kept) - 1 - followed) }

// Entry returns the entry with the given number of entries before it.
func (t *Tape) Entry(before int) *Entry {
	if before < 0 {
		panic("nn: Backward must follow its Forward")
	}
	return &t.kept[before]
}

// Len returns how many entries are kept.
func (t *Tape) Len() int { return len(t.kept) }

// View returns the header of a sparse matrix that lives until Reset.
func (t *Tape) View(s mat.Sparse) *mat.Sparse {
	if t == nil {
		v := s // s itself would be allocated at every call
		return &v
	}
	v := Next[mat.Sparse](t)
	*v = s
	return v
}

// Patterns returns t's cache for sparse matrices.
func (t *Tape) Patterns() *Patterns {
	if t == nil {
		return nil
	}
	return &t.patterns
}

// pool is the values of one type that a tape hands out again in every step.
type pool interface {
	reset()
	bytes() int64
}

type pooled[T any] struct {
	all  []*T
	used int
}

func (p *pooled[T]) reset() { p.used = 0 }

func (p *pooled[T]) bytes() (n int64) {
	for _, x := range p.all {
		if x, ok := any(x).(interface{ Bytes() int64 }); ok {
			n += x.Bytes()
		}
	}
	return n
}

// Next returns a T for the caller until Reset, which keeps its memory from step to step: the zero value, or the value
// that the same call left in an earlier step.
func Next[T any](t *Tape) *T {
	var p *pooled[T]
	for _, q := range t.pools {
		if q, ok := q.(*pooled[T]); ok {
			p = q
		}
	}
	if p == nil {
		p = new(pooled[T])
		t.pools = append(t.pools, p)
	}
	if p.used == len(p.all) {
		p.all = append(p.all, new(T))
	}
	p.used++
	return p.all[p.used-1]
}

// NodeID returns the global ID of row i.
func NodeID(nodes []int64, i int) uint64 {
	if nodes == nil {
		return uint64(i)
	}
	return uint64(nodes[i])
}
