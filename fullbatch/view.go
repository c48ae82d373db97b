package fullbatch

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

// view is what this worker needs to compute the scores of some nodes.
type view struct {
	input  graph.Features // features that the first unit reads
	own    []int32        // owned nodes that it computes
	parts  []part         // [unit]
	rows   []int32        // rows of the wanted nodes in the last unit's output (nil = all rows, in order)
	labels graph.Labels   // labels of the wanted nodes
}

// part is a view's edges and rows for one unit.
type part struct {
	near  *graph.CSR     // edges from own rows; nil if there are none, or z is set
	far   *halo          // rows of other workers (nil = none)
	z     graph.Features // the aggregate, if it never changes
	nodes []int64        // global IDs of the input's rows
	dst   int            // number of rows that are computed: the first ones of the input
}

// receptiveField lists the rows that one unit computes and those that it reads.
type receptiveField struct {
	dst, src []int32 // owned nodes; dst are the first of src
	// by peer: halo sources that this worker reads, ascending; indices in src of the rows that the peer reads
	need, give [][]int32
	whole      bool // all nodes are computed
}

// look returns the view that computes the owned nodes of a split at every worker. If this takes less than half of the
// edges, nothing else is computed. The scores of few nodes need few rows (a layer's message-flow block; Hamilton, Ying
// and Leskovec, NeurIPS 2017, algorithm 2). If all is set, every node is computed.
func (t *Trainer) look(ctx context.Context, r comm.Reducer, split graph.Split, a *graphView, all bool) (*view, error) {
	wanted := t.split[split]
	v := &view{labels: t.shard.Labels.Select(wanted)}
	for _, u := range t.units {
		all = all || u.layer.Spec.Hops > 1 && u.layer.Conv.Agg != nil
	}
	var fields []receptiveField
	if !all {
		var err error
		count := make([]int64, 2) // edges in the blocks, and all edges
		if fields, err = t.receptiveFields(ctx, wanted, a, count); err != nil {
			return nil, err
		}
		if err = sumCounts(ctx, r, t.ID(ofEdges, int(split)), count); err != nil {
			return nil, err
		}
		all = 2*count[0] > count[1]
	}
	if all {
		if len(wanted) < t.shard.Owned {
			v.rows = append([]int32{}, wanted...) // not nil, which would mean all rows
		}
		fields = make([]receptiveField, len(t.units))
		whole := t.wholeField()
		for k := range fields {
			fields[k] = whole
		}
	}
	type kind struct {
		edges *graph.CSR
		sums  bool
	}
	made := make(map[kind]part) // layers of one kind that compute all nodes share their edges and the transposed edges
	for k, u := range t.units {
		share := all && u.layer.Conv.Agg != nil && !t.constant(k)
		of := kind{a.Edges(u.layer), t.sums(k)}
		p, ok := made[of]
		if !ok || !share {
			var err error
			if p, err = t.part(k, a, fields[k]); err != nil {
				return nil, err
			}
		}
		if share {
			made[of] = p
		}
		if p.far != nil {
			far := *p.far
			far.what, far.blocks, far.again = u.layer.Name, slices.Clone(far.blocks), slices.Clone(far.again)
			p.far = &far
		}
		v.parts = append(v.parts, p)
	}
	v.input, v.own = t.firstInput(a, fields[0], &v.parts[0]), fields[0].dst
	return v, nil
}

// constant reports whether unit k aggregates rows that never change: the features.
func (t *Trainer) constant(k int) bool { return k == 0 && t.units[0].layer.Conv.Agg != nil }

// wholeField is the receptive field of a unit that computes all nodes.
func (t *Trainer) wholeField() receptiveField {
	s := t.shard
	r := receptiveField{whole: true, dst: mat.EveryRow(s.Owned), need: make([][]int32, s.Parts),
		give: make([][]int32, s.Parts)}
	r.src = r.dst
	for q := range s.Parts {
		if q != s.Rank {
			for j := s.HaloPtr[q]; j < s.HaloPtr[q+1]; j++ {
				r.need[q] = append(r.need[q], int32(j))
			}
			r.give[q] = s.Boundary[q]
		}
	}
	return r
}

