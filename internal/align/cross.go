package align

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/mat"
)

// ends are the edges between this site and another: node by node in each site's own numbering.
type ends struct {
	here, there []int32
	weight      []float32
	kind        []int32   // relation towards the node here, or its reverse (nil = edges have no types)
	x           []float32 // row of columns of each
}

// otherwise answers a name that a node has in another spelling, -1 a name that no node has.
const otherwise = -2

// cross returns the edges to each other site that this site or that one lists.
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
			return nil, m.blame(q, fmt.Errorf("the answer to %d names must have %d bytes (got %d)", len(x.names),
				4*len(x.names), len(b)))
		}
		for k, name := range x.there {
			i := int32(binary.LittleEndian.Uint32(b[4*name:]))
			if i == -1 || i == otherwise {
				text := fmt.Sprintf("%s has no node %.40q", m.c.Sites[q], x.names[name])
				if i == otherwise {
					text += ", but one whose name differs by case, zeros, quotes or format: write both alike"
				}
				unknown = edges.fault(m.c.Sites[q], int(name), text)
				break
			}
			if i < 0 || int(i) >= m.nodes(q) {
				return nil, m.blame(q, fmt.Errorf("node number %d, out of [0, %d)", i, m.nodes(q)))
			}
			out[q].add(x.here[k], i, x.weight[k])
		}
		out[q].kind, out[q].x = x.kind, x.x
		listed[q] = out[q].encode(m.edges)
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
		if err := out[q].decode(b, len(m.own.IDs), m.nodes(q), m.edges); err != nil {
			return nil, m.blame(q, err)
		}
		if wide := m.edges.EdgeWidth(); wide > 0 {
			out[q].unite(m.edges, wide, m.g.Rank() < q)
		}
	}
	return out, nil
}

// unite makes one edge of two that both sites list, with the larger of each column and of the weights,
// in an order that is the same at both: relation after relation.
func (e *ends) unite(by *dataset.Encoding, wide int, lower bool) {
	count := int32(max(1, len(by.Relations)))
	key := func(k int32) [4]int32 {
		a, b, kind := e.here[k], e.there[k], int32(0)
		if e.kind != nil {
			kind = e.kind[k]
		}
		if !lower { // as the other site sees it
			a, b = b, a
			if e.kind != nil {
				kind = by.Reverse(kind)
			}
		}
		return [4]int32{kind % count, a, b, kind / count}
	}
	order := mat.EveryRow(len(e.here))
	slices.SortStableFunc(order, func(a, b int32) int { x, y := key(a), key(b); return slices.Compare(x[:], y[:]) })
	out := ends{}
	for n, k := range order {
		row := e.x[int(k)*wide : (int(k)+1)*wide]
		if n > 0 && key(order[n-1]) == key(k) {
			last := len(out.weight) - 1
			out.weight[last] = max(out.weight[last], e.weight[k])
			for j, v := range row {
				at := last*wide + j
				out.x[at] = max(out.x[at], v)
			}
			continue
		}
		out.add(e.here[k], e.there[k], e.weight[k])
		out.x = append(out.x, row...)
		if e.kind != nil {
			out.kind = append(out.kind, e.kind[k])
		}
	}
	*e = out
}

// answer returns the numbers of the nodes whose names each site asked for, and why this site
// refuses to send them, if it does.
func (m *meeting) answer(asked [][]byte) (answers [][]byte, refused, err error) {
	own := dataset.Ends{Index: make(map[string]int32, len(m.own.IDs))}
	for i, name := range m.own.IDs {
		own.Index[name] = int32(i)
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
			i, must, ok := own.Find(name)
			if !ok {
				i = -1
				unknown++
			}
			if strings.HasPrefix(must, ", written") {
				i = otherwise
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

// encode writes the edges for the other site: its node, the node here, the weight and the columns, of four bytes each.
// If edges have types or directions, the relation in its direction there follows the weight.
func (e *ends) encode(by *dataset.Encoding) (b []byte) {
	wide := by.EdgeWidth()
	for k := range e.here {
		b = binary.LittleEndian.AppendUint32(b, uint32(e.there[k]))
		b = binary.LittleEndian.AppendUint32(b, uint32(e.here[k]))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(e.weight[k]))
		if e.kind != nil {
			b = binary.LittleEndian.AppendUint32(b, uint32(by.Reverse(e.kind[k])))
		}
		for _, v := range e.x[k*wide : (k+1)*wide] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// decode adds what encode wrote at a site with `there` nodes.
func (e *ends) decode(b []byte, here, there int, by *dataset.Encoding) error {
	wide := by.EdgeWidth()
	size, relations := 12+4*wide, 0
	if len(by.Relations) > 0 || by.Directed.OneWay() {
		size, relations = size+4, 2*max(1, len(by.Relations))
	}
	if len(b)%size != 0 {
		return fmt.Errorf("edges must be a multiple of %d bytes (got %d)", size, len(b))
	}
	for at := 0; at < len(b); at += size {
		number := func(k int) uint32 { return binary.LittleEndian.Uint32(b[at+4*k:]) }
		i, j, w := number(0), number(1), math.Float32frombits(number(2))
		if int64(i) >= int64(here) || int64(j) >= int64(there) || !(w > 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("edge %d joins nodes %d and %d of %d and %d with weight %v", at/size, i, j, here, there,
				w)
		}
		e.add(int32(i), int32(j), w)
		if relations > 0 {
			r := number(3)
			if int64(r) >= int64(relations) {
				return fmt.Errorf("relation of edge %d must be 0 to %d (got %d)", at/size, relations-1, r)
			}
			e.kind = append(e.kind, int32(r))
		}
		for k := range wide {
			v := math.Float32frombits(number(size/4 - wide + k))
			if v-v != 0 {
				return fmt.Errorf("column %d of edge %d must be a number (got %v)", k, at/size, v)
			}
			e.x = append(e.x, v)
		}
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

// unique returns the values in list, ascending.
func unique(list []int32) []int32 {
	out := append([]int32{}, list...)
	slices.Sort(out)
	return slices.Clip(slices.Compact(out))
}
