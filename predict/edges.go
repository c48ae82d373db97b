package predict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// edges are the edges of a growing graph. A list of edges is never overwritten: a change makes a new list.
type edges struct {
	names    []string     // names of the relations
	in       [][][]inEdge // [1+relations][N] edges into each node, first of all relations
	both     []bool       // [1+relations] whether each edge has its reverse
	out      [][]int32    // [N] destinations of the node's out-edges
	weighted bool         // whether edges have weights
	degree   []float32    // [N] as in graph.CSR.Degrees
	columns  [][]float32  // rows of the edges' columns
	width    int          // number of columns
}

// inEdge is an edge into a node. A node's in-edges ascend by source.
type inEdge struct {
	from   int32
	column int32 // its row in columns (−1 = none)
	weight float32
}

func newEdges(s *shard.Shard) edges {
	e := edges{names: s.Typed.Names, weighted: s.Adj.Weight != nil, degree: s.Adj.Degrees(), width: s.EdgeX.Cols}
	list := []*graph.CSR{&s.Adj}
	for r := range e.names {
		list = append(list, s.Typed.Adj.Relation(r, len(e.names)))
	}
	for _, g := range list {
		all, in := make([]inEdge, g.NumEdges()), make([][]inEdge, g.NumDst)
		for k, j := range g.Col {
			all[k] = inEdge{from: j, column: -1, weight: 1}
			if g.Weight != nil {
				all[k].weight = g.Weight[k]
			}
			if g.Edge != nil {
				all[k].column = g.Edge[k]
			}
		}
		for i := range in {
			in[i] = all[g.RowPtr[i]:g.RowPtr[i+1]:g.RowPtr[i+1]]
		}
		e.in, e.both = append(e.in, in), append(e.both, g.Symmetric())
	}
	back := s.Adj.Transpose(nil)
	for i := range s.Adj.NumSrc {
		to, _ := back.Row(i)
		e.out = append(e.out, to)
	}
	for k := range s.EdgeX.Rows {
		e.columns = append(e.columns, s.EdgeX.Row(k))
	}
	return e
}

// grow adds a node without edges.
func (e *edges) grow() {
	for k := range e.in {
		e.in[k] = append(e.in[k], nil)
	}
	e.out, e.degree = append(e.out, nil), append(e.degree, 0)
}

// shrink removes all nodes except the first n.
func (e *edges) shrink(n int) {
	for k := range e.in {
		e.in[k] = e.in[k][:n]
	}
	e.out, e.degree = e.out[:n], e.degree[:n]
}

func fromOf(e inEdge, from int32) int { return cmp.Compare(e.from, from) }

// addEdge adds an edge, and its reverse if the other edges have theirs. It returns the nodes whose in-edges changed.
// Before each change it calls change with a function that reverts it.
func (e *edges) addEdge(one Edge, change func(back func())) (ends []int32, err error) {
	if err := e.check(one); err != nil {
		return nil, err
	}
	from, to, column := int32(one.From), int32(one.To), int32(-1)
	if e.width > 0 {
		column = int32(len(e.columns))
		change(func() { e.columns = e.columns[:column] })
		e.columns = append(e.columns, slices.Clone(one.Columns))
	}
	// Another relation may have an edge between the same two nodes. Then the list of all edges already has the edge,
	// with its weight, and only the relation's list gets it. A list is copied before it grows, since a prediction or
	// undo may use the old one.
	put := func(list int, from, to int32) {
		was := e.in[list][to]
		at, is := slices.BinarySearchFunc(was, from, fromOf)
		if is {
			return
		}
		change(func() { e.in[list][to] = was })
		e.in[list][to] = slices.Insert(slices.Clone(was), at, inEdge{from, column, cmp.Or(one.Weight, 1)})
	}
	reverse := func(list int) bool { return e.both[list] && !one.OneWay }
	lists := []int{0}
	if r := slices.Index(e.names, one.Relation); r >= 0 {
		lists = append(lists, 1+r)
		if back := slices.Index(e.names, one.Relation+inverse); back >= 0 && !one.OneWay {
			put(1+back, to, from)
		}
	}
	for _, list := range lists {
		if put(list, from, to); reverse(list) {
			put(list, to, from)
		}
	}
	if ends = []int32{to}; reverse(0) {
		ends = append(ends, from)
	}
	// Degrees are summed again instead of increased: a float32 that grows by one weight at a time differs in the last
	// bit from the sum over the whole row.
	for _, i := range ends {
		other := from + to - i
		degree, out := e.degree[i], e.out[other]
		change(func() { e.degree[i], e.out[other] = degree, out })
		sum := 0.0 // in the same order as graph.CSR.Degrees
		for _, one := range e.in[0][i] {
			sum += float64(one.weight)
		}
		e.degree[i] = float32(sum)
		if at, is := slices.BinarySearch(out, i); !is {
			e.out[other] = slices.Insert(slices.Clone(out), at, i)
		}
	}
	return ends, nil
}

// inverse is the suffix of a relation's name if it has the reversed edges of another one (graph.InverseNames).
const inverse = " (inverse)"

