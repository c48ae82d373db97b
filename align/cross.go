package align

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// ends are the edges between this site and another: node by node in each site's own numbering.
type ends struct {
	here, there []int32
	weight      []float32
	kind        []int32 // relation as it ends here, of relations and the reverse of each; nil: edges have no types
}

// cross returns the edges to every other site that this one or the other lists.
func (m *meeting) cross(edges *siteEdges) ([]ends, error) {
	asked := make([][]byte, len(m.c.Sites))
	for site, x := range edges.cross {
		asked[slices.Index(m.c.Sites, site)] = encodeNames(x.names)
	}
	in, err := m.g.SendRecv(m.ctx, comm.Halo, "names of neighbours", asked, maxEdges)
	if err != nil {
		return nil, err
	}
	answers, refused, err := m.answer(in)
	if err != nil {
		return nil, err
	}
	if err := m.settle(refused); err != nil {
		return nil, err
	}
	if in, err = m.g.SendRecv(m.ctx, comm.Halo, "numbers of neighbours", answers, maxEdges); err != nil {
		return nil, err
	}
	out, listed := make([]ends, len(in)), make([][]byte, len(in))
	var unknown error
	for q, b := range in {
		x := edges.cross[m.c.Sites[q]]
		if x == nil || unknown != nil {
			continue
		}
		if len(b) != 4*len(x.names) {
			return nil, m.blame(q, fmt.Errorf("the answer to %d names must have %d bytes (got %d)", len(x.names), 4*len(x.names), len(b)))
		}
		for k, name := range x.there {
			i := int32(binary.LittleEndian.Uint32(b[4*name:]))
			if i == -1 {
				unknown = edges.fault(m.c.Sites[q], int(name), fmt.Sprintf("%s has no node %.40q", m.c.Sites[q], x.names[name]))
				break
			}
			if i < 0 || int(i) >= m.nodes(q) {
				return nil, m.blame(q, fmt.Errorf("node number %d, out of [0, %d)", i, m.nodes(q)))
			}
			out[q].add(x.here[k], i, x.weight[k])
		}
		out[q].kind = x.kind
		listed[q] = out[q].encode(m.encoded)
	}
	if err := m.settle(unknown); err != nil {
		return nil, err
	}
	if in, err = m.g.SendRecv(m.ctx, comm.Halo, "edges", listed, maxEdges); err != nil {
		return nil, err
	}
	for q, b := range in {
		if q == m.g.Rank() {
			continue
		}
		if err := out[q].decode(b, len(m.own.IDs), m.nodes(q), m.encoded); err != nil {
			return nil, m.blame(q, err)
		}
	}
	return out, nil
}

// answer returns the numbers of the nodes whose names each site asked for, and why this site
// refuses to send them, if it does.
func (m *meeting) answer(asked [][]byte) (answers [][]byte, refused, err error) {
	index := make(map[string]int32, len(m.own.IDs))
	for i, name := range m.own.IDs {
		index[name] = int32(i)
	}
	answers = make([][]byte, len(asked))
	for q, b := range asked {
		if q == m.g.Rank() {
			continue
		}
		names, err := decodeNames(b)
		if err != nil {
			return nil, nil, m.blame(q, err)
		}
		unknown := 0
		for _, name := range names {
			i, ok := index[name]
			if !ok {
				i = -1
				unknown++
			}
			answers[q] = binary.LittleEndian.AppendUint32(answers[q], uint32(i))
		}
		if m.c.Asked != nil {
			refused = errors.Join(refused, m.c.Asked(m.c.Sites[q], len(names), unknown))
		}
	}
	return answers, refused, nil
}

func (e *ends) add(here, there int32, weight float32) {
	e.here, e.there, e.weight = append(e.here, here), append(e.there, there), append(e.weight, weight)
}

// encode writes the edges for the other site: its node, the node here, the weight and, where edges
// have types, the relation as it ends there, of four bytes each.
func (e *ends) encode(by *dataset.Encoding) (b []byte) {
	for k := range e.here {
		b = binary.LittleEndian.AppendUint32(b, uint32(e.there[k]))
		b = binary.LittleEndian.AppendUint32(b, uint32(e.here[k]))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(e.weight[k]))
		if e.kind != nil {
			b = binary.LittleEndian.AppendUint32(b, uint32(by.Reverse(e.kind[k])))
		}
	}
	return b
}

