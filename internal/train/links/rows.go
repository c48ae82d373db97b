package links

import (
	"context"
	"encoding/binary"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// joinedPairs are pairs of rows of a table, and how the table is made: own rows, then other peers' rows.
type joinedPairs struct {
	of   []nn.Pair
	give [][]int32 // own rows that peer q reads, in its order
	ptr  []int     // peer q's rows are [ptr[q], ptr[q+1]) of the table
}

// askedPair is one pair by its own end, an index, and the other one, a global ID.
type askedPair struct {
	at       int32
	other    int64
	relation int32
}

// meet finds the rows of all ends. Every peer must call it equally often: it informs peers which of their rows are
// read.
func (t *Learner) meet(ctx context.Context, all []askedPair, what string) (*joinedPairs, error) {
	s := t.shard
	e := &joinedPairs{of: make([]nn.Pair, len(all)), give: make([][]int32, s.Parts), ptr: make([]int, s.Parts+1)}
	need := make([][]int64, s.Parts)
	for _, p := range all {
		if q := t.dir.Peer[p.other]; int(q) != s.Rank && t.seen[p.other] == 0 {
			need[q] = append(need[q], p.other)
			t.seen[p.other] = int32(len(need[q]))
		}
	}
	out := make([][]byte, s.Parts)
	for q, ids := range need {
		for _, id := range ids {
			out[q] = binary.LittleEndian.AppendUint32(out[q], uint32(t.dir.Local[id]))
		}
	}
	e.ptr[0] = s.Owned
	for q := range s.Parts {
		e.ptr[q+1] = e.ptr[q] + len(need[q])
	}
	for k, p := range all {
		v := t.dir.Local[p.other]
		if q := t.dir.Peer[p.other]; int(q) != s.Rank {
			v = int32(e.ptr[q]) + t.seen[p.other] - 1
		}
		e.of[k] = nn.Pair{U: p.at, V: v, Relation: p.relation}
	}
	for _, ids := range need {
		for _, id := range ids {
			t.seen[id] = 0
		}
	}
	if t.Halo {
		return e, nil
	}
	in, err := t.group.SendRecv(ctx, comm.Control, "nodes of "+what, out, int(4*s.Nodes))
	if err != nil {
		return nil, err
	}
	for q, b := range in {
		if q == s.Rank {
			continue
		}
		for k := 0; k+4 <= len(b); k += 4 {
			i := binary.LittleEndian.Uint32(b[k:])
			if i >= uint32(s.Owned) || t.config.Near && !t.boundary[q][int32(i)] {
				return nil,
					&comm.PeerError{Rank: q, Op: what,
						Err: comm.Refused("it may read rows of %d nodes, or with negatives_from near of those next "+
							"to its own (got node %d)", s.Owned, i)}
			}
			e.give[q] = append(e.give[q], int32(i))
		}
	}
	return e, nil
}

// table returns own rows z followed by the other peers' rows.
func (t *Learner) table(ctx context.Context, e *joinedPairs, z mat.Dense, what string) (mat.Dense, error) {
	if t.Halo {
		return z, nil
	}
	x, err := t.sender.Rows(ctx, e.give, e.ptr, graph.Features{Dense: z}, false, what)
	return x.Dense, err
}

// back adds to dz what the peers have found as gradients of own rows; d has this peer's, of the table.
func (t *Learner) back(ctx context.Context, e *joinedPairs, dz, d mat.Dense, what string) error {
	s := t.shard
	for i := range dz.Rows {
		kernels.Add(d.Row(i), dz.Row(i))
	}
	if s.Parts == 1 || t.Halo {
		return nil
	}
	theirs := d.RowRange(s.Owned, d.Rows)
	give, ptr := make([][]int32, s.Parts), make([]int, s.Parts+1)
	ptr[0] = theirs.Rows
	for q := range s.Parts {
		for k := e.ptr[q]; k < e.ptr[q+1]; k++ {
			give[q] = append(give[q], int32(k-s.Owned))
		}
		ptr[q+1] = ptr[q] + len(e.give[q])
	}
	x, err := t.sender.Rows(ctx, give, ptr, graph.Features{Dense: theirs}, false, "gradients of "+what)
	if err != nil {
		return err
	}
	for q, list := range e.give {
		for k, i := range list {
			kernels.Add(x.Dense.Row(ptr[q]+k), dz.Row(int(i)))
		}
	}
	return nil
}
