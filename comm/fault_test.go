package comm_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// operations are all that a Group can do, in a size where every member waits for every other.
var operations = map[string]func(ctx context.Context, g *comm.Group) error{
	"allreduce short": func(ctx context.Context, g *comm.Group) error {
		return g.AllReduce(ctx, comm.Reduce, make([]float32, 10))
	},
	"allreduce long": func(ctx context.Context, g *comm.Group) error {
		return g.AllReduce(ctx, comm.Reduce, make([]float32, 1_000_000))
	},
	"allreduce fixed": func(ctx context.Context, g *comm.Group) error {
		_, err := g.Reduce(ctx, &comm.Contribution{Update: make([]float32, 3_000_000), Bits: 8, Columns: 5000})
		return err
	},
	"exchange": func(ctx context.Context, g *comm.Group) error {
		out, in := make([][]float32, g.Size()), make([][]float32, g.Size())
		for q := range g.Size() {
			if q != g.Rank() {
				out[q], in[q] = make([]float32, 200_000), make([]float32, 200_000)
			}
		}
		return g.Exchange(ctx, comm.Halo, "layer 1", out, in)
	},
	"sendrecv": func(ctx context.Context, g *comm.Group) error {
		_, err := g.SendRecv(ctx, comm.Control, "digests", make([][]byte, g.Size()), 0)
		return err
	},
	"broadcast": func(ctx context.Context, g *comm.Group) error {
		return g.Broadcast(ctx, comm.Control, 2, make([]float32, 200_000))
	},
	"barrier": func(ctx context.Context, g *comm.Group) error { return g.Barrier(ctx) },
}

// A member that is lost, before or in the middle, is named by every other that deals with it; the same error comes
// again at once; no goroutine stays.
func TestLostMember(t *testing.T) {
	for name, run := range operations {
		for _, when := range []time.Duration{0, 30 * time.Millisecond} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net, gs := groups(3, netsim.Config{Links: netsim.Table{All: netsim.Model{Rate: 1e6}},
						Spread: 20 * time.Millisecond, Queue: 1})
					time.AfterFunc(when, func() { net.Lose(2) })
					each(gs, func(g *comm.Group) error {
						var err error
						for err == nil {
							err = run(context.Background(), g)
						}
						fault, ok := errors.AsType[*comm.PeerError](err)
						if g.Rank() != 2 && (!ok || fault.Rank != 2 || !strings.Contains(err.Error(), "lost")) {
							t.Errorf("member %d: %v, must be a PeerError of peer 2, which is lost", g.Rank(), err)
						}
						was := time.Now()
						if again := g.Barrier(context.Background()); again != err || time.Since(was) != 0 {
							t.Errorf("member %d: a later call returned %v, must be %v at once", g.Rank(), again, err)
						}
						return nil
					})
				})
			})
		}
	}
}

// A deadline names those who kept the others waiting, and not those who waited too.
func TestDeadlineNamesTheLate(t *testing.T) {
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, gs := groups(4, netsim.Config{})
				each(gs, func(g *comm.Group) error {
					if g.Rank() == 2 || name == "allreduce short" && g.Rank() != 0 {
						return nil // never joins; or waits for member 0, which waits for 2
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					err := run(ctx, g)
					fault, ok := errors.AsType[*comm.PeerError](err)
					want := "still waiting for 2"
					if name == "allreduce short" {
						want = "still waiting for 1, 2, 3"
					}
					if !ok || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want+": ") {
						t.Errorf("member %d: %v, must be a PeerError that says %q", g.Rank(), err, want)
					} else if name != "allreduce short" && fault.Rank != 2 {
						t.Errorf("member %d: %v names peer %d, must be 2", g.Rank(), err, fault.Rank)
					}
					return nil
				})
			})
		})
	}
}

// Cancelling is nobody's fault, ends the call at once, and keeps the caller's cause.
func TestCancel(t *testing.T) {
	why := errors.New("ctrl-c")
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, gs := groups(3, netsim.Config{Queue: 1})
				g := gs[0]
				ctx, cancel := context.WithCancelCause(context.Background())
				time.AfterFunc(time.Second, func() { cancel(why) })
				err := run(ctx, g)
				if _, blamed := errors.AsType[*comm.PeerError](err); blamed || !errors.Is(err, context.Canceled) ||
					!errors.Is(err, why) {
					t.Errorf("%v, must be context.Canceled and its cause, and no PeerError", err)
				}
				if again := run(context.Background(), g); again != err {
					t.Errorf("a later call returned %v, must be %v", again, err)
				}
			})
		})
	}
}

