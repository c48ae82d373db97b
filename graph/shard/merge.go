package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Group returns the parts of worker w if there are more parts than workers: [lo, hi), at least one.
func Group(parts, workers, w int) (lo, hi int) { return w * parts / workers, (w + 1) * parts / workers }

// groupOf returns the worker that has part p.
func groupOf(parts, workers, p int) int { return ((p+1)*workers - 1) / parts }

// Merge returns the shard of a worker that has several parts, as Group gives them. It is the shard that Cut would have
// returned if the parts of every worker had been one, with another fingerprint. It copies what it keeps.
func Merge(parts []*Shard, workers int) (*Shard, error) {
	if len(parts) == 0 {
		return nil, errors.New("no parts to merge")
	}
	first := parts[0]
	all := first.Parts
	if workers < 1 || workers > all {
		return nil, fmt.Errorf("number of workers must be 1 to %d, the number of parts (got %d)", all, workers)
	}
	rank := groupOf(all, workers, first.Rank)
	lo, hi := Group(all, workers, rank)
	for k, s := range parts {
		if s.Rank != first.Rank+k || s.Parts != all || s.Fingerprint != first.Fingerprint || s.Rank < lo ||
			s.Rank >= hi {
			return nil, fmt.Errorf("worker %d of %d must have parts %d to %d of one partition "+
				"(got part %d of %d at place %d)", rank, workers, lo, hi-1, s.Rank, s.Parts, k)
		}
	}
	if len(parts) != hi-lo {
		return nil, fmt.Errorf("worker %d of %d must have parts %d to %d (got %d parts)", rank, workers, lo,
			hi-1, len(parts))
	}
	m := newMerger(parts, workers, rank)
	return m.shard(), nil
}

// partRow is a row of one of the parts.
type partRow struct {
	part int
	row  int32
}

type merger struct {
	parts   []*Shard
	workers int
	rank    int
	owned   []partRow   // in the order of their global IDs
	base    []int32     // [part] first number of its sources if all parts' sources are concatenated
	begin   []int32     // [part] first number of its nodes if all parts' own nodes are concatenated
	to      []int32     // [concatenated source] source of the merged shard
	sources int32       // number of sources of the merged shard
	halo    [][]partRow // [worker]
	row     [][]int32   // [part] row of each of its rows of edge columns in the merged table
}

// newMerger numbers the sources of the merged shard: own nodes by global ID, then the halo of each other worker.
func newMerger(parts []*Shard, workers, rank int) *merger {
	m := &merger{parts: parts, workers: workers, rank: rank, halo: make([][]partRow, workers)}
	of := make(map[int64]int32) // source of the merged shard by global ID
	var lined int32
	for p, s := range parts {
		m.begin = append(m.begin, int32(len(m.owned)))
		for i := range s.Owned {
			m.owned = append(m.owned, partRow{p, int32(i)})
		}
		for q := range s.Parts {
			if w := groupOf(s.Parts, workers, q); w != rank {
				for j := s.HaloPtr[q]; j < s.HaloPtr[q+1]; j++ {
					m.halo[w] = append(m.halo[w], partRow{p, int32(j)})
				}
			}
		}
		m.base = append(m.base, lined)
		lined += int32(len(s.Global))
	}
	m.sort(m.owned)
	number := func(list []partRow) {
		for _, at := range list {
			if _, ok := of[m.global(at)]; !ok {
				of[m.global(at)] = m.sources
				m.sources++
			}
		}
	}
	number(m.owned)
	for w := range m.halo {
		m.sort(m.halo[w])
		m.halo[w] = slices.CompactFunc(m.halo[w], func(a, b partRow) bool { return m.global(a) == m.global(b) })
		number(m.halo[w])
	}
	m.to = make([]int32, lined)
	for p, s := range parts {
		for j, node := range s.Global {
			m.to[m.base[p]+int32(j)] = of[node]
		}
	}
	return m
}

func (m *merger) global(at partRow) int64 { return m.parts[at.part].Global[at.row] }

// sort sorts rows by the global IDs of their nodes.
func (m *merger) sort(list []partRow) {
	slices.SortFunc(list, func(a, b partRow) int {
		return cmp.Or(cmp.Compare(m.global(a), m.global(b)), a.part-b.part)
	})
}

func (m *merger) shard() *Shard {
	first := m.parts[0]
	s := &Shard{Rank: m.rank, Parts: m.workers, Owned: len(m.owned), Nodes: first.Nodes, Name: first.Name,
		Encoding: first.Encoding, Boundary: make([][]int32, m.workers), HaloPtr: []int{len(m.owned)},
		Global: make([]int64, 0, m.sources)}
	b := binary.LittleEndian.AppendUint32([]byte("heddle parts merged\n"), uint32(m.workers))
	s.Fingerprint = sha256.Sum256(append(b, first.Fingerprint[:]...))
	add := func(at partRow) { s.Global = append(s.Global, m.global(at)) }
	rows := make([]int32, len(m.owned)) // where the parts' own rows are lined up
	for k, at := range m.owned {
		add(at)
		rows[k] = m.begin[at.part] + at.row
	}
	for _, list := range m.halo {
		for _, at := range list {
			add(at)
		}
		s.HaloPtr = append(s.HaloPtr, len(s.Global))
	}
	m.boundary(s)
	m.edges(s, rows)
	s.setTables(m.tables().SelectNodes(rows))
	s.Types.Ptr = slices.Clone(s.Types.Ptr) // the others are copies already
	return s
}

