package commtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/rng"
)

// The Group operations over the transport, each against a plain loop.
func (n network) groups(t *testing.T) {
	for size := 1; size <= 5; size++ {
		t.Run(fmt.Sprintf("%d members", size), func(t *testing.T) { n.group(t, size) })
	}
	t.Run("lost member", n.groupLost)
	t.Run("lost member in a stream", func(t *testing.T) { n.eachMember(t, 3, n.groupStreamEnds) })
	t.Run("unequal lengths in a stream", func(t *testing.T) { n.eachMember(t, 2, n.groupStreamUnequal) })
	t.Run("unequal lengths", n.groupUnequal)
}

// eachMember runs f as every member of a new group.
func (n network) eachMember(t *testing.T, size int, f func(ctx context.Context, g *comm.Group) error) {
	ctx, ts := n.start(t, size)
	tasks := make([]func() error, size)
	for r := range size {
		g := comm.NewGroup(ts[r], r, size)
		tasks[r] = func() error {
			if err := f(ctx, g); err != nil {
				return fmt.Errorf("member %d: %w", r, err)
			}
			return nil
		}
	}
	together(t, tasks...)
}

// vector is n values of either sign between 2⁻²⁰ and 2²⁰, so that the order of a sum matters.
func vector(rank, n int) []float32 {
	key, x := rng.New(7).Fold(uint64(rank)).Fold(uint64(n)), make([]float32, n)
	for i := range x {
		bits := uint32(key.Uint64(uint64(i)))
		exponent := 107 + bits>>23&0xff*40/256
		x[i] = math.Float32frombits(bits&0x807fffff | exponent<<23)
	}
	return x
}

func sameBits(what string, got, want []float32) error {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return fmt.Errorf("%s: [%d] of %d must be %v (got %v)", what, i, len(want), want[i], got[i])
		}
	}
	return nil
}

// plainSum is the result of AllReduce over all vectors.
func plainSum(size, length int) []float32 {
	wide := make([]float64, length)
	for r := range size {
		for i, v := range vector(r, length) {
			wide[i] += float64(v)
		}
	}
	sum := make([]float32, length)
	for i, v := range wide {
		sum[i] = float32(v)
	}
	return sum
}

func (n network) group(t *testing.T, size int) {
	lengths := []int{0, 1, 100, 4095, 4096, 150_001}
	sums := make([][]float32, len(lengths))
	for i, length := range lengths {
		sums[i] = plainSum(size, length)
	}
	n.eachMember(t, size, func(ctx context.Context, g *comm.Group) error {
		me := g.Rank()
		for i, length := range lengths {
			x := vector(me, length)
			if err := g.AllReduce(ctx, comm.Reduce, x); err != nil {
				return err
			}
			if err := sameBits("allreduce", x, sums[i]); err != nil {
				return err
			}
		}
		if err := reduction(ctx, g); err != nil {
			return err
		}
		if err := fixedSums(ctx, g); err != nil {
			return err
		}
		if err := n.groupRows(ctx, g); err != nil {
			return err
		}
		if err := n.groupStream(ctx, g); err != nil {
			return err
		}
		for root := range size {
			x := vector(me, 8000)
			if err := g.Broadcast(ctx, comm.Control, root, x); err != nil {
				return err
			}
			if err := sameBits("broadcast", x, vector(root, 8000)); err != nil {
				return err
			}
		}
		return g.Barrier(ctx)
	})
}

// reduction reduces all that a contribution can have, with few counts and with many.
func reduction(ctx context.Context, g *comm.Group) error {
	for _, counts := range []int{1, 5000} {
		c := &comm.Contribution{
			Update: vector(g.Rank(), 10), Counts: make([]int64, counts), Meta: []byte{byte(g.Rank())},
		}
		for i := range c.Counts {
			c.Counts[i] = 1 << (i % 50)
		}
		r, err := g.Reduce(ctx, c)
		if err != nil {
			return err
		}
		if err := sameBits("reduce", c.Update, plainSum(g.Size(), 10)); err != nil {
			return err
		}
		for i, n := range c.Counts {
			if n != int64(g.Size())<<(i%50) {
				return fmt.Errorf("reduce: count %d must be %d (got %d)", i, int64(g.Size())<<(i%50), n)
			}
		}
		for q, m := range r.Meta {
			if len(m) != 1 || m[0] != byte(q) {
				return fmt.Errorf("reduce: meta of member %d is %v", q, m)
			}
		}
	}
	return nil
}