// check returns an error if the edge cannot be added.
func (e *edges) check(one Edge) error {
	// Self-loops are refused: norms add or remove a node's loop by themselves, so a second one would count twice.
	n, list := len(e.degree), 0
	if one.From < 0 || one.From >= n || one.To < 0 || one.To >= n || one.From == one.To {
		return fmt.Errorf("an edge must join two nodes from 0 to %d (got %d and %d)", n-1, one.From, one.To)
	}
	if len(one.Columns) != e.width {
		return fmt.Errorf("an edge must have %d columns (got %d)", e.width, len(one.Columns))
	}
	numbers := append([]float32{one.Weight}, one.Columns...)
	if err := (graph.Features{Dense: mat.View(1, len(numbers), numbers)}).Valid(); err != nil {
		return fmt.Errorf("weight and columns of an edge: %w", err)
	}
	if one.Weight < 0 || !e.weighted && one.Weight != 0 && one.Weight != 1 {
		return fmt.Errorf("the weight of an edge must be above 0, and 1 if the graph's edges have none (got %g)",
			one.Weight)
	}
	if one.Relation != "" || len(e.names) > 0 {
		list = 1 + slices.Index(e.names, one.Relation)
		if list == 0 || strings.HasSuffix(one.Relation, inverse) {
			return fmt.Errorf("the relation of an edge must be one of %q that does not end in %q (got %q)", e.names,
				inverse, one.Relation)
		}
	}
	if _, is := slices.BinarySearchFunc(e.in[list][one.To], int32(one.From), fromOf); is {
		return fmt.Errorf("the edge from node %d to node %d must be new (it is there)", one.From, one.To)
	}
	return nil
}

// block is the edges into some nodes, and the nodes that are their sources. Sources ascend, so that a sum over them has
// the same order as in the whole graph.
type block struct {
	graph.CSR
	sources []int32
	edgeX   mat.Dense // rows of columns, which Edge indexes
}

// neighbours gives each edge weight 1 and omits self-loops.
const neighbours graph.Norm = math.MaxUint8

// block returns the in-edges of nodes, of all relations together, with the weights of norm. If stacked, the relations
// are stacked one below the other, edges are unweighted, and the first sources are the nodes themselves. It first lists
// the sources and then numbers them: block columns must ascend by node, unlike numbers by order of arrival. A self-loop
// has its place by number, too: at the end, the sum would have another order than in the whole graph, and another last
// bit. A block has weights if and only if the whole graph's edges have them under this norm, so that the same loop sums
// them in the same way.
func (c *call) block(nodes []int32, norm graph.Norm, stacked bool) *block {
	lists, first := c.in[:1], 0
	if stacked {
		lists, first, norm = c.in[1:], len(nodes), graph.Plain
	}
	if n := c.nodes() - len(c.mark); n > 0 {
		c.mark = append(c.mark, make([]int32, n)...)
	}
	loops := norm == graph.Loops || norm == graph.GCN
	weighted := norm != graph.Plain && norm != graph.Loops && norm != neighbours || c.weighted && norm != neighbours
	b, total := &block{}, 0
	note := func(j int32) {
		if total++; c.mark[j] == 0 {
			c.mark[j] = 1
			b.sources = append(b.sources, j)
		}
	}
	for _, in := range lists {
		for _, i := range nodes {
			for _, one := range in[i] {
				note(one.from)
			}
			if loops {
				note(i)
			}
		}
	}
	slices.Sort(b.sources)
	for k, j := range b.sources {
		c.mark[j] = int32(first + k)
	}
	b.NumDst, b.NumSrc = len(lists)*len(nodes), first+len(b.sources)
	b.RowPtr, b.Col = make([]int64, 1, b.NumDst+1), make([]int32, 0, total)
	if weighted {
		b.Weight = make([]float32, 0, total)
	}
	if c.width > 0 {
		b.Edge, b.edgeX = make([]int32, 0, total), mat.New(total, c.width)
	}
	take := func(i int32, one inEdge) {
		if weighted {
			b.Weight = append(b.Weight, norm.Weigh(one.weight, c.degree[i], c.degree[one.from]))
		}
		if c.width > 0 {
			// Copied because the columns of added edges are elsewhere, but the block needs one matrix.
			row := int32(-1)
			if one.column >= 0 {
				row = int32(len(b.Edge))
				copy(b.edgeX.Row(int(row)), c.columns[one.column])
			}
			b.Edge = append(b.Edge, row)
		}
		b.Col = append(b.Col, c.mark[one.from])
	}
	for _, in := range lists {
		for _, i := range nodes {
			loop := loops
			for _, one := range in[i] {
				if loop && one.from >= i {
					take(i, inEdge{i, -1, 1})
					loop = false
				}
				if one.from != i || !loops && norm != neighbours { // the graph's own self-loop counts once
					take(i, one)
				}
			}
			if loop {
				take(i, inEdge{i, -1, 1})
			}
			b.RowPtr = append(b.RowPtr, int64(len(b.Col)))
		}
	}
	for _, j := range b.sources {
		c.mark[j] = 0
	}
	if stacked {
		b.sources = slices.Concat(nodes, b.sources)
	}
	return b
}

// layerBlock returns the block of a layer's edges into nodes.
func (c *call) layerBlock(l *nn.Layer, nodes []int32) *block {
	b := c.block(nodes, l.Edges, l.Conv.Relations > 0)
	if l.Conv.Relations > 0 {
		b.CSR = *l.Typed(&b.CSR, len(nodes))
	}
	return b
}