// tables returns the parts' own nodes, one part's below another's.
func (m *merger) tables() *graph.Graph {
	all, x := m.parts[0].tables(), []graph.Features{m.parts[0].X}
	l := &all.Labels
	// Clipped, so that appending to what the first part has copies it.
	all.Split, all.IDs, all.Types.Of = slices.Clip(all.Split), slices.Clip(all.IDs), slices.Clip(all.Types.Of)
	l.Class, l.Bits, l.Values = slices.Clip(l.Class), slices.Clip(l.Bits), slices.Clip(l.Values)
	for _, part := range m.parts[1:] {
		x = append(x, part.X)
		all.Split, all.IDs = append(all.Split, part.Split...), append(all.IDs, part.IDs...)
		all.Types.Of = append(all.Types.Of, part.Types.Of...)
		l.Class, l.Bits = append(l.Class, part.Labels.Class...), append(l.Bits, part.Labels.Bits...)
		l.Values = append(l.Values, part.Labels.Values...)
	}
	if x[0].Cols() > 0 {
		all.X = graph.Below(x)
	}
	return all
}

// boundary sets which owned nodes are in the halo of each other worker.
func (m *merger) boundary(s *Shard) {
	for p, part := range m.parts {
		for q, list := range part.Boundary {
			if w := groupOf(part.Parts, m.workers, q); w != m.rank {
				for _, i := range list {
					s.Boundary[w] = append(s.Boundary[w], m.to[m.base[p]+i])
				}
			}
		}
	}
	for w, list := range s.Boundary {
		slices.Sort(list)
		if s.Boundary[w] = slices.Compact(list); list == nil {
			s.Boundary[w] = []int32{}
		}
	}
}

// edges merges the parts' edges; rows is the order of their own rows.
func (m *merger) edges(s *Shard, rows []int32) {
	var adj, typed []*graph.CSR
	for _, part := range m.parts {
		adj, typed = append(adj, &part.Adj), append(typed, &part.Typed.Adj)
	}
	m.edgeRows(s)
	s.Adj = *m.lined(adj).Relabel(rows, m.to, len(s.Global))
	relations := m.parts[0].Typed.Count()
	if relations == 0 {
		return
	}
	var order []int32 // of rows r·D + i
	for r := range relations {
		for _, k := range m.owned {
			order = append(order, int32(relations)*m.begin[k.part]+int32(r*m.parts[k.part].Owned)+k.row)
		}
	}
	s.Typed = graph.Relations{Names: m.parts[0].Typed.Names, Adj: *m.lined(typed).Relabel(order, m.to, len(s.Global))}
}

// edgeRows merges the parts' rows of edge columns: an edge between two of the parts has its row in both.
func (m *merger) edgeRows(s *Shard) {
	if m.parts[0].EdgeX.Cols == 0 {
		return
	}
	s.EdgeGlobal = []int64{}
	for _, part := range m.parts {
		s.EdgeGlobal = append(s.EdgeGlobal, part.EdgeGlobal...)
	}
	slices.Sort(s.EdgeGlobal)
	s.EdgeGlobal = slices.Compact(s.EdgeGlobal)
	s.EdgeX = mat.New(len(s.EdgeGlobal), m.parts[0].EdgeX.Cols)
	m.row = make([][]int32, len(m.parts))
	for p, part := range m.parts {
		for k, e := range part.EdgeGlobal {
			at, _ := slices.BinarySearch(s.EdgeGlobal, e)
			m.row[p] = append(m.row[p], int32(at))
			copy(s.EdgeX.Row(at), part.EdgeX.Row(k))
		}
	}
}

// lined returns the parts' edges, one part's rows below another's, and its sources behind
// another's.
func (m *merger) lined(list []*graph.CSR) *graph.CSR {
	rows, edges := 1, 0
	for _, g := range list {
		rows, edges = rows+g.NumDst, edges+len(g.Col)
	}
	// Slices that grow are held twice for a while.
	out := &graph.CSR{NumSrc: len(m.to), RowPtr: make([]int64, 1, rows), Col: make([]int32, 0, edges)}
	for p, g := range list {
		out.NumDst += g.NumDst
		for _, end := range g.RowPtr[1:] {
			out.RowPtr = append(out.RowPtr, int64(len(out.Col))+end)
		}
		for _, j := range g.Col {
			out.Col = append(out.Col, m.base[p]+j)
		}
		if g.Weight != nil {
			out.Weight = append(slices.Grow(out.Weight, 1), g.Weight...) // of no edges it is empty, not absent
		}
		if g.Edge != nil {
			out.Edge = slices.Grow(out.Edge, 1+len(g.Edge))
			for _, e := range g.Edge {
				if e >= 0 {
					e = m.row[p][e]
				}
				out.Edge = append(out.Edge, e)
			}
		}
	}
	return out
}