func TestCancelledBefore(t *testing.T) {
	_, gs := groups(2, netsim.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := gs[0].Barrier(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, must be context.Canceled", err)
	}
	if b := gs[0].Bytes(); b != (comm.Counts{}) {
		t.Errorf("sent %+v", b)
	}
}

// Close ends a running call with ErrClosed here, and with this member's rank at members that lack something from it.
func TestClose(t *testing.T) {
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, gs := groups(3, netsim.Config{})
				time.AfterFunc(time.Second, func() { gs[0].Close() })
				time.AfterFunc(2*time.Second, func() { gs[2].Close() })
				errs := each(gs[:2], func(g *comm.Group) error { return run(context.Background(), g) }) // 2 stays away
				if errs[0] != comm.ErrClosed {
					t.Errorf("closed member: %v, must be %v", errs[0], comm.ErrClosed)
				}
				want := 2 // all that 0 had to send has arrived
				if strings.HasPrefix(name, "allreduce") {
					want = 0 // its sum is missing
				}
				if fault, ok := errors.AsType[*comm.PeerError](errs[1]); !ok || fault.Rank != want {
					t.Errorf("its peer: %v, must be a PeerError of peer %d", errs[1], want)
				}
				if err := gs[0].Barrier(context.Background()); err != comm.ErrClosed {
					t.Errorf("later: %v, must be %v", err, comm.ErrClosed)
				}
			})
		})
	}
}

// What a peer sends is not trusted: each of these frames ends the call with an error that names the peer and what was
// expected.
func TestForeignFrames(t *testing.T) {
	frame := func(op, door, step, seq byte, total uint64, payload int) []byte {
		b := make([]byte, comm.HeaderLen+payload)
		b[0], b[1], b[2], b[3], b[4] = 2, op, door, step, seq
		for i := range 8 {
			b[8+i] = byte(total >> (8 * i))
		}
		return b
	}
	exchange := func(g *comm.Group) error { // 100 floats from peer 1
		return g.Exchange(context.Background(), comm.Halo, "layer 1", make([][]float32, 2),
			[][]float32{nil, make([]float32, 100)})
	}
	sendRecv := func(g *comm.Group) error { // at most 1000 bytes from peer 1
		_, err := g.SendRecv(context.Background(), comm.Control, "blobs", make([][]byte, 2), 1000)
		return err
	}
	for name, test := range map[string]struct {
		run   func(g *comm.Group) error
		frame []byte
		want  string
	}{
		"short":        {exchange, make([]byte, 15), "a frame must have at least 16 bytes (got 15)"},
		"empty":        {exchange, nil, "a frame must have at least 16 bytes (got 0)"},
		"version":      {exchange, make([]byte, 16), "the version of the frame must be 2 (got 0)"},
		"no operation": {exchange, frame(99, 0, 0, 1, 400, 400), "below 9 (got 99)"},
		"no door":      {exchange, frame(1, 9, 0, 1, 400, 400), "below 3 (got 9)"},
		"operation": {exchange, frame(4, 0, 0, 1, 400, 400),
			"the frame must be of exchange 1 by halo, step 0 (got barrier 1"},
		"door":     {exchange, frame(1, 1, 0, 1, 400, 400), "(got exchange 1 by reduce"},
		"step":     {exchange, frame(1, 0, 1, 1, 400, 400), "(got exchange 1 by halo, step 1"},
		"sequence": {exchange, frame(1, 0, 0, 2, 400, 400), "(got exchange 2"},
		"length":   {exchange, frame(1, 0, 0, 1, 404, 404), "the message must have 400 bytes (got 404)"},
		"huge": {exchange, frame(1, 0, 0, 1, 1<<63, 400),
			"the message must have 400 bytes (got 9223372036854775808)"},
		"cut":      {exchange, frame(1, 0, 0, 1, 400, 396), "the frame must have 400 bytes (got 396)"},
		"too much": {exchange, frame(1, 0, 0, 1, 400, 404), "the frame must carry at most 400 bytes (got 404)"},
		"over the limit": {sendRecv, frame(2, 2, 0, 1, 1<<62, 1000), "the message must have at most 1000 bytes " +
			"(got 4611686018427387904)"},
		"blob cut": {sendRecv, frame(2, 2, 0, 1, 1000, 999), "the frame must have 1000 bytes (got 999)"},
	} {
		t.Run(name, func(t *testing.T) {
			net := netsim.New(2, netsim.Config{})
			g := comm.NewGroup(net.Transport(0), 0, 2)
			if err := net.Transport(1).Send(t.Context(), 0, nil, test.frame); err != nil {
				t.Fatal(err)
			}
			net.Transport(1).Close()
			err := test.run(g)
			if fault, ok := errors.AsType[*comm.PeerError](err); !ok || fault.Rank != 1 ||
				!errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, must be a PeerError of peer 1 that says %q", err, test.want)
			}
		})
	}
}

