package sample

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// Batch is what a step computes: message-flow blocks, the destinations of each of which are its first sources.
type Batch struct {
	// Blocks by layer, the input's first. Destinations of block l are the first NumDst of Nodes, its sources the first
	// NumSrc; those of the last one are the seeds.
	Blocks []*graph.CSR
	EdgeX  []mat.Dense // columns of the edges of each block, which number their rows; without rows where edges have none
	Nodes  []int32     // sources of Blocks[0]; the seeds come first

	Reached [][]bool // of each block, which of its rows' relations reach the destinations; nil unless Edges.Reached
}

// Builder makes blocks of what was drawn. It is not safe for concurrent use.
type Builder struct {
	place   []int32 // [N] place of a vertex among those of the batch, from 1; 0: it is not among them
	loops   bool
	kinds   int // relations
	columns int // of edges
	reached bool
	keys    []uint64
	old     []float32
	oldEdge []int32
}

// NewBuilder returns a builder of blocks over n vertices, of edges drawn from such as e; where these have loops each
// destination has an edge from itself.
func NewBuilder(n int, e *Edges) *Builder {
	b := &Builder{place: make([]int32, n), loops: e.Loops, kinds: e.relations(), reached: e.Reached}
	if e.Edge != nil {
		b.columns = e.EdgeX.Cols
	}
	return b
}

// Begin makes b a batch of the seeds, which are distinct, without a block so far.
func (b *Batch) Begin(seeds []int32, hops int) {
	*b = Batch{Blocks: make([]*graph.CSR, hops), EdgeX: make([]mat.Dense, hops), Reached: make([][]bool, hops), Nodes: append(make([]int32, 0, 2*len(seeds)), seeds...)}
}

// Hop adds to batch the block of the given hop, whose destinations are all nodes so far. part[i] says in which of drawn
// the next rows are those of destination i; nil: all are in the first.
func (b *Builder) Hop(batch *Batch, hop int, drawn []Drawn, part []uint16) {
	dst, edges := len(batch.Nodes), 0
	scaled := false
	for k := range drawn {
		edges += len(drawn[k].Src)
		scaled = scaled || len(drawn[k].Weight) > 0 || len(drawn[k].Loop) > 0
	}
	if b.loops {
		edges += dst
	}
	g := &graph.CSR{NumDst: dst * b.kinds, RowPtr: make([]int64, 1, dst*b.kinds+1), Col: make([]int32, edges)}
	if scaled {
		g.Weight = make([]float32, edges)
	}
	var x []float32
	if b.columns > 0 {
		g.Edge, x = make([]int32, edges), make([]float32, 0, edges*b.columns)
	}
	f := filling{Builder: b, g: g, x: x, n: dst, nodes: make([]int32, dst+edges+1)}
	copy(f.nodes, batch.Nodes)
	for i, v := range batch.Nodes {
		if b.place[v] != 0 {
			panic(fmt.Sprintf("sample: vertex %d occurs twice in a batch", v))
		}
		b.place[v] = int32(i) + 1
	}
	next := make([]int32, 2*len(drawn)) // of each: rows and edges that were taken
	var reached []bool
	if b.reached {
		reached = make([]bool, g.NumDst)
	}
	for i := range dst {
		p := 0
		if part != nil {
			p = int(part[i])
		}
		d := &drawn[p]
		row := next[2*p]
		next[2*p] += int32(b.kinds)
		for r, hi := range d.End[row : int(row)+b.kinds] {
			if reached != nil {
				reached[r*dst+i] = d.Reached[int(row)+r]
			}
			f.row(d, i, int(row), int(next[2*p+1]), int(hi))
			next[2*p+1] = hi
		}
	}
	if g.NumSrc = f.n; b.kinds > 1 {
		g = byRelation(g, b.kinds)
	}
	for _, v := range f.nodes[:f.n] {
		b.place[v] = 0
	}
	k := len(batch.Blocks) - 1 - hop
	batch.Nodes, batch.Blocks[k], batch.Reached[k] = f.nodes[:f.n:f.n], g, reached
	if b.columns > 0 {
		batch.EdgeX[k] = mat.View(len(f.x)/b.columns, b.columns, f.x)
	}
}

