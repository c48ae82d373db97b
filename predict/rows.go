package predict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// rows are a graph and its nodes' rows after each stage of a model.
type rows struct {
	edges
	model   *nn.Model
	x       []features    // [N] features of the nodes
	sparse  bool          // whether features are sparse
	inputs  int           // columns of the features
	labels  graph.Labels  // as the model reads them
	split   []graph.Split // [N]
	trained bool          // whether a training node of the graph has a label

	input  *stage   // the features
	stages []*stage // in the order of computation, the input first
	last   *stage   // the logits, which are kept only for validates
	// labelled validation nodes, if all logits are moved depending on their rows (nn.Spec.SiteShares)
	validates []int32

	undo []func() // reverts the current Update's changes, last first; nil outside an Update
}

// features are a node's features: all, or if they are sparse the stored ones.
type features struct {
	col []int32
	val []float32
}

// A stage computes one row for each node, from rows of other stages at the node and, with near, at its neighbours. A
// kept row is valid if it is not nil; then the rows that it was computed from were valid and have not changed since. A
// row is never overwritten: a change makes a new row.
type stage struct {
	own  []*stage // stages that it reads at the node itself
	near *stage   // stage that it reads at the node's neighbours (nil = none)
	// weights of the edges to the neighbours; through them a changed degree affects neighbours, too
	norm    graph.Norm
	degrees bool // whether it reads the node's degree
	reach   int  // greatest distance, in hops, of a node that affects a row

	rows  [][]float32 // [N] (nil row = not valid); nil for the input
	dirty []int32     // nodes whose rows a change has just invalidated
	all   bool        // whether the change has invalidated all rows

	// compute returns the rows of nodes, in the order of the list.
	compute func(c *call, nodes []int32) (mat.Dense, error)
}

// call computes rows: it has scratch memory, and whether it may keep rows.
type call struct {
	*rows
	write bool
	mark  []int32 // [≥ N] zeros; indices of sources while a block is made
}

// errInvalid is returned if rows must be computed and a call must not keep any.
var errInvalid = errors.New("rows are not valid")

func newRows(m *nn.Model, s *shard.Shard, trained bool) *rows {
	p := &rows{edges: newEdges(s), model: m, inputs: s.X.Cols(), trained: trained, labels: s.Labels,
		split: slices.Clip(s.Split)}
	l := &p.labels // added nodes do not change the graph's own lists
	l.Class, l.Bits, l.Values = slices.Clip(l.Class), slices.Clip(l.Bits), slices.Clip(l.Values)
	p.sparse = s.X.Sparse != nil
	for i := range s.Owned {
		if p.sparse {
			col, val := s.X.Sparse.Row(i)
			p.x = append(p.x, features{col, val})
		} else {
			p.x = append(p.x, features{val: s.X.Dense.Row(i)})
		}
	}
	p.input = &stage{}
	p.stages = []*stage{p.input}
	if m.Closed != nil {
		p.last = p.addClosed(m.Closed)
	} else {
		p.last = p.addLayers()
	}
	if m.Spec.SiteShares != nil {
		for i, class := range graph.ClassIn(graph.Val, p.labels, p.split) {
			if class >= 0 {
				p.validates = append(p.validates, int32(i))
			}
		}
	}
	return p
}

func (p *rows) nodes() int { return len(p.split) }

// add appends a stage after those that it reads.
func (p *rows) add(s *stage) *stage {
	for _, of := range s.own {
		s.reach = max(s.reach, of.reach)
	}
	if s.near != nil {
		s.reach = max(s.reach, s.near.reach+1)
	}
	s.rows = make([][]float32, p.nodes())
	p.stages = append(p.stages, s)
	return s
}

// buildBand is how many rows are computed at a time, which bounds the memory for gathered inputs.
const buildBand = 1 << 14

// build computes all rows that are kept.
func (p *rows) build() error {
	c, all := &call{rows: p, write: true}, mat.EveryRow(p.nodes())
	for _, s := range p.stages[1:] {
		nodes := all
		if s == p.last {
			nodes = p.validates
		}
		for band := range slices.Chunk(nodes, buildBand) {
			if err := c.validate(s, band); err != nil {
				return err
			}
		}
	}
	return nil
}

// size returns the bytes of all kept rows and their slice headers.
func (p *rows) size() (n int64) {
	for _, s := range p.stages[1:] {
		for _, row := range s.rows {
			n += 24 + 4*int64(len(row))
		}
	}
	return n
}

