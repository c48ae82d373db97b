package align

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// list is the edges of a shard on the way.
type list struct {
	src, dst []int32
	kind     []int32   // of typed ones
	weight   []float32 // nil = all 1
	rows     []int32   // of columns; nil = there are none
}

func (l *list) add(src, dst int32, weight float32, row int32) {
	l.src, l.dst = append(l.src, src), append(l.dst, dst)
	if l.weight != nil {
		l.weight = append(l.weight, weight)
	}
	if l.rows != nil {
		l.rows = append(l.rows, row)
	}
}

// shard puts the site's nodes first and its neighbours at other sites after them, site by site in
// their numbers' order.
func (m *meeting) shard(edges *siteEdges, cross []ends, table *edgeRows) (*shard.Shard, error) {
	rank, n := m.g.Rank(), len(m.own.IDs)
	s := &shard.Shard{Rank: rank, Parts: m.g.Size(), Owned: n, HaloPtr: []int{n}, X: m.own.X, Types: m.own.Types,
		Labels: m.own.Labels, Split: m.own.Split, IDs: m.own.IDs, Nodes: m.first[m.g.Size()], Name: m.own.Name,
		Encoding: m.own.Encoding}
	for i := range n {
		s.Global = append(s.Global, m.first[rank]+int64(i))
	}
	e := m.edges
	l := list{src: slices.Clip(edges.src), dst: slices.Clip(edges.dst), weight: slices.Clip(edges.weight),
		rows: table.of(rank, len(edges.src))}
	typed := list{} // these have a direction
	typed.kind, typed.src, typed.dst, typed.weight, typed.rows = e.BothWays(edges.kind, l.src, l.dst, l.weight, l.rows)
	for q, x := range cross {
		halo, boundary := x.neighbours(e)
		rows := table.of(q, len(x.here))
		for k := range x.here {
			if x.begins(k, e) {
				continue // it ends at the other site, and only that site's shard has it
			}
			place, _ := slices.BinarySearch(halo, x.there[k])
			from, row := int32(len(s.Global)+place), int32(-1)
			if rows != nil {
				row = rows[k]
			}
			l.add(from, x.here[k], x.weight[k], row)
			if len(e.Relations) > 0 {
				typed.kind = append(typed.kind, x.kind[k])
				typed.add(from, x.here[k], x.weight[k], row)
			}
		}
		for _, j := range halo {
			s.Global = append(s.Global, m.first[q]+int64(j))
		}
		s.HaloPtr, s.Boundary = append(s.HaloPtr, len(s.Global)), append(s.Boundary, boundary)
	}
	all, err := graph.FromEdges(len(s.Global), l.src, l.dst, l.weight,
		graph.Build{Directed: e.Directed.OneWay(), Edge: l.rows})
	if err != nil {
		return nil, err
	}
	s.Adj = *all.First(n) // what neighbours elsewhere take from here is in their own shards
	if s.Typed, err = e.Typed(n, len(s.Global), typed.kind, typed.src, typed.dst, typed.weight,
		typed.rows); err != nil {
		return nil, err
	}
	if table == nil {
		return s, nil
	}
	used := []int32(nil)
	s.EdgeX, used = s.Typed.CompactEdges(&s.Adj, table.x)
	s.EdgeGlobal = []int64{}
	for _, row := range used {
		s.EdgeGlobal = append(s.EdgeGlobal, table.global[row])
	}
	return s, nil
}

// begins reports whether messages along edge k go from the node here to the other site's, and not back.
func (e *ends) begins(k int, by *dataset.Encoding) bool {
	return by.Directed.OneWay() && int(e.kind[k]) >= max(1, len(by.Relations))
}

// neighbours returns the nodes there that nodes here read, and those here that nodes there read.
func (e *ends) neighbours(by *dataset.Encoding) (halo, boundary []int32) {
	for k := range e.here {
		begins := e.begins(k, by)
		if !begins {
			halo = append(halo, e.there[k])
		}
		if begins || !by.Directed.OneWay() {
			boundary = append(boundary, e.here[k])
		}
	}
	return unique(halo), unique(boundary)
}

// edgeRows are the rows of columns of the edges that this site knows: those shared with each site, its own
// in its own place, site after site.
type edgeRows struct {
	x      mat.Dense
	first  []int   // row of the first edge with each site
	global []int64 // number of each row, which an edge across sites has at both; ascending
}

// of returns the numbers of the rows of n edges with site q.
func (t *edgeRows) of(q, n int) []int32 {
	if t == nil {
		return nil
	}
	rows := make([]int32, n)
	for k := range rows {
		rows[k] = int32(t.first[q] + k)
	}
	return rows
}

// numberRows gives the rows of edges their numbers in the whole graph: site after site its own edges and
// then the edges with each later site. Each site sends all how many these are, and each later one the first of
// theirs.
func (m *meeting) numberRows(edges *siteEdges, cross []ends) (*edgeRows, error) {
	wide, rank := m.edges.EdgeWidth(), m.g.Rank()
	if wide == 0 {
		return nil, nil
	}
	total := len(edges.src)
	begin := make([]int, len(cross)) // of the edges with each later site, among the edges that this site numbers
	for q := rank + 1; q < len(cross); q++ {
		begin[q] = total
		total += len(cross[q].here)
	}
	out := make([][]byte, len(cross))
	for q := range out {
		out[q] = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(total)),
			uint64(begin[q]))
	}
	in, err := m.g.SendRecv(m.ctx, comm.Control, "edges with columns", out, 16)
	if err != nil {
		return nil, err
	}
	in[rank] = out[rank]
	base, starts := int64(0), make([]int64, len(in)) // of each site
	for q, b := range in {
		if len(b) != 16 {
			return nil, m.blame(q, fmt.Errorf("the number of edges must have 16 bytes (got %d)", len(b)))
		}
		all, at, n := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), uint64(len(cross[q].here))
		if all > math.MaxInt32 || q < rank && (at > all || n > all-at) {
			return nil, m.blame(q, fmt.Errorf("%d edges from number %d on must be of at most %d (got %d)", n, at,
				math.MaxInt32, all))
		}
		if starts[q] = base + int64(at); q > rank {
			starts[q] = starts[rank] + int64(begin[q])
		}
		base += int64(all)
	}
	if base > math.MaxInt32 {
		return nil, fmt.Errorf("all sites together must have at most %d edges with columns (got %d)",
			math.MaxInt32, base)
	}
	t, x := &edgeRows{}, []float32(nil)
	for q := range in {
		n, rows := len(cross[q].here), cross[q].x
		if q == rank {
			n, rows = len(edges.src), edges.x
		}
		t.first = append(t.first, len(t.global))
		for k := range n {
			t.global = append(t.global, starts[q]+int64(k))
		}
		x = append(x, rows...)
	}
	t.x = mat.View(len(t.global), wide, x)
	return t, nil
}
