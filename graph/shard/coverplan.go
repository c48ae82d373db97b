package shard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
)

// Cover is what one peer sends another for a layer that sums rows: the rows of some sources and, for some destinations,
// the sum over their other sources. So every edge is in exactly one row or sum.
type Cover struct {
	Rows []int32   // sources whose rows are sent, ascending
	Dst  []int32   // destinations of the sums, ascending; only the receiver knows them
	Sums graph.CSR // len(Dst) × sources: the terms of each sum
}

// NewCover returns the least cover of adj, the edges from one peer's nodes into another's. If sums save nothing, it has
// the rows of all sources that have an edge.
func NewCover(adj *graph.CSR) *Cover {
	rows, sums := leastCover(adj)
	read := make([]bool, adj.NumSrc)
	for _, j := range adj.Col {
		read[j] = true
	}
	var all []int32
	for j, r := range read {
		if r {
			all = append(all, int32(j))
		}
	}
	if len(rows)+len(sums) >= len(all) {
		rows, sums = all, nil
	}
	c := &Cover{Rows: rows, Sums: graph.CSR{NumSrc: adj.NumSrc, RowPtr: []int64{0}}}
	if adj.Weight != nil {
		c.Sums.Weight = []float32{}
	}
	alone := make([]bool, adj.NumSrc)
	for _, j := range rows {
		alone[j] = true
	}
	for _, i := range sums {
		col, weight := adj.Row(int(i))
		for k, j := range col {
			if alone[j] {
				continue
			}
			if c.Sums.Col = append(c.Sums.Col, j); weight != nil {
				c.Sums.Weight = append(c.Sums.Weight, weight[k])
			}
		}
		if n := int64(len(c.Sums.Col)); n == c.Sums.RowPtr[c.Sums.NumDst] {
			continue // the cover is not the least one
		}
		c.Dst = append(c.Dst, i)
		c.Sums.NumDst++
		c.Sums.RowPtr = append(c.Sums.RowPtr, int64(len(c.Sums.Col)))
	}
	return c
}

// Len returns how many messages the cover takes, each as wide as a row.
func (c *Cover) Len() int { return len(c.Rows) + c.Sums.NumDst }

// Append appends the cover to b in the sender's format. It is uvarints: the number of rows and of sums, the rows, and
// for each sum the number of its terms and the terms. Lists are written as gaps. Weights follow, if there are any.
func (c *Cover) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(c.Rows)))
	b = binary.AppendUvarint(b, uint64(c.Sums.NumDst))
	b = appendGaps(b, c.Rows)
	for i := range c.Sums.NumDst {
		col, _ := c.Sums.Row(i)
		b = appendGaps(binary.AppendUvarint(b, uint64(len(col))), col)
	}
	for _, w := range c.Sums.Weight {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(w))
	}
	return b
}

// parseCover reads what Append wrote for a cover over that many sources. b comes from a peer, so everything in it is
// checked.
func parseCover(b []byte, sources int, weighted bool) (*Cover, error) {
	r := coverReader{b: b, sources: sources}
	rows, sums := r.uvarint(), r.uvarint()
	if r.err == nil && (rows > uint64(sources) || sums > uint64(sources)-rows) {
		return nil, fmt.Errorf("%d rows and %d sums instead of %d rows", rows, sums, sources)
	}
	c := &Cover{Rows: r.gaps(nil, rows), Sums: graph.CSR{NumSrc: sources, RowPtr: []int64{0}}}
	for range sums {
		n := r.uvarint()
		if r.err == nil && n == 0 {
			return nil, fmt.Errorf("sum %d has no terms", c.Sums.NumDst)
		}
		if c.Sums.Col = r.gaps(c.Sums.Col, n); r.err != nil {
			break
		}
		c.Sums.NumDst++
		c.Sums.RowPtr = append(c.Sums.RowPtr, int64(len(c.Sums.Col)))
	}
	if weighted {
		c.Sums.Weight = r.weights(len(c.Sums.Col))
	}
	if r.err == nil && !bytes.Equal(c.Append(make([]byte, 0, len(b))), b) {
		return nil, fmt.Errorf("%d bytes, not written as they have to be", len(b))
	}
	return c, r.err
}

// coverReader reads numbers until the first one that is missing.
type coverReader struct {
	b       []byte
	sources int
	err     error
}