// logits returns the logits of nodes.
func (c *call) logits(nodes []int) (mat.Dense, error) {
	list := make([]int32, len(nodes))
	for k, i := range nodes {
		if i < 0 || i >= c.nodes() {
			return mat.Dense{}, fmt.Errorf("node must be 0 to %d (got %d)", c.nodes()-1, i)
		}
		list[k] = int32(i)
	}
	if len(list) == 0 {
		return mat.Dense{}, nil
	}
	// Computed even if valid: predictions are not kept, except for the validation nodes that shares read.
	y, err := c.last.compute(c, list)
	if err != nil || c.validates == nil {
		return y, err
	}
	// Validation nodes first, so that they are summed as in the whole graph.
	n := len(c.validates)
	first, err := c.get(c.last, c.validates)
	if err != nil {
		return y, err
	}
	all, class := mat.New(n+len(list), y.Cols), slices.Repeat([]int32{-1}, n+len(list))
	copy(class, c.labels.Select(c.validates).Class)
	all.RowRange(0, n).CopyFrom(first)
	all.RowRange(n, all.Rows).CopyFrom(y)
	c.model.Spec.SiteShares.Apply(all, class)
	for k, i := range list {
		at, is := slices.BinarySearch(c.validates, i)
		if !is {
			at = n + k
		}
		copy(y.Row(k), all.Row(at))
	}
	return y, nil
}

// validate computes the rows of nodes that are not valid.
func (c *call) validate(s *stage, nodes []int32) error {
	var list []int32
	for _, i := range nodes {
		if s.rows[i] == nil {
			list = append(list, i)
		}
	}
	if list == nil {
		return nil
	}
	if !c.write {
		return errInvalid
	}
	// In ascending order and once each, as in the whole graph: a stage can then sum in the same order, and a node that
	// a request names twice is computed once.
	slices.Sort(list)
	list = slices.Compact(list)
	y, err := s.compute(c, list)
	if err != nil {
		return err
	}
	for k, i := range list {
		row := y.Row(k)
		// The row of a reverted Update was computed from the changed graph, so it is dropped as well. Nodes that keep
		// their row are not in the list.
		if c.undo != nil {
			c.change(func() { s.rows[i] = nil })
		}
		// The row shares its memory with the others of this band, and other goroutines may read it from now on. Without
		// spare capacity an append cannot overwrite the next row.
		s.rows[i] = row[:len(row):len(row)]
	}
	return nil
}

// get returns the rows of nodes after stage s, which it makes valid. They are read-only.
func (c *call) get(s *stage, nodes []int32) (mat.Dense, error) {
	if s == c.input {
		in, err := c.layerInput(s, nodes)
		return in.X.Dense, err
	}
	if err := c.validate(s, nodes); err != nil || len(nodes) == 0 {
		return mat.Dense{}, err
	}
	// All rows of a stage have the same width, which is known after the first computation.
	width := len(s.rows[nodes[0]])
	if len(nodes) == 1 {
		return mat.View(1, width, s.rows[nodes[0]]), nil
	}
	y := mat.New(len(nodes), width)
	for k, i := range nodes {
		copy(y.Row(k), s.rows[i])
	}
	return y, nil
}

// features returns the features of nodes, sparse if the graph's are.
func (c *call) features(nodes []int32) graph.Features {
	if !c.sparse {
		y := mat.New(len(nodes), c.inputs)
		for k, i := range nodes {
			copy(y.Row(k), c.x[i].val)
		}
		return graph.Features{Dense: y}
	}
	x := &mat.Sparse{Rows: len(nodes), Cols: c.inputs, RowPtr: make([]int64, 1, len(nodes)+1)}
	n := 0
	for _, i := range nodes {
		n += len(c.x[i].col)
		x.RowPtr = append(x.RowPtr, int64(n))
	}
	x.Col, x.Val = make([]int32, 0, n), make([]float32, 0, n)
	for _, i := range nodes {
		x.Col, x.Val = append(x.Col, c.x[i].col...), append(x.Val, c.x[i].val...)
	}
	return graph.Features{Sparse: x}
}

// labelled returns labels and splits of nodes.
func (p *rows) labelled(nodes []int32) (graph.Labels, []graph.Split) {
	split := make([]graph.Split, len(nodes))
	for k, i := range nodes {
		split[k] = p.split[i]
	}
	return p.labels.Select(nodes), split
}

// change records how to revert the next change.
func (p *rows) change(back func()) {
	if p.undo != nil {
		p.undo = append(p.undo, back)
	}
}

