package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
)

// Outside is an edge, with weight 1 in both directions, between a node here and a node of another site.
type Outside struct {
	Node  int32  // here
	Site  string // name of the other site
	Other string // name of the node there (graph.Graph.IDs)
}

const (
	mostUnknown  = 10      // unknown names that one site may request
	mostExchange = 1 << 31 // bytes of names or edges between two sites
)

// Connect adds edges to nodes of other members to own, which Number has numbered. All members call it; an edge that
// both its sites list counts once. swap sends out[q] to each member q and returns what each sent. A member learns which
// of its nodes have neighbors elsewhere, and each name that it lists goes to the one site that it lists it for. If a
// site lists a name that does not exist, all return an error. Every member makes the same calls of swap
// in the same order, with edges or without: a member that returned early would leave the others waiting. So a local
// fault is first settled (settle), and only a message that cannot be read ends the call at once, as the end of the
// session then shows the others.
func Connect(own *Shard, first []int64, names []string, edges []Outside,
	swap func(what string, out [][]byte, limit int) ([][]byte, error)) error {
	c := connecting{own, first, names, swap}
	pairs, err := c.resolve(edges)
	if err != nil {
		return err
	}
	listed := make([][]byte, len(names))
	for q, of := range pairs {
		for _, p := range of { // as the other site has them
			listed[q] = binary.LittleEndian.AppendUint32(listed[q], uint32(p[1]))
			listed[q] = binary.LittleEndian.AppendUint32(listed[q], uint32(p[0]))
		}
	}
	in, err := swap("edges between sites", listed, mostExchange)
	if err != nil {
		return err
	}
	for q, b := range in {
		if q == own.Rank {
			continue
		}
		if len(b)%8 != 0 {
			return c.blame(q, fmt.Errorf("edges must be a multiple of 8 bytes (got %d)", len(b)))
		}
		for ; len(b) > 0; b = b[8:] {
			here, there := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			if int64(here) >= int64(own.Owned) || int64(there) >= first[q+1]-first[q] {
				return c.blame(q, fmt.Errorf("an edge joins nodes %d and %d of %d and %d", here, there, own.Owned,
					first[q+1]-first[q]))
			}
			pairs[q] = append(pairs[q], [2]int32{int32(here), int32(there)})
		}
	}
	// Now both sites of a pair have the same set of pairs: what this one listed and what the other did. Each sorts it
	// alike, so that Boundary here and the halo there agree row by row without another message.
	c.join(pairs)
	return own.Valid()
}

// connecting is one member's state in Connect.
type connecting struct {
	own   *Shard
	first []int64 // global number of each member's first node, and the number of all
	names []string
	swap  func(what string, out [][]byte, limit int) ([][]byte, error)
}

// blame returns err as the fault of member q.
func (c connecting) blame(q int, err error) error {
	return &comm.PeerError{Rank: q, Name: c.names[q], Op: "connect", Err: err}
}

// resolve returns the edges to each member by number: the node here, and the node there.
func (c connecting) resolve(edges []Outside) ([][][2]int32, error) {
	asked, known, err := make([][]byte, len(c.names)), make([]map[string]int, len(c.names)), c.fault(edges)
	for k := 0; k < len(edges) && err == nil; k++ {
		e := edges[k]
		q := slices.Index(c.names, e.Site)
		if known[q] == nil {
			known[q] = map[string]int{}
		}
		// A name is sent once, and the answer has the same index: answers contain no names.
		if _, ok := known[q][e.Other]; !ok {
			known[q][e.Other] = len(known[q])
			asked[q] = append(binary.AppendUvarint(asked[q], uint64(len(e.Other))), e.Other...)
		}
	}
	if err := c.settle(err); err != nil {
		return nil, err
	}
	in, err := c.swap("names of neighbors", asked, mostExchange)
	if err != nil {
		return nil, err
	}
	// Unknown names are answered by −1, since a typing error is common and the site that lists the name reports it.
	// More than a few may be a list of another site, or an attempt to learn who is a customer there.
	answers, refusal, err := c.answer(in)
	if err == nil {
		err = c.settle(refusal)
	}
	if err == nil {
		in, err = c.swap("numbers of neighbors", answers, mostExchange)
	}
	if err != nil {
		return nil, err
	}
	pairs, unknown := make([][][2]int32, len(c.names)), error(nil)
	for _, e := range edges {
		q := slices.Index(c.names, e.Site)
		if len(in[q]) != 4*len(known[q]) {
			return nil, c.blame(q, fmt.Errorf("the answer to %d names must have %d bytes (got %d)", len(known[q]),
				4*len(known[q]), len(in[q])))
		}
		i := int32(binary.LittleEndian.Uint32(in[q][4*known[q][e.Other]:]))
		switch {
		// A negative number goes on into pairs, which the settled error below throws away.
		case i < 0 && unknown == nil:
			unknown = fmt.Errorf("an edge of node %d: %s has no node %.40q", e.Node, e.Site, e.Other)
		case int64(i) >= c.first[q+1]-c.first[q]:
			return nil, c.blame(q, fmt.Errorf("node number %d, out of [0, %d)", i, c.first[q+1]-c.first[q]))
		}
		pairs[q] = append(pairs[q], [2]int32{e.Node, i})
	}
	return pairs, c.settle(unknown)
}