// fixedSums reduces in fixed point, over one frame and over several. A member's numbers are whole,
// of magnitude rank + 1 at most, so that a column's sums are known except the rounding.
func fixedSums(ctx context.Context, g *comm.Group) error {
	size := g.Size()
	all := size * (size + 1) / 2
	for _, form := range []struct{ bits, columns, n int }{
		{8, 1, 100}, {8, 5000, 10_000}, {16, 1, 10_000}, {32, 5000, 10_000}, {16, 2, 300_000},
	} {
		x := make([]float32, form.n)
		for i := range x {
			x[i] = float32((i/form.columns%3 - 1) * (g.Rank() + 1))
		}
		c := &comm.Contribution{Update: x, Bits: form.bits, Columns: form.columns, Counts: []int64{int64(g.Rank())}}
		if _, err := g.Reduce(ctx, c); err != nil {
			return err
		}
		bound := float64(all*size) / math.Exp2(float64(form.bits-1)) // twice M/2 steps
		for i, v := range x {
			if want := float64((i/form.columns%3 - 1) * all); math.Abs(float64(v)-want) > bound {
				return fmt.Errorf("sum %+v: [%d] must be within %g of %g (got %g)", form, i, bound, want, v)
			}
		}
		if want := int64(size * (size - 1) / 2); c.Counts[0] != want {
			return fmt.Errorf("sum %+v: the count must be %d (got %d)", form, want, c.Counts[0])
		}
		own := bytesOf(nil, x)
		digests := make([][]byte, size)
		for q := range digests {
			if q != g.Rank() {
				digests[q] = binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(own))
			}
		}
		theirs, err := g.SendRecv(ctx, comm.Control, "sums", digests, 4)
		if err != nil {
			return err
		}
		for q, b := range theirs {
			if q != g.Rank() && (len(b) != 4 || binary.LittleEndian.Uint32(b) != crc32.ChecksumIEEE(own)) {
				return fmt.Errorf("sum %+v: member %d has other bits", form, q)
			}
		}
	}
	return nil
}

// rows is the uneven number of floats that one member sends another: none, or one frame or two.
func rows(from, to int) int { return (from*5 + to*3) % 7 * 12_000 }

func (n network) groupRows(ctx context.Context, g *comm.Group) error {
	me, size := g.Rank(), g.Size()
	out, in := make([][]float32, size), make([][]float32, size)
	blobs := make([][]byte, size)
	for q := range size {
		if q != me {
			out[q] = vector(me*size+q, rows(me, q))
			in[q] = make([]float32, rows(q, me))
			if rows(me, q) > 0 {
				blobs[q] = content(me, q, 0, 280_000)
			}
		}
	}
	if err := g.Exchange(ctx, comm.Halo, "rows", out, in); err != nil {
		return err
	}
	got, err := g.SendRecv(ctx, comm.Control, "blobs", blobs, 280_000)
	if err != nil {
		return err
	}
	for q := range size {
		if q == me {
			continue
		}
		if err := sameBits("exchange", in[q], vector(q*size+me, rows(q, me))); err != nil {
			return err
		}
		want := ""
		if rows(q, me) > 0 {
			want = string(content(q, me, 0, 280_000))
		}
		if string(got[q]) != want {
			return fmt.Errorf("sendrecv: %d bytes from %d, want %d, or others", len(got[q]), q, len(want))
		}
	}
	return nil
}

// If a member goes away, the running operation and every later one name it.
func (n network) groupLost(t *testing.T) {
	n.eachMember(t, 3, func(ctx context.Context, g *comm.Group) error {
		x := vector(g.Rank(), 200_000)
		if err := g.AllReduce(ctx, comm.Reduce, x); err != nil {
			return err
		}
		err := g.Barrier(ctx)
		if g.Rank() == 2 {
			if err != nil {
				return err
			}
			return g.Close()
		}
		if err != nil { // a member past the barrier may have reported the loss
			return wantPeer(err, 2, "barrier before an allreduce without member 2")
		}
		err = g.AllReduce(ctx, comm.Reduce, x)
		if wrong := wantPeer(err, 2, "allreduce without member 2"); wrong != nil {
			return wrong
		}
		if later := g.Barrier(ctx); !errors.Is(later, err) {
			return fmt.Errorf("after %v a later call returned %v", err, later)
		}
		return nil
	})
}

// Lengths that differ are an error that names the peer, not a wait or a wrong sum.
func (n network) groupUnequal(t *testing.T) {
	n.eachMember(t, 2, func(ctx context.Context, g *comm.Group) error {
		err := g.AllReduce(ctx, comm.Reduce, make([]float32, 10_000+g.Rank()))
		g.Close()                                               // the others learn that this one ended
		return wantPeer(err, 1, "allreduce of unequal lengths") // both take the word of the first
	})
}
