package comm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// TestDup runs sums in one group while the other one sums and exchanges rows, at every member in its own time: each
// gets what is its own, and what both send is counted.
func TestDup(t *testing.T) {
	const size, times = 4, 10
	net, gs := groups(size, netsim.Config{Seed: 1,
		Links: netsim.Table{All: netsim.Model{Latency: 50 * time.Microsecond}}, Spread: 950 * time.Microsecond})
	errs := each(gs, func(g *comm.Group) error {
		b := g.Dup()
		if g.Dup() != b {
			return errors.New("another group at the second call")
		}
		sums := func(g *comm.Group, n int) error {
			for k := range times {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(k + i%7 + g.Rank())
				}
				if err := g.AllReduce(t.Context(), comm.Reduce, x); err != nil {
					return err
				}
				for i, v := range x {
					if want := float32(size*(k+i%7) + size*(size-1)/2); v != want {
						return fmt.Errorf("sum %d of %d numbers: number %d is %g, want %g", k, n, i, v, want)
					}
				}
			}
			return nil
		}
		var both sync.WaitGroup
		var first, second error
		both.Go(func() { first = sums(g, 5000) })
		both.Go(func() { second = sums(b, 70_000) })
		both.Wait()
		return errors.Join(first, second)
	})
	must(t, errs)
	var sent, carried int64
	for _, g := range gs {
		sent += g.Bytes().Reduce + g.Bytes().Control
		for to := range size {
			_, c := net.Stats(g.Rank(), to)
			carried += c
		}
	}
	if want := int64(times * 2 * 4 * 75_000 * (size - 1)); sent != carried || sent < want || sent > want+want/100 {
		t.Errorf("%d bytes are counted, %d were carried, must be %d and headers", sent, carried, want)
	}
}

// TestDupEnds: a member that is lost ends the operations of both groups.
func TestDupEnds(t *testing.T) {
	_, gs := groups(3, netsim.Config{})
	errs := each(gs, func(g *comm.Group) error {
		b := g.Dup()
		if g.Rank() == 2 {
			return g.Close()
		}
		var both sync.WaitGroup
		var at [2]error
		both.Go(func() { at[0] = g.AllReduce(t.Context(), comm.Reduce, make([]float32, 5000)) })
		both.Go(func() { at[1] = b.AllReduce(t.Context(), comm.Reduce, make([]float32, 5000)) })
		both.Wait()
		for _, err := range at {
			var peer *comm.PeerError
			if !errors.As(err, &peer) || peer.Rank != 2 {
				return fmt.Errorf("%v, must name peer 2", err)
			}
		}
		return g.Close()
	})
	must(t, errs)
}

// TestDupTells: a member that loses another one in either group also informs the members that listen to it in the other
// group.
func TestDupTells(t *testing.T) {
	for which := range 2 {
		_, gs := groups(3, netsim.Config{})
		errs := each(gs, func(g *comm.Group) error {
			both := [2]*comm.Group{g, g.Dup()}
			defer g.Close()
			if g.Rank() == 2 {
				return nil
			}
			sums := both[which*g.Rank()+(1-which)*(1-g.Rank())] // of so few, member 1 listens only to member 0
			err := sums.AllReduce(t.Context(), comm.Reduce, make([]float32, 5))
			var peer *comm.PeerError
			if !errors.As(err, &peer) || peer.Rank != 2 {
				return fmt.Errorf("%v, must name peer 2", err)
			}
			return nil
		})
		must(t, errs)
	}
}

// flood is a transport that delivers a frame of the second group again and again.
type flood []byte

func (f flood) Recv(context.Context, int) ([]byte, error) {
	f[1] = 1 << 7 // the reader takes the mark off
	return f, nil
}
func (f flood) Send(context.Context, int, []byte, []byte) error { return nil }
func (f flood) Free([]byte)                                     {}
func (f flood) Close() error                                    { return nil }

// TestDupIsBounded: frames that nobody asks for are not kept without end.
func TestDupIsBounded(t *testing.T) {
	g := comm.NewGroup(make(flood, comm.MaxFrame), 0, 2)
	defer g.Close()
	g.Dup()
	err := g.AllReduce(t.Context(), comm.Reduce, make([]float32, 10))
	var peer *comm.PeerError
	if !errors.As(err, &peer) || peer.Rank != 1 {
		t.Errorf("%v, must be an error that names peer 1", err)
	}
}
