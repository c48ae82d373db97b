package sample

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Batch is what a step computes: message-flow blocks. The destinations of a block are its first sources.
type Batch struct {
	// Blocks by layer, the input's first. Destinations of block l are the first NumDst of Nodes, its sources the first
	// NumSrc; the last one's are the seeds.
	Blocks []*graph.CSR
	// columns of the edges of each block, which number their rows; without rows where edges have none
	EdgeX []mat.Dense
	Nodes []int32 // sources of Blocks[0]; the seeds come first

	Reached [][]bool // of each block, which of its rows' relations reach the destinations; nil unless Edges.Reached
}

// Builder makes blocks of what was sampled. It is not safe for concurrent use.
type Builder struct {
	// [N] base plus the place of a vertex in the batch, from 1 (base or less = it is not in the batch)
	place    []uint32
	base     uint32  // so that no batch has to take its vertices out of place again
	nodes    []int32 // of the block that is being made
	unsorted []int   // ends of the last rows, which are to be sorted
	touched  uint32  // result of loads that nothing reads: without it the compiler would drop them
	loops    bool
	kinds    int // relations
	columns  int // of edges
	reached  bool
	keys     []uint64
	old      []float32
	oldEdge  []int32
}

// NewBuilder returns a builder of blocks over n vertices, of edges sampled from such as e; where these have loops each
// destination has an edge from itself.
func NewBuilder(n int, e *InEdges) *Builder {
	b := &Builder{place: make([]uint32, n), loops: e.Loops, kinds: e.relations(), reached: e.Reached}
	if e.Edge != nil {
		b.columns = e.EdgeX.Cols
	}
	return b
}

// Begin makes b a batch of the seeds, which are distinct, without a block so far.
func (b *Batch) Begin(seeds []int32, hops int) {
	*b = Batch{Blocks: make([]*graph.CSR, hops), EdgeX: make([]mat.Dense, hops), Reached: make([][]bool, hops),
		Nodes: append(make([]int32, 0, 2*len(seeds)), seeds...)}
}

// Hop adds to batch the block of the given hop, whose destinations are all nodes so far. part[i] is the element of
// drawn with destination i's next rows (nil = all are in the first).
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
	f := filling{Builder: b, g: g, x: x, n: dst, nodes: b.begin(batch.Nodes, edges)}
	next := make([]taken, len(drawn))
	var reached []bool
	if b.reached {
		reached = make([]bool, g.NumDst)
	}
	for i := range dst {
		p := 0
		if part != nil {
			p = int(part[i])
		}
		d, of := &drawn[p], &next[p]
		row := of.rows
		of.rows += b.kinds
		for r, hi := range d.End[row:of.rows] {
			if reached != nil {
				reached[r*dst+i] = d.Reached[row+r]
			}
			if int(hi) > of.touched {
				of.touched = min(len(d.Src), int(hi)+ahead)
				b.touch(d.Src[of.edges:of.touched])
			}
			f.row(d, i, row, of.edges, int(hi))
			of.edges = int(hi)
		}
		if len(b.unsorted) >= chunk {
			f.sortRows()
		}
	}
	f.sortRows()
	if g.NumSrc = f.n; b.kinds > 1 {
		g = byRelation(g, b.kinds)
	}
	b.base += uint32(f.n)
	k := len(batch.Blocks) - 1 - hop
	batch.Nodes, batch.Blocks[k], batch.Reached[k] = slices.Clone(f.nodes[:f.n]), g, reached
	if b.columns > 0 {
		batch.EdgeX[k] = mat.View(len(f.x)/b.columns, b.columns, f.x)
	}
}

// begin places the nodes that a batch has before a hop of `edges` edges, and returns them with space for others.
func (b *Builder) begin(nodes []int32, edges int) []int32 {
	if most := len(nodes) + edges; uint64(b.base)+uint64(most) > math.MaxUint32 {
		clear(b.place)
		b.base = 0
	}
	for i, v := range nodes {
		if b.place[v] > b.base {
			panic(fmt.Sprintf("sample: vertex %d occurs twice in a batch", v))
		}
		b.place[v] = b.base + uint32(i) + 1
	}
	if most := len(nodes) + edges + 1; cap(b.nodes) < most {
		b.nodes = make([]int32, most+most/8)
	}
	all := b.nodes[:cap(b.nodes)]
	copy(all, nodes)
	return all
}

// taken is how much of what was sampled a block has, and how many of its edges' sources were touched.
type taken struct{ rows, edges, touched int }

// ahead is how many sources are touched at once: their places stay in the cache until their rows are filled in.
const ahead = 2048

// touch reads the places of sources, so that the memory fetches many lines at once: what fills in a row has too many
// steps between two loads for that.
func (b *Builder) touch(sources []int32) {
	var all uint32
	for _, v := range sources {
		all |= b.place[v]
	}
	b.touched = all
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
	g, at, n := f.g, f.at, f.n
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
		if place <= f.base {
			n++
			place = f.base + uint32(n)
		}
		f.place[v] = place
		g.Col[at] = int32(place - f.base - 1)
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
	f.unsorted = append(f.unsorted, at)
	g.RowPtr = append(g.RowPtr, int64(at))
}

// sortRows sorts the rows whose places have been read: a branch on one that is still to come would wait for it.
func (f *filling) sortRows() {
	rows := f.g.RowPtr[len(f.g.RowPtr)-1-len(f.unsorted):]
	for i, end := range f.unsorted {
		f.sortRow(f.g, int(rows[i]), end)
	}
	f.unsorted = f.unsorted[:0]
}

// byRelation returns g, whose rows are ordered by destination and then relation, ordered by relation and then
// destination.
func byRelation(g *graph.CSR, kinds int) *graph.CSR {
	rows := make([]int32, 0, g.NumDst)
	for r := range kinds {
		for row := r; row < g.NumDst; row += kinds {
			rows = append(rows, int32(row))
		}
	}
	return g.Relabel(rows, mat.EveryRow(g.NumSrc), g.NumSrc)
}

// sortRow sorts edges [lo, hi) of g by source. Rows are short, except rows of hubs that are taken whole.
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

// Batch returns a batch of the seeds, sampled from edges between n vertices that are all at hand.
func (s *Sampler) Batch(key rng.Key, seeds []int32, b *Builder) Batch {
	var batch Batch
	batch.Begin(seeds, len(s.config.Fanouts))
	for hop := range s.config.Fanouts {
		s.drawn[0].Reset()
		s.Draw(key, hop, batch.Nodes, &s.drawn[0])
		b.Hop(&batch, hop, s.drawn[:], nil)
	}
	return batch
}