// receptiveFields returns the receptive field of every unit, from the wanted nodes down, and counts
// edges.
func (t *Trainer) receptiveFields(ctx context.Context, wanted []int32, a *graphView,
	count []int64) ([]receptiveField, error) {
	s := t.shard
	all := make([]receptiveField, len(t.units))
	dst := wanted
	for k := len(t.units) - 1; k >= 0; k-- {
		r := &all[k]
		r.dst, r.src = dst, dst
		g := a.Edges(t.units[k].layer)
		if g == nil {
			continue
		}
		read := make([]bool, g.NumSrc)
		for _, i := range rowsOf(t.units[k].layer, g, dst) {
			col, _ := g.Row(int(i))
			count[0] += int64(len(col))
			for _, j := range col {
				read[j] = true
			}
		}
		count[1] += int64(g.NumEdges())
		r.need = make([][]int32, s.Parts)
		for q := range s.Parts {
			for j := s.HaloPtr[q]; j < s.HaloPtr[q+1]; j++ {
				if read[j] {
					r.need[q] = append(r.need[q], int32(j))
				}
			}
		}
		if !t.constant(k) || t.first == stream { // else the layer's constant rows are in memory already
			var err error
			if r.give, err = t.needs(ctx, r.need, t.units[k].layer.Name); err != nil {
				return nil, err
			}
		}
		at := make([]int32, s.Owned) // index in src, plus one
		for n, i := range dst {
			at[i] = int32(n) + 1
		}
		for _, list := range r.give {
			for _, i := range list {
				read[i] = true
			}
		}
		r.src = slices.Clone(dst)
		for i := range s.Owned {
			if read[i] && at[i] == 0 {
				r.src = append(r.src, int32(i))
				at[i] = int32(len(r.src))
			}
		}
		for _, list := range r.give {
			for n, i := range list {
				list[n] = at[i] - 1
			}
		}
		dst = r.src
	}
	return all, nil
}

// needs informs every peer which of its rows this worker reads, and returns the own nodes that each peer reads.
func (t *Trainer) needs(ctx context.Context, need [][]int32, what string) ([][]int32, error) {
	s := t.shard
	out, largest := make([][]byte, s.Parts), 0
	for q := range s.Parts {
		if q == s.Rank {
			continue
		}
		for _, j := range need[q] {
			out[q] = binary.LittleEndian.AppendUint32(out[q], uint32(int(j)-s.HaloPtr[q]))
		}
		largest = max(largest, len(out[q]), 4*len(s.Boundary[q]))
	}
	in, err := t.line.group.SendRecv(ctx, comm.Control, "rows read by "+what, out, largest)
	if err != nil {
		return nil, err
	}
	give := make([][]int32, s.Parts)
	for q, b := range in {
		last := -1
		for ; len(b) >= 4; b = b[4:] {
			k := binary.LittleEndian.Uint32(b)
			if int(k) <= last || k >= uint32(len(s.Boundary[q])) {
				return nil,
					&comm.PeerError{Rank: q, Op: what,
						Err: fmt.Errorf("reads row %d after row %d, of the %d that it has as halo", k, last,
							len(s.Boundary[q]))}
			}
			last = int(k)
			give[q] = append(give[q], s.Boundary[q][k])
		}
	}
	return give, nil
}