// A peer that sends its sums before it has got this member's part does not change that part.
func TestEarlySums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const floats = 65536 // a frame
		net := netsim.New(2, netsim.Config{Queue: 1})
		g, peer := comm.NewGroup(net.Transport(0), 0, 2), net.Transport(1)
		frame := make([]byte, comm.MaxFrame) // zeros, of a chunk of four frames
		copy(frame, []byte{2, 0, byte(comm.Reduce), 0, 1, 0, 0, 0, 0, 0, 16})
		go func() {
			for _, step := range []byte{1, 3} { // its part, and its sums
				frame[3] = step
				for range 4 {
					if err := peer.Send(t.Context(), 0, nil, frame); err != nil {
						t.Error(err)
					}
				}
			}
		}()
		x := make([]float32, 8*floats)
		for i := range x {
			x[i] = 1
		}
		done := make(chan error)
		go func() { done <- g.AllReduce(context.Background(), comm.Reduce, x) }()
		synctest.Wait() // all has come that can come
		for range 8 {   // what it gives, and its sums
			got, err := peer.Recv(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := comm.HeaderLen; i < len(got); i += 4 {
				if string(got[i:i+4]) != "\x00\x00\x80\x3f" {
					t.Fatalf("float at byte %d has bytes % x, must be those of 1", i, got[i:i+4])
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if x[0] != 1 || x[8*floats-1] != 0 {
			t.Errorf("ends are %v and %v, must be this member's sum and the peer's", x[0], x[8*floats-1])
		}
	})
}

// Members that disagree on lengths or on the operation get an error about it.
func TestDisagreement(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fixed := func(g *comm.Group, n, bits, columns int) error {
		_, err := g.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Kind: "test"}, Update: make([]float32, n),
			Bits: bits, Columns: columns})
		return err
	}
	for name, test := range map[string]struct {
		zero, one func(g *comm.Group) error
		want      string // of member 0
	}{
		"rows": {
			func(g *comm.Group) error {
				return g.Exchange(ctx, comm.Halo, "layer 1", make([][]float32, 2),
					[][]float32{nil, make([]float32, 30)})
			},
			func(g *comm.Group) error {
				return g.Exchange(ctx, comm.Halo, "layer 1", [][]float32{make([]float32, 24), nil},
					make([][]float32, 2))
			},
			"peer 1: ended the run: exchange 1 (layer 1): recv: the message must have 120 bytes (got 96)",
		},
		"operation": {
			func(g *comm.Group) error { return g.Barrier(ctx) },
			func(g *comm.Group) error { return g.AllReduce(ctx, comm.Reduce, make([]float32, 2)) },
			"peer 1: ended the run: barrier 1: recv: the frame must be of barrier 1 by control, step 0 " +
				"(got allreduce 1 by reduce, step 1, 8 bytes)",
		},
		"bits": {
			func(g *comm.Group) error { return fixed(g, 30, 8, 0) },
			func(g *comm.Group) error { return fixed(g, 30, 16, 0) },
			"peer 1: ended the run: allreduce 1 (test, generation 0, stage 0, round 0, step 0): recv: the message " +
				"must have 30 bytes (got 60)",
		},
		"columns": {
			func(g *comm.Group) error { return fixed(g, 30, 8, 10) },
			func(g *comm.Group) error { return fixed(g, 30, 8, 15) },
			"peer 1: ended the run: allreduce 1 (test, generation 0, stage 0, round 0, step 0): recv: the message " +
				"must have 40 bytes (got 60)",
		},
		"a fixed-point sum of other lengths": {
			func(g *comm.Group) error { return fixed(g, 30, 8, 0) },
			func(g *comm.Group) error { return fixed(g, 31, 8, 0) },
			"peer 1: ended the run: allreduce 1 (test, generation 0, stage 0, round 0, step 0): recv: the message " +
				"must have 30 bytes (got 31)",
		},
		"a sum in fixed point and one in float32": {
			func(g *comm.Group) error { return fixed(g, 30, 8, 0) },
			func(g *comm.Group) error { return g.AllReduce(ctx, comm.Reduce, make([]float32, 30)) },
			"peer 1: ended the run: allreduce 1 (test, generation 0, stage 0, round 0, step 0): recv: the frame must " +
				"be of allreduce 1 by reduce, step 5 (got allreduce 1 by reduce, step 1, 120 bytes)",
		},
		"rows that were not awaited": {
			func(g *comm.Group) error {
				if err := g.Exchange(ctx, comm.Halo, "layer 1", make([][]float32, 2),
					make([][]float32, 2)); err != nil {
					return err
				}
				return g.Barrier(ctx)
			},
			func(g *comm.Group) error {
				return g.Exchange(ctx, comm.Halo, "layer 1", [][]float32{make([]float32, 24), nil},
					make([][]float32, 2))
			},
			"peer 1: ended the run: barrier 2: recv: the frame must be of barrier 2 by control, step 0 " +
				"(got exchange 1 by halo, step 0, 96 bytes)",
		},
		"a blob over the limit": {
			func(g *comm.Group) error {
				_, err := g.SendRecv(ctx, comm.Halo, "blobs", [][]byte{nil, make([]byte, 11)}, 10)
				return err
			},
			func(g *comm.Group) error { return nil },
			"sendrecv 1 (blobs): a message to peer 1 must have at most 10 bytes (got 11)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Member 0 sends after member 1: a member that fails first may not send what the other is to complain of.
			net, sent := netsim.New(2, netsim.Config{}), make(chan struct{})
			gs := []*comm.Group{comm.NewGroup(second{net.Transport(0), sent}, 0, 2),
				comm.NewGroup(&first{Transport: net.Transport(1), sent: sent}, 1, 2)}
			told := make(chan struct{}) // member 1 stays until then: leaving is another fault
			errs := each(gs, func(g *comm.Group) error {
				defer g.Close()
				if g.Rank() == 0 {
					defer close(told)
					return test.zero(g)
				}
				defer func() { <-told }()
				return test.one(g)
			})
			if errs[0] == nil || errs[0].Error() != test.want {
				t.Errorf("%v, must be %q", errs[0], test.want)
			}
		})
	}
}

