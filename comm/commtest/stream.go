package commtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
)

// groupStream sends two messages between every pair: the first is ready at once and received one peer
// at a time, the second is ready only when the first has arrived, and received in turn.
func (n network) groupStream(ctx context.Context, g *comm.Group) error {
	me, size := g.Rank(), g.Size()
	got := [2][][]float32{make([][]float32, size), make([][]float32, size)}
	lanes := make([]comm.Lane, 2)
	var turns []int
	for l := range lanes {
		lanes[l] = comm.Lane{
			Out: make([]int, size), In: make([]int, size),
			Unit: 4 + 8*l,
			Fill: func(to, at int, dst []byte) []byte {
				return bytesOf(dst[:0], vector(l+me*size+to, rows(me, to))[at/4:(at+len(dst))/4])
			},
			Take: func(from, at, n int, src []byte) error {
				for k := 0; k < n; k += 4 {
					got[l][from][(at+k)/4] = math.Float32frombits(binary.LittleEndian.Uint32(src[k:]))
				}
				return nil
			},
		}
		for q := range size {
			if q != me {
				lanes[l].Out[q], lanes[l].In[q] = 4*rows(me, q), 4*rows(q, me)
				got[l][q] = make([]float32, rows(q, me))
			}
		}
	}
	for r := range size - 1 {
		turns = append(turns, (me+1+r)%size)
	}
	before := g.Bytes().Halo
	s, err := g.Stream(ctx, comm.Halo, "rows", lanes...)
	if err != nil {
		return err
	}
	s.AskInTurn(1, turns)
	for q, k := range lanes[0].Out {
		if k > 0 {
			s.Give(0, q)
		}
	}
	sent := 0
	for _, q := range turns {
		if lanes[0].In[q] > 0 {
			s.Ask(0, q)
			if from, ok := s.Next(0); ok && from != q {
				return fmt.Errorf("stream: a message of member %d arrived instead of member %d's", from, q)
			}
		}
		if lanes[1].Out[q] > 0 {
			s.Give(1, q)
			sent++
		}
	}
	for range sent {
		s.Sent(1)
	}
	if err := s.End(); err != nil {
		return err
	}
	all := 0
	for l := range lanes {
		for q := range size {
			if q == me {
				continue
			}
			all += 4 * rows(me, q)
			if err := sameBits("stream", got[l][q], vector(l+q*size+me, rows(q, me))); err != nil {
				return err
			}
		}
	}
	if d := g.Bytes().Halo - before; d != int64(all) {
		return fmt.Errorf("stream: bytes counted as rows must be %d (got %d)", all, d)
	}
	return nil
}

// groupStreamEnds ends a stream in which one member neither gives nor asks: by its absence, with an
// error that names it.
func (n network) groupStreamEnds(ctx context.Context, g *comm.Group) error {
	lane := comm.Lane{Out: make([]int, g.Size()), In: make([]int, g.Size()),
		Unit: 1, Fill: func(_, _ int, dst []byte) []byte { return dst },
		Take: func(int, int, int, []byte) error { return nil },
	}
	for q := range g.Size() {
		if q != g.Rank() {
			lane.Out[q], lane.In[q] = 10, 10
		}
	}
	if g.Rank() == 0 {
		return g.Close()
	}
	s, err := g.Stream(ctx, comm.Halo, "rows", lane)
	if err == nil {
		for q := range g.Size() {
			if q != g.Rank() {
				s.Give(0, q)
				s.Ask(0, q)
			}
		}
		for range g.Size() - 1 {
			if _, ok := s.Next(0); !ok {
				break
			}
		}
		err = s.End()
	}
	return wantPeer(err, 0, "stream without member 0")
}

// groupStreamUnequal: a message of another length than was agreed is an error that names the peer.
func (n network) groupStreamUnequal(ctx context.Context, g *comm.Group) error {
	other := 1 - g.Rank()
	lane := comm.Lane{Out: make([]int, 2), In: make([]int, 2), Unit: 1,
		Fill: func(_, _ int, dst []byte) []byte { return dst }, Take: func(int, int, int, []byte) error { return nil }}
	lane.Out[other], lane.In[other] = 10+g.Rank(), 10
	s, err := g.Stream(ctx, comm.Halo, "rows", lane)
	if err != nil {
		return err
	}
	s.Give(0, other)
	s.Ask(0, other)
	err = s.End()
	g.Close() // member 1, whose message is at fault, may still wait for the other's
	if g.Rank() == 1 {
		return nil
	}
	return wantPeer(err, 1, "stream with a message too long")
}

// bytesOf appends x to b, little endian.
func bytesOf(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