// filling is a block that is being filled, row by row.
type filling struct {
	*Builder
	g     *graph.CSR
	x     []float32 // columns of the edges so far
	nodes []int32
	n, at int // nodes and edges so far
}

// row fills in the row of destination i of edges [lo, hi) of d; loop is the place of its loop's weight.
func (f *filling) row(d *Drawn, i, loop, lo, hi int) {
	g, from, at, n := f.g, f.at, f.at, f.n
	if f.loops {
		if g.Col[at] = int32(i); g.Weight != nil {
			g.Weight[at] = d.Loop[loop]
		}
		if g.Edge != nil {
			g.Edge[at] = -1
		}
		at++
	}
	first := at
	for _, v := range d.Src[lo:hi] {
		place := f.place[v]
		f.nodes[n] = v
		if place == 0 {
			n++
			place = int32(n)
		}
		f.place[v] = place
		g.Col[at] = place - 1
		at++
	}
	if g.Weight != nil {
		copy(g.Weight[first:at], d.Weight[lo:hi])
	}
	if g.Edge != nil {
		for k := range g.Edge[first:at] {
			g.Edge[first+k] = int32(len(f.x)/f.columns + k)
		}
		f.x = append(f.x, d.EdgeX[lo*f.columns:hi*f.columns]...)
	}
	f.n, f.at = n, at
	f.sortRow(g, from, at)
	g.RowPtr = append(g.RowPtr, int64(at))
}

// byRelation returns g, whose rows are those of each destination by relation, with those of each relation by destination.
func byRelation(g *graph.CSR, kinds int) *graph.CSR {
	rows := make([]int32, 0, g.NumDst)
	for r := range kinds {
		for row := r; row < g.NumDst; row += kinds {
			rows = append(rows, int32(row))
		}
	}
	same := make([]int32, g.NumSrc)
	for j := range same {
		same[j] = int32(j)
	}
	return g.Relabel(rows, same, g.NumSrc)
}

// sortRow sorts edges [lo, hi) of g by source. Rows are short but for those of hubs that are taken whole.
func (b *Builder) sortRow(g *graph.CSR, lo, hi int) {
	col := g.Col[lo:hi]
	switch {
	case len(col) > 64 || g.Edge != nil:
		b.sortLong(g, lo, hi)
	case g.Weight == nil:
		for i := 1; i < len(col); i++ {
			c, j := col[i], i
			for ; j > 0 && col[j-1] > c; j-- {
				col[j] = col[j-1]
			}
			col[j] = c
		}
	default:
		weight := g.Weight[lo:hi]
		for i := 1; i < len(col); i++ {
			c, w, j := col[i], weight[i], i
			for ; j > 0 && col[j-1] > c; j-- {
				col[j], weight[j] = col[j-1], weight[j-1]
			}
			col[j], weight[j] = c, w
		}
	}
}

// sortLong is sortRow of a long row, or of one whose edges have columns.
func (b *Builder) sortLong(g *graph.CSR, lo, hi int) {
	b.keys = b.keys[:0]
	for k, c := range g.Col[lo:hi] {
		b.keys = append(b.keys, uint64(c)<<32|uint64(k))
	}
	slices.Sort(b.keys)
	if g.Weight != nil {
		b.old = append(b.old[:0], g.Weight[lo:hi]...)
	}
	if g.Edge != nil {
		b.oldEdge = append(b.oldEdge[:0], g.Edge[lo:hi]...)
	}
	for k, key := range b.keys {
		if g.Col[lo+k] = int32(key >> 32); g.Weight != nil {
			g.Weight[lo+k] = b.old[uint32(key)]
		}
		if g.Edge != nil {
			g.Edge[lo+k] = b.oldEdge[uint32(key)]
		}
	}
}

// Batch returns a batch of the seeds, drawn from edges between n vertices that are all at hand.
func (s *Sampler) Batch(key rng.Key, seeds []int32, b *Builder) Batch {
	var batch Batch
	batch.Begin(seeds, len(s.config.Fanouts))
	drawn := make([]Drawn, 1)
	for hop := range s.config.Fanouts {
		drawn[0].Reset()
		s.Draw(key, hop, batch.Nodes, &drawn[0])
		b.Hop(&batch, hop, drawn, nil)
	}
	return batch
}
