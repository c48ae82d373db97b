package nn

import (
	"runtime/debug"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Tape holds what a forward pass keeps for its backward pass, last in first out, and the memory
// that both compute in. Reset it before each step: from the second step of a shape on nothing is
// allocated. A nil Tape means inference; one of NewInference is inference in memory that is kept.
//
// A tape remembers the transposes of the graphs and sparse inputs it has seen, by the address of
// their columns: they must not change between a step and the next.
type Tape struct {
	Key   rng.Key // of this step; dropout is a function of it, the operator's name, the node and the column
	Nodes []int64 // global node IDs of the current rows, keys of dropout; nil: the row's index. Layer.Forward sets it

	infer   bool
	kept    []entry
	arena   *arena
	trans   transposes
	sparse  []*mat.Sparse
	nSparse int
	dropped []dropped
	keys    []uint64 // of the rows of one of them
	accs    []*Acc
	nAccs   int
}

// entry is one thing kept; each operator fills in what its backward pass reads.
type entry struct {
	x, y   mat.Dense
	sparse *mat.Sparse
	route  route
	key    rng.Key
	nodes  []int64
	lost   dropped // of sparse; zero: that is the caller's own, the same at every step
	graph  *graph.CSR
	acc    *Acc
	again  Again
}

// NewTape returns an empty tape.
func NewTape() *Tape { return &Tape{arena: new(arena)} }

// NewInference returns a tape that drops nothing and keeps nothing but its memory.
func NewInference() *Tape { return NewTape().Inference() }

// Inference returns a tape for inference in t's memory: resetting either takes back what both have
// handed out.
func (t *Tape) Inference() *Tape { return &Tape{infer: true, arena: t.arena} }

// training reports whether there will be a backward pass.
func (t *Tape) training() bool { return t != nil && !t.infer }

// Reset forgets what was kept and takes back all scratch memory.
func (t *Tape) Reset() {
	t.kept = t.kept[:0]
	t.arena.release(mark{})
	if t.arena.gaps() {
		t.gather()
	}
	t.nSparse, t.nAccs, t.dropped = 0, 0, t.dropped[:0]
	t.trans.age()
}

// gather gives up the chunks of the arena for a single one: once in a run, if its steps are alike.
func (t *Tape) gather() {
	clear(t.kept[:cap(t.kept)]) // a reference would keep a chunk alive
	for _, a := range t.accs {
		a.sum, a.stat, a.norm, a.dst, a.slope, a.normSlope, a.weight = mat.Dense{}, mat.Dense{}, mat.Dense{}, mat.Dense{}, mat.Dense{}, mat.Dense{}, mat.Dense{}
	}
	held := t.arena.held()
	t.arena.chunks = nil
	if held > 1<<24 { // 64 MiB: it must be freed before as much is allocated
		debug.FreeOSMemory()
	}
}

// Mark is a place in what a tape has handed out.
type Mark struct{ at mark }

// Mark returns where t stands.
func (t *Tape) Mark() Mark {
	if t == nil {
		return Mark{}
	}
	return Mark{t.arena.at}
}

// Release takes back the memory handed out since m.
func (t *Tape) Release(m Mark) {
	if t != nil {
		t.arena.release(m.at)
	}
}

// Scratch returns a zeroed rows×cols matrix that is valid until Reset. A nil tape allocates it.
func (t *Tape) Scratch(rows, cols int) mat.Dense {
	m := t.raw(rows, cols)
	if t != nil {
		clear(m.Data)
	}
	return m
}

// raw is Scratch without the zeros.
func (t *Tape) raw(rows, cols int) mat.Dense {
	if t == nil {
		return mat.New(rows, cols)
	}
	return mat.View(rows, cols, t.arena.take(rows*cols))
}

func (t *Tape) push(e entry) {
	if t.training() {
		t.kept = append(t.kept, e)
	}
}

func (t *Tape) pop() entry {
	n := len(t.kept) - 1
	if n < 0 {
		panic("nn: Backward must follow its Forward")
	}
	e := t.kept[n]
	t.kept = t.kept[:n]
	return e
}

// view returns the header of a sparse matrix that lives until Reset.
func (t *Tape) view(s mat.Sparse) *mat.Sparse {
	if t == nil {
		v := s // s itself would be allocated at every call
		return &v
	}
	if t.nSparse == len(t.sparse) {
		t.sparse = append(t.sparse, new(mat.Sparse))
	}
	v := t.sparse[t.nSparse]
	t.nSparse++
	*v = s
	return v
}

// lost returns what dropout has made of the values of x, or zero where they are the caller's own.
func (t *Tape) lost(x *mat.Sparse) dropped {
	for _, d := range t.dropped {
		if len(x.Val) > 0 && d.at == &x.Val[0] {
			return d
		}
	}
	return dropped{}
}

// acc returns an accumulator that lives until Reset; its buffers stay for the next step.
func (t *Tape) acc() *Acc {
	if t == nil {
		return &Acc{}
	}
	if t.nAccs == len(t.accs) {
		t.accs = append(t.accs, &Acc{trans: &t.trans, arena: t.arena})
	}
	a := t.accs[t.nAccs]
	t.nAccs++
	return a
}

// node returns the global ID of row i.
func node(nodes []int64, i int) uint64 {
	if nodes == nil {
		return uint64(i)
	}
	return uint64(nodes[i])
}

// arena hands out float32s, forwards only: from a few chunks until it is known how many a step
// takes, then from one.
type arena struct {
	chunks [][]float32
	at     mark
	most   int // that were handed out at a time
}

type mark struct{ chunk, used, all int }

const chunkLen = 1 << 16 // 256 KiB: what a chunk's rest is too short for goes to the next one

func (a *arena) take(n int) []float32 {
	whole := (n + 15) &^ 15 // rows begin on a cache line
	for ; a.at.chunk < len(a.chunks); a.at.chunk, a.at.used = a.at.chunk+1, 0 {
		if c := a.chunks[a.at.chunk]; len(c)-a.at.used >= n {
			s := c[a.at.used : a.at.used+n : a.at.used+n]
			a.at.used = min(a.at.used+whole, len(c))
			a.at.all += whole
			a.most = max(a.most, a.at.all)
			return s
		}
	}
	least := chunkLen
	if len(a.chunks) == 0 {
		least = max(least, a.most)
	}
	a.chunks = append(a.chunks, kernels.Room(max(n, least)))
	return a.take(n)
}

func (a *arena) release(m mark) { a.at = m }

// gaps reports whether much of the chunks is left over: too short for what came next.
func (a *arena) gaps() bool {
	return len(a.chunks) > 1 && a.held() > a.most+a.most/32
}

func (a *arena) held() (n int) {
	for _, c := range a.chunks {
		n += len(c)
	}
	return n
}
