package dgl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Names sets which columns are what. The zero value takes DGL's own names. A name may be led by its
// type, "paper/feat".
type Names struct {
	Features string // of every type that has it (empty = feat or features, none if neither is there)
	Label    string // integers, −1 or NaN for none, or rows of 0 and 1 (empty = label or labels)
	Weight   string // of edges, 0 or more (empty = all weigh 1)
	Edges    string // features of the edges of every relation that has it (empty = none)
	// Build is how edges become a graph: the zero value adds the reverse of every edge and drops
	// loops, as the trainers want it.
	Build graph.Build
}

// Graph returns the whole graph, whose node i is DGL's global ID i, and the part that owns each
// node. Masks are the columns train_mask, val_mask and test_mask; a node without a label is in no
// split.
//
// In a graph with types the nodes of all types are nodes, and an edge of any relation is an edge,
// and is one of that relation too (graph.WithInverses, unless the graph is built as directed). Each
// type's features have their own columns, after the columns of the types before it (graph.Types), and so
// have the edges of each relation. The labels are
// the labels of the one type that has some, and every node is named TYPE/number, the number being DGL's
// ID within the type.
func (p *Partition) Graph(n Names) (g *graph.Graph, owner []int32, err error) {
	g = &graph.Graph{Name: p.Name}
	for k, part := range p.Parts {
		owner = append(owner, slices.Repeat([]int32{int32(k)}, part.Inner)...)
	}
	var ptr []int64
	if g.X, ptr, err = p.features(n.Features); err != nil {
		return nil, nil, err
	}
	if err := p.labels(g, n.Label); err != nil {
		return nil, nil, err
	}
	if err := p.adjacency(g, n); err != nil {
		return nil, nil, err
	}
	if len(p.NodeTypes) > 1 {
		g.IDs = p.names()
		g.Types, err = p.types(g.X, ptr)
	}
	return g, owner, err
}