// first closes sent when it has sent a frame.
type first struct {
	comm.Transport
	once sync.Once
	sent chan struct{}
}

func (f *first) Send(ctx context.Context, to int, head, body []byte) error {
	err := f.Transport.Send(ctx, to, head, body)
	f.once.Do(func() { close(f.sent) })
	return err
}

// second sends nothing before sent is closed.
type second struct {
	comm.Transport
	sent <-chan struct{}
}

func (s second) Send(ctx context.Context, to int, head, body []byte) error {
	<-s.sent
	return s.Transport.Send(ctx, to, head, body)
}

func TestCallersBugsPanic(t *testing.T) {
	_, gs := groups(2, netsim.Config{})
	for name, f := range map[string]func(){
		"rank":       func() { comm.NewGroup(nil, 2, 2) },
		"no members": func() { comm.NewGroup(nil, 0, 0) },
		"door":       func() { gs[0].AllReduce(t.Context(), 9, nil) },
		"root":       func() { gs[0].Broadcast(t.Context(), comm.Halo, 2, nil) },
		"entries":    func() { gs[0].Exchange(t.Context(), comm.Halo, "x", nil, nil) },
		"own entry": func() {
			gs[0].Exchange(t.Context(), comm.Halo, "x", [][]float32{{1}, nil}, make([][]float32, 2))
		},
		"bits": func() { gs[0].Reduce(t.Context(), &comm.Contribution{Update: make([]float32, 6), Bits: 7}) },
		"columns": func() {
			gs[0].Reduce(t.Context(), &comm.Contribution{Update: make([]float32, 6), Bits: 8, Columns: 4})
		},
		"parts": func() {
			gs[0].Reduce(t.Context(), &comm.Contribution{Update: make([]float32, 6), Bits: 8, Parts: []int{4, 1}})
		},
		"residual": func() {
			gs[0].Reduce(t.Context(),
				&comm.Contribution{Update: make([]float32, 6), Bits: 8, Residual: make([]float32, 5)})
		},
		"entries blobs": func() { gs[0].SendRecv(t.Context(), comm.Halo, "x", nil, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	synctest.Test(t, func(t *testing.T) {
		_, gs := groups(2, netsim.Config{})
		done := make(chan error)
		go func() { done <- gs[0].Barrier(context.Background()) }()
		synctest.Wait()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a second call at once: no panic")
				}
			}()
			gs[0].Barrier(context.Background())
		}()
		gs[0].Close()
		<-done
	})
}
