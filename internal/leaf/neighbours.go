package leaf

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Sums over neighbours are their own exchange. A leaf sends shares of the rows of its nodes. They are additive: each
// site adds up the shares of a node's neighbours, and the total over all sites is the sum of these neighbours' rows.
// The member that has the node gets it from each site, and nobody else learns it.

// row returns what this site has of the sum for a node.
func (e exchange) row(node int32) []byte {
	return e.numbers[8*e.width*int(node) : 8*e.width*int(node+1)]
}

// Boundary returns this site's nodes that have edges to nodes of other members.
func (s *Collector) Boundary() shard.BorderNodes {
	if s.border == nil {
		return shard.BorderNodes{}
	}
	return s.border.edge
}

// Gather returns for each node of the boundary the sum of the rows of its neighbours at other members: x has the rows
// of the boundary, and so has what is returned [boundary × D]. A leaf that is not there counts 0. All sites of the
// group call it, and each leaf; the sums are exact sums of what each member rounded to Step.
//
// Site q sends each other collecting site 8·D bytes for each of that one's nodes by Halo, and by
// Control tags as in Reduce.
func (s *Collector) Gather(ctx context.Context, id comm.ReduceID, x mat.Dense) (mat.Dense, error) {
	if e, is := s.replayed(); is {
		return e.reopened(id, x)
	}
	shares, list, err := s.collect(ctx, func(t Token) int { return len(s.intake.nodes[t]) * x.Cols })
	if err != nil {
		return mat.Dense{}, err
	}
	if s.intake == nil {
		_, err := s.group.SendRecv(ctx, comm.Halo, id.String(), make([][]byte, s.group.Size()), 0)
		if err == nil {
			err = s.publish(exchange{width: x.Cols})
		}
		return x, err
	}
	b := s.border
	own, err := pack(&comm.Contribution{ID: id, Update: x.Data}, s.agreed.bound(s.group.Size()))
	if err != nil {
		return mat.Dense{}, err
	}
	e := exchange{width: x.Cols, numbers: make([]byte, 8*x.Cols*len(b.names)), leaves: tokens(shares, list)}
	b.spread(e, b.own, own.B)
	hash := sha256.New()
	for _, tag := range list {
		at := shares[tag]
		nodes, rows := s.intake.owned(at.token), at.payload
		if at.seed {
			rows = make([]byte, 8*x.Cols*len(nodes))
			stream(at.payload).Add(64, 0, rows)
		}
		b.spread(e, nodes, rows)
		hash.Write(binary.LittleEndian.AppendUint64(nil, tag))
	}
	e.list = binary.LittleEndian.Uint32(hash.Sum(nil))
	out := make([][]byte, s.group.Size())
	for i, q := range b.owner {
		if q >= 0 && int(q) != s.group.Rank() {
			out[q] = append(out[q], e.row(int32(i))...)
		}
	}
	in, err := s.group.SendRecv(ctx, comm.Halo, id.String(), out, len(e.numbers))
	if err != nil {
		return mat.Dense{}, err
	}
	sum := comm.NewIntegers(64, len(x.Data))
	at := 0
	for _, i := range b.own {
		at += copy(sum.B[at:], e.row(i))
	}
	for q := range s.agreed.Sites {
		switch {
		case q == s.group.Rank():
		case len(in[q]) != len(sum.B):
			return mat.Dense{}, &comm.PeerError{Rank: q, Op: id.String(),
				Err: fmt.Errorf("the sums must have %d bytes (got %d)", len(sum.B), len(in[q]))}
		default:
			sum.Add(in[q])
		}
	}
	e.opened = sum.B
	if err := s.publish(e); err != nil {
		return mat.Dense{}, err
	}
	return opened(sum, x)
}

// spread adds rows of the given nodes to what e has of the sums for their neighbours.
func (b *border) spread(e exchange, nodes []int32, rows []byte) {
	for k, j := range nodes {
		row := rows[8*e.width*k : 8*e.width*(k+1)]
		to, _ := b.adj.Row(int(j))
		for _, i := range to {
			kernels.AddIntegers(64, row, e.row(i))
		}
	}
}

// opened returns the numbers of x as rows of x's shape.
func opened(sum comm.Integers, like mat.Dense) (mat.Dense, error) {
	out := mat.New(like.Rows, like.Cols)
	return out, unpack(sum, &comm.Contribution{Update: out.Data})
}

// Boundary returns this leaf's nodes that have edges to nodes of other members.
func (l *Contributor) Boundary() shard.BorderNodes { return l.Known }

// Gather is Collector.Gather at a leaf. The sums lack leaves that were not there in time, as this one may be.
func (l *Contributor) Gather(ctx context.Context, id comm.ReduceID, x mat.Dense) (mat.Dense, error) {
	k := l.next
	if k >= l.open {
		if err := l.send(ctx, k, &comm.Contribution{ID: id, Update: x.Data}); err != nil {
			return mat.Dense{}, err
		}
	}
	parts, err := l.Uplink.Parts(ctx, k)
	if err != nil {
		return mat.Dense{}, err
	}
	sum := comm.NewIntegers(64, len(x.Data))
	for q, b := range parts {
		switch {
		case !isExchange(b, k, true) || len(b) != sumsHeader+len(sum.B):
			err = fmt.Errorf("the sums over neighbours in exchange %d must have %d bytes and say so (got %d)", k,
				sumsHeader+len(sum.B), len(b))
		case string(b[12:sumsHeader]) != string(parts[0][12:sumsHeader]):
			err = errors.New("all sites must have added up the same phones")
		}
		if err != nil {
			return mat.Dense{}, &comm.PeerError{Rank: q, Op: id.String(), Err: err}
		}
		sum.Add(b[sumsHeader:])
		l.open = max(l.open, int(binary.LittleEndian.Uint32(b[8:])))
	}
	l.next = k + 1
	return opened(sum, x)
}

// isExchange reports whether b is what a site publishes of exchange k.
func isExchange(b []byte, k int, neighbours bool) bool {
	return len(b) >= sumsHeader && b[0] == version && (b[2] == 1) == neighbours &&
		binary.LittleEndian.Uint32(b[4:]) == uint32(k)
}

// GatheredBytes returns the bytes that a leaf receives from all sites if rows of its nodes have `numbers` numbers
// together. It sends SentBytes.
func (a Agreement) GatheredBytes(numbers int) int64 { return int64(a.Sites * (sumsHeader + 8*numbers)) }