// types returns the types of the nodes; ptr has the first column of each type in the features x.
func (p *Partition) types(x graph.Features, ptr []int64) (graph.Types, error) {
	t := graph.Types{Names: p.NodeTypes, Of: make([]uint8, p.Nodes), Ptr: ptr}
	for k := range p.Parts {
		for kind := range p.NodeTypes {
			for i := range p.nodes.ranges[kind][k].len() {
				t.Of[int64(p.first(k, kind))+i] = uint8(kind)
			}
		}
	}
	if err := t.Valid(int(p.Nodes), x); err != nil { // also of too many types
		return graph.Types{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return t, nil
}

// first returns the place of the first node of part k's type t.
func (p *Partition) first(k, t int) int { return int(p.nodes.ranges[t][k][0]) }

// adjacency fills in the edges, of several relations also by relation.
func (p *Partition) adjacency(g *graph.Graph, n Names) error {
	var src, dst, kind []int32
	var weight []float32
	if n.Weight != "" {
		weight = []float32{}
	}
	for k, part := range p.Parts {
		kind = append(kind, part.Type...)
		for e := range part.Src {
			src, dst = append(src, int32(part.Global[part.Src[e]])), append(dst, int32(part.Global[part.Dst[e]]))
		}
		if n.Weight == "" {
			continue
		}
		column := make([][]float32, len(p.EdgeTypes))
		for t, relation := range p.EdgeTypes {
			tensor, ok := part.Edges[t][n.Weight]
			if !ok {
				return fmt.Errorf("part %d: edges of type %s have no column %q", k, relation, n.Weight)
			}
			w, err := tensor.floats(false)
			if err == nil && len(w) != int(tensor.Shape[0]) {
				err = fmt.Errorf("must be one number per edge (got %v)", tensor)
			}
			if err != nil {
				return fmt.Errorf("part %d: column %s/%s: %w", k, relation, n.Weight, err)
			}
			column[t] = w
		}
		for _, t := range part.Type { // rows follow the edges of their type
			weight = append(weight, column[t][0])
			column[t] = column[t][1:]
		}
	}
	x, rows, err := p.edgeFeatures(n.Edges, len(src))
	if err != nil {
		return err
	}
	b := n.Build
	b.Edge = rows
	if g.Adj, err = graph.FromEdges(int(p.Nodes), src, dst, weight, b); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if err := p.relations(g, n, kind, src, dst, weight, rows); err != nil {
		return err
	}
	if rows != nil {
		g.EdgeX, _ = g.Typed.CompactEdges(&g.Adj, x)
	}
	return nil
}

// edgeFeatures returns the features of `edges` edges, with separate columns for each relation, and the row of each
// edge. There are none if no column is named.
func (p *Partition) edgeFeatures(name string, edges int) (x mat.Dense, rows []int32, err error) {
	if name == "" {
		return x, nil, nil
	}
	first, width := make([]int, len(p.EdgeTypes)), make([]int, len(p.EdgeTypes))
	total := 0
	for t := range p.EdgeTypes {
		first[t] = total
		if tensor, ok := p.Parts[0].Edges[t][name]; ok {
			width[t] = 1
			for _, n := range tensor.Shape[1:] {
				width[t] = int(min(int64(width[t])*max(n, 0), maxColumns+1))
			}
		}
		total += width[t]
	}
	if total == 0 || total > maxColumns {
		return x, nil, fmt.Errorf("%s: edges must have 1 to %d columns %q (got %d)", p.Name, maxColumns, name,
			total)
	}
	x, rows = mat.New(edges, total), make([]int32, edges)
	at := 0
	for k, part := range p.Parts {
		values := make([][]float32, len(p.EdgeTypes))
		for t, relation := range p.EdgeTypes {
			if width[t] == 0 {
				continue
			}
			tensor, ok := part.Edges[t][name]
			if !ok {
				return x, nil, fmt.Errorf("part %d: edges of type %s have no column %q", k, relation, name)
			}
			v, err := tensor.floats(false)
			if err == nil && len(v) != int(tensor.Shape[0])*width[t] {
				err = fmt.Errorf("must be %d numbers per edge, as in part 0 (got %v)", width[t], tensor)
			}
			if err != nil {
				return x, nil, fmt.Errorf("part %d: column %s/%s: %w", k, relation, name, err)
			}
			values[t] = v
		}
		for _, t := range part.Type { // rows follow the edges of their type
			copy(x.Row(at)[first[t]:], values[t][:width[t]])
			values[t] = values[t][width[t]:]
			rows[at] = int32(at)
			at++
		}
	}
	return x, rows, nil
}

// relations fills in the edges by relation, if there are several.
func (p *Partition) relations(g *graph.Graph, n Names, kind, src, dst []int32, weight []float32, rows []int32) error {
	relations := len(p.EdgeTypes)
	if relations < 2 {
		return nil
	}
	if 2*int64(relations)*p.Nodes > math.MaxInt32 {
		return fmt.Errorf("%s: relations and their reverses times nodes must be at most %d "+
			"(got %d relations, %d nodes)", p.Name, math.MaxInt32, relations, p.Nodes)
	}
	list, err := graph.Deal(int(p.Nodes), relations, kind, src, dst, weight,
		graph.Build{KeepLoops: n.Build.KeepLoops, Edge: rows})
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if n.Build.Directed {
		g.Typed = graph.Relations{Names: p.EdgeTypes, Adj: graph.Stack(list)}
	} else {
		g.Typed = graph.WithInverses(p.EdgeTypes, list)
	}
	return nil
}

// column returns the place of the column of one of those names, which may be led by a type, among
// type t's; "" if there is none.
func (p *Partition) column(t int, names ...string) string {
	for _, name := range names {
		if kind, rest, ok := strings.Cut(name, "/"); ok && kind == p.NodeTypes[t] {
			name = rest
		}
		if _, ok := p.Parts[0].Columns[t][name]; ok {
			return name
		}
	}
	return ""
}

// or returns the given name, or DGL's.
func or(name string, standard ...string) []string {
	if name != "" {
		return []string{name}
	}
	return standard
}

// tensors returns a column of type t of all parts, and how many numbers a row has.
func (p *Partition) tensors(t int, name string) (parts []Tensor, width int, err error) {
	width = -1
	for k, part := range p.Parts {
		tensor, ok := part.Columns[t][name]
		if !ok {
			return nil, 0, fmt.Errorf("part %d: nodes of type %s have no column %q", k, p.NodeTypes[t], name)
		}
		product := int64(1)
		for _, n := range tensor.Shape[1:] {
			if n > 0 && product > math.MaxInt32/n {
				return nil, 0, fmt.Errorf("part %d: column %s/%s must have at most %d numbers a row (got %v)", k,
					p.NodeTypes[t], name, math.MaxInt32, tensor)
			}
			product *= n
		}
		if width >= 0 && int64(width) != product {
			return nil, 0, fmt.Errorf("part %d: column %s/%s must have rows of %d numbers, as in part 0 (got %v)",
				k, p.NodeTypes[t], name, width, tensor)
		}
		width, parts = int(product), append(parts, tensor)
	}
	return parts, width, nil
}

// features returns the features of the nodes, and where the columns of each type begin.
func (p *Partition) features(name string) (_ graph.Features, ptr []int64, err error) {
	names := or(name, "feat", "features")
	type block struct {
		kind, first, width int
		parts              []Tensor
	}
	var blocks []block
	total := 0
	for t := range p.NodeTypes {
		ptr = append(ptr, int64(total))
		column := p.column(t, names...)
		if column == "" {
			continue
		}
		parts, width, err := p.tensors(t, column)
		if err != nil {
			return graph.Features{}, nil, err
		}
		if total+width > maxColumns {
			return graph.Features{}, nil, fmt.Errorf("%s: more than %d columns of features", p.Name, maxColumns)
		}
		blocks = append(blocks, block{t, total, width, parts})
		total += width
	}
	if len(blocks) == 0 || total == 0 {
		if name != "" {
			return graph.Features{}, nil, fmt.Errorf("%s: no nodes have a column %q", p.Name, name)
		}
		return graph.Features{}, nil, nil
	}
	ptr = append(ptr, int64(total))
	x := &mat.Sparse{Rows: int(p.Nodes), Cols: total, RowPtr: make([]int64, 1, p.Nodes+1)}
	dense := mat.Dense{}
	if len(p.NodeTypes) == 1 {
		dense = mat.New(int(p.Nodes), total)
	}
	for k := range p.Parts {
		for t := range p.NodeTypes {
			at := slices.IndexFunc(blocks, func(b block) bool { return b.kind == t })
			rows := int(p.nodes.ranges[t][k].len())
			if at < 0 {
				for range rows {
					x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
				}
				continue
			}
			b := blocks[at]
			v, err := b.parts[k].floats(false)
			if err != nil {
				return graph.Features{}, nil, fmt.Errorf("part %d: features of %s: %w", k, p.NodeTypes[t], err)
			}
			if dense.Cols > 0 {
				copy(dense.Data[p.first(k, t)*total:], v)
				continue
			}
			for i := range rows {
				for j, value := range v[i*b.width : (i+1)*b.width] {
					if value != 0 {
						x.Col, x.Val = append(x.Col, int32(b.first+j)), append(x.Val, value)
					}
				}
				x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
			}
		}
	}
	if dense.Cols > 0 {
		return graph.Features{Dense: dense}, ptr, nil
	}
	return graph.Features{Sparse: x}, ptr, nil
}

// names returns TYPE/number of every node.
func (p *Partition) names() []string {
	ids := make([]string, 0, p.Nodes)
	count := make([]int, len(p.NodeTypes))
	for k := range p.Parts {
		for t, name := range p.NodeTypes {
			for range p.nodes.ranges[t][k].len() {
				ids = append(ids, fmt.Sprintf("%s/%d", name, count[t]))
				count[t]++
			}
		}
	}
	return ids
}

// masks has the column of each split.
var masks = [...]string{graph.Train: "train_mask", graph.Val: "val_mask", graph.Test: "test_mask"}

func (p *Partition) labels(g *graph.Graph, name string) error {
	g.Split = make([]graph.Split, p.Nodes)
	names := or(name, "label", "labels")
	kind, column := -1, ""
	for t := range p.NodeTypes {
		c := p.column(t, names...)
		if c == "" {
			continue
		}
		if kind >= 0 {
			return fmt.Errorf("%s: nodes of type %s and of type %s have labels: say which, as %s/%s", p.Name,
				p.NodeTypes[kind], p.NodeTypes[t], p.NodeTypes[kind], column)
		}
		kind, column = t, c
	}
	if kind < 0 {
		if name != "" {
			return fmt.Errorf("%s: no nodes have a column %q", p.Name, name)
		}
		return nil
	}
	parts, width, err := p.tensors(kind, column)
	if err != nil {
		return err
	}
	single := width == 1
	if rows := p.rows(kind); !single &&
		(width > maxClasses || int64(width) > maxPad*(rows*int64(width)/max(p.Nodes, 1)+1)) {
		return fmt.Errorf("%s: labels must have at most %d classes and, for all nodes, less than %d times their "+
			"own size (got %d classes, %d of %d nodes)", p.Name, maxClasses, maxPad, width, rows, p.Nodes)
	}
	if single {
		g.Labels.Class = slices.Repeat([]int32{-1}, int(p.Nodes))
	} else {
		g.Labels.Classes, g.Labels.Bits = width, make([]uint8, int(p.Nodes)*width)
	}
	for k, tensor := range parts {
		v, err := tensor.floats(true)
		if err == nil && single {
			err = classes(&g.Labels, v, p.first(k, kind))
		} else if err == nil {
			err = bits(&g.Labels, v, p.first(k, kind)*width)
		}
		if err == nil {
			err = p.split(g, k, kind)
		}
		if err != nil {
			return fmt.Errorf("part %d: column %s/%s: %w", k, p.NodeTypes[kind], column, err)
		}
	}
	return nil
}

// Bounds on the classes, and on the space that nodes of other types take among the labels of one, so
// that a damaged file cannot ask for memory that it has no bytes for.
const (
	maxClasses = 1 << 20
	maxColumns = 1 << 24
	maxPad     = 1 << 12
)

// rows returns how many nodes of type t there are.
func (p *Partition) rows(t int) (n int64) {
	for k := range p.Parts {
		n += p.nodes.ranges[t][k].len()
	}
	return n
}

func classes(l *graph.Labels, v []float32, first int) error {
	for i, c := range v {
		if c != c || c == -1 {
			continue
		}
		if c < 0 || c >= maxClasses || c != float32(int32(c)) {
			return fmt.Errorf("row %d must be a class from 0 to %d, or -1 for none (got %v)", i, maxClasses-1, c)
		}
		l.Class[first+i] = int32(c)
		l.Classes = max(l.Classes, int(c)+1)
	}
	return nil
}

func bits(l *graph.Labels, v []float32, first int) error {
	for i, b := range v {
		if b != 0 && b != 1 {
			return fmt.Errorf("element %d must be 0 or 1 (got %v)", i, b)
		}
		l.Bits[first+i] = uint8(b)
	}
	return nil
}

// split reads part k's masks of type t. A node may be in one only.
func (p *Partition) split(g *graph.Graph, k, t int) error {
	n := int(p.nodes.ranges[t][k].len())
	for split := graph.Train; split <= graph.Test; split++ {
		tensor, ok := p.Parts[k].Columns[t][masks[split]]
		if !ok {
			continue
		}
		mask, err := tensor.vector(n, 2)
		if err != nil {
			return errors.Join(errors.New(masks[split]), err)
		}
		for i, m := range mask {
			at := p.first(k, t) + i
			if m == 0 || g.Labels.Class != nil && g.Labels.Class[at] < 0 {
				continue
			}
			if g.Split[at] != graph.None {
				return fmt.Errorf("node %d is in %s and in %s", at, masks[g.Split[at]], masks[split])
			}
			g.Split[at] = split
		}
	}
	return nil
}
