package sim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
)

// arrivals sends count frames of 1000 bytes from 0 to 1 at once and returns when each is received, since the start.
func arrivals(t *testing.T, cfg sim.Config, count int) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		net, start := sim.New(2, cfg), time.Now()
		var both sync.WaitGroup
		both.Go(func() {
			for i := range count {
				frame := make([]byte, 1000)
				frame[0] = byte(i)
				if err := net.Transport(0).Send(t.Context(), 1, nil, frame); err != nil {
					t.Error(err)
				}
			}
		})
		both.Go(func() {
			for i := range count {
				frame, err := net.Transport(1).Recv(t.Context(), 0)
				if err != nil {
					t.Error(err)
					return
				}
				if frame[0] != byte(i) {
					t.Errorf("frame %d came as number %d", frame[0], i)
				}
				at = append(at, time.Since(start))
			}
		})
		both.Wait()
	})
	return at
}

func TestTimes(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		cfg  sim.Config
		want []time.Duration
	}{
		"no delay":   {sim.Config{}, []time.Duration{0, 0, 0}},
		"latency":    {sim.Config{MinLatency: 5 * ms, MaxLatency: 5 * ms}, []time.Duration{5 * ms, 5 * ms, 5 * ms}},
		"bandwidth":  {sim.Config{Bandwidth: 1e6}, []time.Duration{ms, 2 * ms, 3 * ms}},
		"both":       {sim.Config{MinLatency: 5 * ms, MaxLatency: 5 * ms, Bandwidth: 1e6}, []time.Duration{6 * ms, 7 * ms, 8 * ms}},
		"full queue": {sim.Config{MinLatency: 5 * ms, MaxLatency: 5 * ms, Queue: 2000}, []time.Duration{5 * ms, 5 * ms, 10 * ms}},
		"partition": {sim.Config{Bandwidth: 1e6, Partitions: []sim.Partition{{Ranks: []int{1}, Start: 2 * ms, End: time.Second}}},
			[]time.Duration{ms, time.Second, time.Second}},
		"partitions in a row": {sim.Config{Bandwidth: 1e6, Partitions: []sim.Partition{
			{Ranks: []int{1}, Start: 3 * ms, End: 20 * ms}, {Ranks: []int{0}, Start: 2 * ms, End: 3 * ms}}},
			[]time.Duration{ms, 20 * ms, 20 * ms}},
		"partition of both ends": {sim.Config{Partitions: []sim.Partition{{Ranks: []int{0, 1}}}}, []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := arrivals(t, test.cfg, len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("arrived at %v, want %v", got, test.want)
			}
		})
	}
}

// Lost transmissions delay as often as the share says, in an order that only the seed decides, and frames stay in order.
func TestLoss(t *testing.T) {
	const count, loss = 4000, 0.25
	cfg := sim.Config{Seed: 1, Bandwidth: 1000, Loss: loss, Retransmit: 100 * time.Millisecond} // a frame a second
	at := arrivals(t, cfg, count)
	late := 0
	for i, a := range at {
		if a > time.Duration(i+1)*time.Second {
			late++
		}
	}
	if share := float64(late) / count; share < loss-0.03 || share > loss+0.03 {
		t.Errorf("a share of %v was late, want about %v", share, loss)
	}
	if !slices.Equal(at, arrivals(t, cfg, count)) {
		t.Error("the same seed gave other times")
	}
	cfg.Seed = 2
	if slices.Equal(at, arrivals(t, cfg, count)) {
		t.Error("another seed gave the same times")
	}
}

// Each link has a latency of its own between the bounds.
func TestLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 5
		cfg := sim.Config{Seed: 3, MinLatency: 10 * time.Millisecond, MaxLatency: 20 * time.Millisecond}
		net, seen := sim.New(size, cfg), map[time.Duration]bool{}
		for from := range size {
			for to := range size {
				if from == to {
					continue
				}
				sent := time.Now()
				if err := net.Transport(from).Send(t.Context(), to, nil, nil); err != nil {
					t.Fatal(err)
				}
				if _, err := net.Transport(to).Recv(t.Context(), from); err != nil {
					t.Fatal(err)
				}
				d := time.Since(sent)
				if d < cfg.MinLatency || d > cfg.MaxLatency {
					t.Errorf("latency from %d to %d is %v", from, to, d)
				}
				seen[d] = true
			}
		}
		if len(seen) != size*(size-1) {
			t.Errorf("%d latencies on %d links", len(seen), size*(size-1))
		}
	})
}

// A partition without end holds frames for ever, even when their sender has closed; a context ends the wait.
func TestPartitionForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sim.New(3, sim.Config{Partitions: []sim.Partition{{Ranks: []int{0}}}})
		for _, to := range []int{0, 2} {
			if err := net.Transport(1).Send(t.Context(), to, nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		net.Transport(1).Close()
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		if _, err := net.Transport(0).Recv(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("across the partition: %v, want the deadline", err)
		}
		if _, err := net.Transport(2).Recv(t.Context(), 1); err != nil {
			t.Errorf("on one side of it: %v", err)
		}
	})
}

// A lost member takes along what it had sent; every call that deals with it names it, its own calls too.
func TestLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sim.New(3, sim.Config{Queue: 1})
		ts := net.Transports()
		for _, to := range []int{0, 1} {
			if err := ts[2].Send(t.Context(), to, nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := ts[0].Send(t.Context(), 2, nil, []byte("x")); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 3)
		go func() { waiting <- ts[0].Send(t.Context(), 2, nil, []byte("x")) }()
		go func() { waiting <- ts[2].Send(t.Context(), 0, nil, []byte("x")) }()
		go func() {
			_, err := ts[2].Recv(t.Context(), 1)
			waiting <- err
		}()
		synctest.Wait()
		net.Lose(2)
		net.Lose(2)
		errs := []error{<-waiting, <-waiting, <-waiting, ts[1].Send(t.Context(), 2, nil, nil)}
		_, err := ts[0].Recv(t.Context(), 2)
		for _, err := range append(errs, err) {
			fault, ok := errors.AsType[*comm.PeerError](err)
			if !ok || fault.Rank != 2 || !errors.Is(err, sim.ErrLost) {
				t.Errorf("%v, want a PeerError of peer 2 that is lost", err)
			}
		}
		if err := ts[0].Send(t.Context(), 1, nil, []byte("x")); err != nil {
			t.Errorf("between the others: %v", err)
		}
	})
}

func TestStats(t *testing.T) {
	net := sim.New(2, sim.Config{})
	for n := range 4 {
		if err := net.Transport(0).Send(t.Context(), 1, nil, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	if frames, bytes := net.Stats(0, 1); frames != 4 || bytes != 6 {
		t.Errorf("%d frames of %d bytes, want 4 of 6", frames, bytes)
	}
	if frames, bytes := net.Stats(1, 0); frames != 0 || bytes != 0 {
		t.Errorf("%d frames of %d bytes back, want none", frames, bytes)
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	err := sim.Config{
		MinLatency: 2, MaxLatency: 1, Bandwidth: -1, Loss: 1, Retransmit: -1, Queue: -1,
		Partitions: []sim.Partition{{Ranks: []int{3}, Start: 2, End: 1}},
	}.Validate(3)
	for _, part := range []string{"latency", "bandwidth", "loss", "retransmit", "queue", "partition 0 from", "rank 3 of 3"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %q", err, part)
		}
	}
	if err := (sim.Config{}).Validate(1); err != nil {
		t.Error(err)
	}
}
