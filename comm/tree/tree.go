// Package tree sums integers of many members over a tree of them. Integers can be added in any order: the sum has the same
// bits as one that a single member takes.
//
// By place among the members in order of rank, member p hands its sum up to member (p−1)/FanOut, and the total comes down
// the same way. Of M members 2·(M−1) messages are sent for a sum in place of 2·(M−1) for each owner of a chunk, no member sends
// more than FanOut + 1, and Trips of them follow one another.
package tree

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
)

const (
	// Above is the number of members up to which sums go to the owners of chunks, directly.
	Above = 64

	// FanOut is how many members hand their sums to one. A tree of fewer has a longer path; of more, the vector leaves a member so
	// many times.
	FanOut = 16
)

// Trips returns how many messages of a sum among so many members follow one another.
func Trips(members int) int64 { return 2 * int64(depthOf(members-1)) }

// depthOf returns how many members are above the one at a place.
func depthOf(place int) (d int) {
	for ; place > 0; place = (place - 1) / FanOut {
		d++
	}
	return d
}

// Sum is comm.Group.SumIntegers over a tree. A member sees the sums of the branches below it; hide is called for all of a vector
// at once. Meta goes to each member directly, so that nobody can write another's.
//
// M members together send 2·(M−1) times the bytes of the vectors by the door Reduce. If a member fails, so does the sum
// of whoever exchanges with it, and then that of all: nobody goes on with a part of the total.
func Sum(
	ctx context.Context, g *comm.Group, id comm.ReduceID, meta []byte, hide func(k, lo, hi int), vectors ...comm.Integers,
) (comm.Reduced, error) {
	r := comm.Reduced{Meta: make([][]byte, g.Size())}
	if len(meta) > 0 {
		out := make([][]byte, g.Size())
		for q := range g.Size() {
			out[q] = meta
		}
		var err error
		if r.Meta, err = g.SendRecv(ctx, comm.Control, id.String(), out, comm.MaxMeta); err != nil {
			return comm.Reduced{}, err
		}
		r.Meta[g.Rank()] = meta
	}
	bytes := 0
	for k, v := range vectors {
		bytes += len(v.B)
		hide(k, 0, len(v.B)/(v.Bits/8))
	}
	if bytes == 0 {
		return r, nil
	}
	n := newNode(g, id, bytes)
	if err := n.gather(ctx, vectors); err != nil {
		return comm.Reduced{}, err
	}
	return r, n.scatter(ctx, vectors)
}

// node is a member's place in the tree of one sum.
type node struct {
	group         *comm.Group
	id            comm.ReduceID
	above         int   // rank
	below         []int // ranks
	depth, depth0 int   // its own, and the greatest
	bytes         int   // of all vectors
}

func newNode(g *comm.Group, id comm.ReduceID, bytes int) *node {
	place, size := g.Rank(), g.Size()
	first := FanOut*place + 1
	n := &node{group: g, id: id, depth: depthOf(place), depth0: depthOf(size - 1), bytes: bytes, above: max(place-1, 0) / FanOut}
	for q := min(first, size); q < min(first+FanOut, size); q++ {
		n.below = append(n.below, q)
	}
	return n
}

// gather adds to the vectors those of all members below, and hands them up, the deepest members first.
func (n *node) gather(ctx context.Context, vectors []comm.Integers) error {
	for d := n.depth0; d > 0; d-- {
		out, in := map[int][]byte{}, map[int][]byte{}
		switch n.depth {
		case d:
			out[n.above] = joined(vectors, n.bytes)
		case d - 1:
			for _, q := range n.below {
				in[q] = make([]byte, n.bytes)
			}
		}
		// Who waits for a member that says nothing gives up before those who wait for its own sum: so it is the one that is named.
		patience := 1 + 0.5*float64(n.depth0-d)/float64(n.depth0)
		if err := n.group.Relay(ctx, comm.Reduce, n.step(d), patience, out, in); err != nil {
			return err
		}
		for _, b := range in {
			for _, v := range vectors {
				v.Add(b[:len(v.B)])
				b = b[len(v.B):]
			}
		}
	}
	return nil
}

// scatter makes the vectors those of the first member.
func (n *node) scatter(ctx context.Context, vectors []comm.Integers) error {
	for d := 1; d <= n.depth0; d++ {
		out, in := map[int][]byte{}, map[int][]byte{}
		var total []byte
		switch n.depth {
		case d:
			total = make([]byte, n.bytes)
			in[n.above] = total
		case d - 1:
			all := joined(vectors, n.bytes)
			for _, q := range n.below {
				out[q] = all
			}
		}
		if err := n.group.Relay(ctx, comm.Reduce, n.step(n.depth0+d), 2, out, in); err != nil {
			return err
		}
		for _, v := range vectors {
			total = total[copy(v.B, total):]
		}
	}
	return nil
}

// step names a level of the way, in errors.
func (n *node) step(level int) comm.ReduceID {
	id := n.id
	id.Kind = fmt.Sprintf("%s, level %d of %d", id.Kind, level, 2*n.depth0)
	return id
}

// joined returns the bytes of all vectors.
func joined(vectors []comm.Integers, bytes int) []byte {
	if len(vectors) == 1 {
		return vectors[0].B
	}
	b := make([]byte, 0, bytes)
	for _, v := range vectors {
		b = append(b, v.B...)
	}
	return b
}