// uvarint reads a number, or returns 0 after a fault.
func (r *coverReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.err != nil {
		return 0
	}
	if n <= 0 {
		r.err = fmt.Errorf("it ends within a number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// gaps appends n ascending sources to list.
func (r *coverReader) gaps(list []int32, n uint64) []int32 {
	if r.err != nil {
		return list
	}
	var more []int32
	more, r.b, r.err = parseGaps(r.b, n, r.sources)
	return append(list, more...)
}

// weights reads the rest of the message as the finite weights, 0 or more, of n terms.
func (r *coverReader) weights(n int) []float32 {
	w := []float32{}
	if r.err == nil && len(r.b) != 4*n {
		r.err = fmt.Errorf("%d bytes of weights for %d terms", len(r.b), n)
	}
	for k := 0; k < n && r.err == nil; k++ {
		v := math.Float32frombits(binary.LittleEndian.Uint32(r.b[4*k:]))
		if !(v >= 0 && v <= math.MaxFloat32) {
			r.err = fmt.Errorf("weight %g of term %d", v, k)
		}
		w = append(w, v)
	}
	return w
}

// Weigh returns the terms of the sums over that many of the sender's nodes: source j is node[j], and its terms are
// multiplied by f[node[j]] (nil = 1).
func (c *Cover) Weigh(f []float64, node []int32, nodes int) *graph.CSR {
	out := &graph.CSR{NumDst: c.Sums.NumDst, NumSrc: nodes, RowPtr: c.Sums.RowPtr, Col: make([]int32, len(c.Sums.Col)),
		Weight: c.Sums.Weight}
	if f != nil {
		out.Weight = make([]float32, len(c.Sums.Col))
	}
	for k, j := range c.Sums.Col {
		out.Col[k] = node[j]
		if f == nil {
			continue
		}
		w := 1.0
		if c.Sums.Weight != nil {
			w = float64(c.Sums.Weight[k])
		}
		out.Weight[k] = float32(w * f[node[j]])
	}
	return out
}

// Agree sends every peer q what this one wants of q's rows, want[q], and returns what each wants of
// this one's, of the rows[q] that it may read. nil is all of them, row by row. exchange
// sends a message of at most limit bytes to every peer and returns theirs; who the destinations of
// sums are is not in them.
func Agree(want []*Cover, rows []int, weighted bool,
	exchange func(out [][]byte, limit int) (in [][]byte, err error)) (give []*Cover, err error) {
	out := make([][]byte, len(want))
	for q, c := range want {
		if c == nil {
			continue
		}
		if b := c.Append(nil); len(b) <= maxCover {
			out[q] = b
		} else {
			want[q] = nil
		}
	}
	in, err := exchange(out, maxCover)
	if err != nil {
		return nil, err
	}
	give = make([]*Cover, len(want))
	for q, b := range in {
		if len(b) == 0 {
			continue
		}
		if give[q], err = parseCover(b, rows[q], weighted); err != nil {
			return nil, &comm.PeerError{Rank: q, Op: "what it wants of the rows", Err: err}
		}
	}
	return give, nil
}

// maxCover bounds the bytes of a cover in a message: a larger one is not requested.
const maxCover = 1 << 28

// Place assigns sources, from base on, to what a peer sends under the cover: those among its
// sources whose rows are sent get their place in to, the others −1, and virtual gets, for
// destination i of n, the edge from its sum. It returns the first source behind.
func (c *Cover) Place(to []int32, virtual [][]int32, base int) int {
	for j := range to {
		to[j] = -1
	}
	for k, j := range c.Rows {
		to[j] = int32(base + k)
	}
	for k, i := range c.Dst {
		virtual[i] = append(virtual[i], int32(base+len(c.Rows)+k))
	}
	return base + c.Len()
}

// WithSums returns adj, whose sources have their places already, with an edge from every sum into
// its destination: virtual[i] are the sums of destination i, weighed dst[i] (nil = 1), among that many
// sources.
func WithSums(adj *graph.CSR, virtual [][]int32, dst []float64) *graph.CSR {
	sums := &graph.CSR{NumDst: adj.NumDst, NumSrc: adj.NumSrc, RowPtr: make([]int64, adj.NumDst+1)}
	for i, list := range virtual {
		sums.Col = append(sums.Col, list...)
		if dst != nil {
			sums.Weight = append(sums.Weight, slices.Repeat([]float32{float32(dst[i])}, len(list))...)
		}
		sums.RowPtr[i+1] = int64(len(sums.Col))
	}
	return graph.Union(adj, sums)
}