// part splits the edges of unit k by whether this worker has the source's row.
func (t *Trainer) part(k int, a *graphView, r receptiveField) (part, error) {
	s := t.shard
	p := part{dst: len(r.dst)}
	for _, i := range r.src {
		p.nodes = append(p.nodes, s.Global[i])
	}
	g := a.Edges(t.units[k].layer)
	if g == nil {
		return p, nil
	}
	dst := rowsOf(t.units[k].layer, g, r.dst)
	to := make([]int32, g.NumSrc)
	clear := func() {
		for j := range to {
			to[j] = -1
		}
	}
	clear()
	for n, i := range r.src {
		to[i] = int32(n)
	}
	switch {
	case t.constant(k) && t.first == aggregated && !a.plain:
		p.nodes = p.nodes[:len(r.dst)]
		return p, nil
	case t.constant(k) && t.first != stream:
		n := len(r.src)
		for _, list := range r.need {
			for _, j := range list {
				to[j] = int32(n)
				p.nodes = append(p.nodes, s.Global[j])
				n++
			}
		}
		p.near = subgraph(g, dst, to, n)
		return p, nil
	}
	p.near = subgraph(g, dst, to, len(r.src))
	if s.Parts == 1 {
		return p, nil
	}
	p.far = &halo{haloLine: t.line, give: r.give, of: make([]int, s.Parts), again: make([]bool, s.Parts)}
	fetch, _ := turns(s.Rank, s.Parts)
	var groups [][]int
	for _, q := range fetch {
		switch {
		case len(r.need[q]) == 0:
		case t.config.Fetch == "oneshot" && len(groups) == 1:
			groups[0] = append(groups[0], q)
		default:
			groups = append(groups, []int{q})
		}
	}
	for _, from := range groups {
		clear()
		b := block{from: from, at: make([]int, s.Parts), rows: make([]int, s.Parts)}
		for _, q := range from {
			b.at[q], b.rows[q] = len(b.nodes), len(r.need[q])
			for _, j := range r.need[q] {
				to[j] = int32(len(b.nodes))
				b.nodes = append(b.nodes, s.Global[j])
			}
			p.far.of[q] = len(p.far.blocks)
		}
		b.g = subgraph(g, dst, to, len(b.nodes))
		p.far.blocks = append(p.far.blocks, b)
	}
	if t.sums(k) {
		return p, t.cover(k, &p, a, r)
	}
	return p, nil
}

// subgraph returns g.Relabel(dst, to, n), or g itself if that changes nothing.
func subgraph(g *graph.CSR, dst, to []int32, n int) *graph.CSR {
	same := len(dst) == g.NumDst && n == g.NumSrc
	for k, i := range dst {
		same = same && int(i) == k
	}
	for j, k := range to {
		same = same && int(k) == j
	}
	if same {
		return g
	}
	return g.Relabel(dst, to, n)
}

// firstInput returns the rows that the first unit of a view reads, and sets the fields of p that are known before
// training.
func (t *Trainer) firstInput(a *graphView, r receptiveField, p *part) graph.Features {
	switch {
	case a.beside.Cols() > 0:
		return choose(a.beside, r.src)
	case !t.constant(0) || p.far != nil:
		return choose(t.input, r.src)
	case p.near == nil:
		p.z = choose(a.z, r.dst)
		return choose(t.input, r.dst)
	}
	rows := slices.Clone(r.src)
	for _, list := range r.need {
		rows = append(rows, list...)
	}
	return choose(t.rows, rows)
}

// choose returns the given rows of f, or f itself if they are all of its rows in order.
func choose(f graph.Features, rows []int32) graph.Features {
	if len(rows) != f.Rows() {
		return f.Select(rows)
	}
	for k, i := range rows {
		if int(i) != k {
			return f.Select(rows)
		}
	}
	return f
}

// graphView is the graph as training or evaluation sees it, with values that are computed from it once.
type graphView struct {
	train.GraphView
	beside graph.Features // features and their sums over some hops, which the model reads instead
	z      graph.Features // the first layer's aggregate, if it never changes
	covers *train.Covers  // covers of the units that compute all nodes (nil = not yet agreed)
	plain  bool           // the first layer is computed exactly as in inference, to the last bit
}

// rowsOf returns the rows of the destinations dst in g, which has one row for each relation of the layer.
func rowsOf(l *nn.Layer, g *graph.CSR, dst []int32) []int32 {
	if r := l.Conv.Relations; r > 0 {
		return graph.StackedRows(dst, g.NumDst/r, r)
	}
	return dst
}