// invalidate invalidates the rows that depend on the features of some nodes, or on the in-edges of others (ends). If a
// row is not valid, the rows that depend on it are not valid either, so the search stops there.
func (p *rows) invalidate(features, ends []int32) {
	// Stages follow the stages that they read (add), so one pass in order propagates every change. dirty keeps its
	// memory from one change to the next.
	p.input.dirty = features
	for _, s := range p.stages[1:] {
		s.dirty, s.all = s.dirty[:0], false
		for _, of := range s.own {
			p.follow(s, of, false)
		}
		if s.near != nil {
			p.follow(s, s.near, true)
		}
		if s.near == nil && !s.degrees {
			continue
		}
		// A new edge changes the sum at its end in any case. These two norms also weigh by the source's degree, so that
		// the sums at all destinations of the end change as well.
		for _, i := range ends {
			p.drop(s, i, s.near != nil && (s.norm == graph.GCN || s.norm == graph.Symmetric))
		}
	}
}

// follow invalidates rows of s that read the dirty rows of another stage, at the node or around it. If neighbours of
// very many nodes read them, it invalidates all rows: a search would take longer than it saves.
func (p *rows) follow(s, of *stage, around bool) {
	if !s.all && (of.all || around && len(of.dirty) > p.nodes()/4) {
		// One list of nils is faster than a search, and undo needs one step instead of one for each node.
		was := s.rows
		p.change(func() { s.rows = was })
		s.rows, s.all = make([][]float32, len(was)), true
	}
	for _, i := range of.dirty {
		if s.all {
			break
		}
		p.drop(s, i, around)
	}
}

// drop invalidates the row of node i and, if around is set, the rows of the nodes that read it.
func (p *rows) drop(s *stage, i int32, around bool) {
	// A row that is already invalid is not listed again: its dependents were dropped with it, and the search ends here.
	// This bounds the cost of many changes in a row.
	if row := s.rows[i]; row != nil {
		if p.undo != nil {
			p.change(func() { s.rows[i] = row })
		}
		s.rows[i] = nil
		s.dirty = append(s.dirty, i)
	}
	if around {
		for _, j := range p.out[i] {
			p.drop(s, j, false)
		}
	}
}

// row returns features in their stored form, or an error if a node cannot have them.
func (p *rows) row(all []float32) (x features, err error) {
	// Everything is checked before anything changes: outside an Update there is no undo for half a change.
	if len(all) != p.inputs {
		return x, fmt.Errorf("a node must have %d features (got %d)", p.inputs, len(all))
	}
	if err := (graph.Features{Dense: mat.View(1, len(all), all)}).Valid(); err != nil || !p.sparse {
		return features{val: slices.Clone(all)}, err
	}
	for j, v := range all {
		if v != 0 {
			x.col, x.val = append(x.col, int32(j)), append(x.val, v)
		}
	}
	return x, nil
}

func (p *rows) addNode(all []float32) (int, error) {
	x, err := p.row(all)
	if err != nil {
		return 0, err
	}
	// newRows has clipped these lists. So the first append copies them and the caller's graph does not change; to
	// remove a node is to shorten the lists.
	n, labels := p.nodes(), p.labels
	p.change(func() {
		p.shrink(n)
		p.x, p.split, p.labels = p.x[:n], p.split[:n], labels
		for _, s := range p.stages[1:] {
			s.rows = s.rows[:n]
		}
	})
	p.grow()
	p.x, p.split = append(p.x, x), append(p.split, graph.None)
	// A graph without labels has no lists of labels, which must stay empty. An entry for the new node would be read as
	// node 0's label.
	if l, none := &p.labels, labels.None(labels.Kind(), 1); n == 0 || len(l.Class)+len(l.Bits)+len(l.Values) > 0 {
		l.Class, l.Bits, l.Values = append(l.Class, none.Class...), append(l.Bits, none.Bits...),
			append(l.Values, none.Values...)
	}
	for _, s := range p.stages[1:] {
		s.rows = append(s.rows, nil)
	}
	return n, nil
}

func (p *rows) setRow(node int, all []float32) error {
	if node < 0 || node >= p.nodes() {
		return fmt.Errorf("node must be 0 to %d (got %d)", p.nodes()-1, node)
	}
	x, err := p.row(all)
	if err != nil {
		return err
	}
	was := p.x[node]
	p.change(func() { p.x[node] = was })
	p.x[node] = x
	p.invalidate([]int32{int32(node)}, nil)
	return nil
}

func (p *rows) addEdge(e Edge) error {
	ends, err := p.edges.addEdge(e, p.change)
	if err != nil {
		return err
	}
	p.invalidate(nil, ends)
	return nil
}