// decode adds what encode wrote at a site of that many nodes.
func (e *ends) decode(b []byte, here, there int, by *dataset.Encoding) error {
	size, relations := 12, 2*len(by.Relations)
	if relations > 0 {
		size = 16
	}
	if len(b)%size != 0 {
		return fmt.Errorf("edges must be a multiple of %d bytes (got %d)", size, len(b))
	}
	for at := 0; at < len(b); at += size {
		i, j := binary.LittleEndian.Uint32(b[at:]), binary.LittleEndian.Uint32(b[at+4:])
		w := math.Float32frombits(binary.LittleEndian.Uint32(b[at+8:]))
		if int64(i) >= int64(here) || int64(j) >= int64(there) || !(w > 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("edge %d joins nodes %d and %d of %d and %d with weight %v", at/size, i, j, here, there, w)
		}
		e.add(int32(i), int32(j), w)
		if relations == 0 {
			continue
		}
		r := binary.LittleEndian.Uint32(b[at+12:])
		if int64(r) >= int64(relations) {
			return fmt.Errorf("relation of edge %d must be 0 to %d (got %d)", at/size, relations-1, r)
		}
		e.kind = append(e.kind, int32(r))
	}
	return nil
}

// encodeNames writes each name behind its length.
func encodeNames(names []string) (b []byte) {
	for _, name := range names {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	return b
}

func decodeNames(b []byte) (names []string, err error) {
	for len(b) > 0 {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return nil, fmt.Errorf("name %d of neighbours reaches past the end of the message", len(names))
		}
		names = append(names, string(b[k:k+int(n)]))
		b = b[k+int(n):]
	}
	return names, nil
}

// shard puts the site's nodes first and its neighbours at other sites after them, site by site in
// their numbers' order.
func (m *meeting) shard(edges *siteEdges, cross []ends) (*shard.Shard, error) {
	rank, n := m.g.Rank(), len(m.own.IDs)
	s := &shard.Shard{Rank: rank, Parts: m.g.Size(), Owned: n, HaloPtr: []int{n}, X: m.own.X, Labels: m.own.Labels, Split: m.own.Split,
		IDs: m.own.IDs, Nodes: m.first[m.g.Size()], Name: m.own.Name, Encoding: m.own.Encoding}
	for i := range n {
		s.Global = append(s.Global, m.first[rank]+int64(i))
	}
	src, dst, weight := edges.src, edges.dst, edges.weight
	kind, from, to, typedWeight := m.encoded.BothWays(edges.kind, src, dst, weight) // of typed edges, which have a direction
	weighted := weight != nil
	for q, e := range cross {
		halo, boundary := unique(e.there), unique(e.here)
		at := len(s.Global)
		for k := range e.here {
			place, _ := slices.BinarySearch(halo, e.there[k])
			src, dst = append(src, int32(at+place)), append(dst, e.here[k])
			if weighted {
				weight = append(weight, e.weight[k])
			}
		}
		if e.kind != nil {
			kind, from, to = append(kind, e.kind...), append(from, src[len(src)-len(e.kind):]...), append(to, e.here...)
			if weighted {
				typedWeight = append(typedWeight, e.weight...)
			}
		}
		for _, j := range halo {
			s.Global = append(s.Global, m.first[q]+int64(j))
		}
		s.HaloPtr, s.Boundary = append(s.HaloPtr, len(s.Global)), append(s.Boundary, boundary)
	}
	all, err := graph.FromEdges(len(s.Global), src, dst, weight, graph.Build{})
	if err != nil {
		return nil, fmt.Errorf("align: %w", err)
	}
	s.Adj = *all.First(n) // what neighbours elsewhere take from here is in their own shards
	if s.Typed, err = m.encoded.Typed(n, len(s.Global), kind, from, to, typedWeight); err != nil {
		return nil, fmt.Errorf("align: %w", err)
	}
	return s, nil
}

// unique returns the values in list, ascending.
func unique(list []int32) []int32 {
	out := append([]int32{}, list...)
	slices.Sort(out)
	return slices.Clip(slices.Compact(out))
}