// fault returns what is wrong with edges before anything is sent.
func (c connecting) fault(edges []Outside) error {
	if len(c.own.Typed.Names) > 0 || c.own.EdgeX.Cols > 0 {
		return errors.New("edges between sites have no types and no columns: a graph with them takes heddle match")
	}
	for k, e := range edges {
		if q := slices.Index(c.names, e.Site); q < 0 || q == c.own.Rank {
			return fmt.Errorf("edge %d must be to another site, one of %q (got %.40q)", k, c.names, e.Site)
		}
		if e.Node < 0 || int(e.Node) >= c.own.Owned {
			return fmt.Errorf("edge %d must be of a node in [0, %d) (got %d)", k, c.own.Owned, e.Node)
		}
	}
	return nil
}

// answer returns the numbers of the nodes whose names each member requests (−1 = none), and why this member refuses.
func (c connecting) answer(asked [][]byte) (answers [][]byte, refusal, err error) {
	number := make(map[string]int32, c.own.Owned)
	for i, name := range c.own.IDs {
		number[name] = int32(i)
	}
	answers = make([][]byte, len(asked))
	for q, b := range asked {
		unknown := 0
		for len(b) > 0 {
			n, k := binary.Uvarint(b)
			if k <= 0 || n > uint64(len(b)-k) {
				return nil, nil, c.blame(q, errors.New("a name reaches past the end of the message"))
			}
			i, ok := number[string(b[k:k+int(n)])]
			if b = b[k+int(n):]; !ok {
				i, unknown = -1, unknown+1
			}
			answers[q] = binary.LittleEndian.AppendUint32(answers[q], uint32(i))
		}
		if unknown > mostUnknown {
			refusal = errors.Join(refusal, fmt.Errorf("%s requests %d nodes of this site by name that do not exist, "+
				"must be at most %d: its list is wrong, or it guesses names", c.names[q], unknown, mostUnknown))
		}
	}
	return answers, refusal, nil
}

// settle returns err or, if another member had one, an error that names that member.
func (c connecting) settle(err error) error {
	out := make([][]byte, len(c.names))
	for q := range out {
		if out[q] = []byte{0}; err != nil {
			out[q] = []byte{1}
		}
	}
	in, lost := c.swap("settle", out, 1)
	if err != nil || lost != nil {
		return errors.Join(err, lost)
	}
	for q, b := range in {
		if q != c.own.Rank && !bytes.Equal(b, []byte{0}) {
			return c.blame(q, errors.New("it cannot go on: its own message names the cause"))
		}
	}
	return nil
}

// join replaces own by the shard with the edges to other members.
func (c connecting) join(pairs [][][2]int32) {
	s := c.own
	more := make([][]int32, s.Owned) // [Owned] sources at other members, ascending
	s.HaloPtr, s.Boundary = []int{s.Owned}, nil
	for q, of := range pairs {
		boundary, halo := make([]int32, 0, len(of)), make([]int32, 0, len(of))
		slices.SortFunc(of, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
		of = slices.Compact(of)
		for _, p := range of {
			boundary, halo = append(boundary, p[0]), append(halo, p[1])
		}
		slices.Sort(halo)
		boundary, halo = slices.Compact(boundary), slices.Compact(halo)
		for _, p := range of {
			at, _ := slices.BinarySearch(halo, p[1])
			// Global grows only after this loop, so its length is the number of the first halo row of q. Members come
			// by rank and pairs are sorted: the new columns of a row ascend.
			more[p[0]] = append(more[p[0]], int32(len(s.Global)+at))
		}
		for _, j := range halo {
			s.Global = append(s.Global, c.first[q]+int64(j))
		}
		s.HaloPtr, s.Boundary = append(s.HaloPtr, len(s.Global)), append(s.Boundary, boundary)
	}
	adj := graph.CSR{NumDst: s.Owned, NumSrc: len(s.Global), RowPtr: []int64{0}}
	for i := range s.Owned {
		col, weight := s.Adj.Row(i)
		adj.Col = append(append(adj.Col, col...), more[i]...)
		if adj.RowPtr = append(adj.RowPtr, int64(len(adj.Col))); s.Adj.Weight == nil {
			continue
		}
		adj.Weight = append(adj.Weight, weight...)
		for range more[i] {
			adj.Weight = append(adj.Weight, 1)
		}
	}
	s.Adj = adj
}
