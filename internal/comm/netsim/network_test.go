package netsim_test

import (
	"context"
	"errors"
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait for frames and limits
	testenv.MainWithoutLeaks(m)
}

func TestConformance(t *testing.T) {
	for name, cfg := range map[string]netsim.Config{
		"fast":  {},
		"tight": {Queue: 1},
		"slow": {Seed: 1, Links: netsim.Table{All: netsim.Model{Rate: 4e9, Loss: 0.01}},
			Spread: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commtest.Conformance(t, func(t *testing.T, size int) []comm.Transport {
				return netsim.New(size, cfg).Transports()
			})
		})
	}
}

// arrivals sends count frames of 1000 bytes from 0 to 1 at once and returns when each is received,
// since the start.
func arrivals(t *testing.T, cfg netsim.Config, count int) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		net, start := netsim.New(2, cfg), time.Now()
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
	far, narrow := netsim.Table{All: netsim.Model{Latency: 5 * ms}}, netsim.Table{All: netsim.Model{Rate: 1e6}}
	for name, test := range map[string]struct {
		cfg  netsim.Config
		want []time.Duration
	}{
		"no delay":  {netsim.Config{}, []time.Duration{0, 0, 0}},
		"latency":   {netsim.Config{Links: far}, []time.Duration{5 * ms, 5 * ms, 5 * ms}},
		"bandwidth": {netsim.Config{Links: narrow}, []time.Duration{ms, 2 * ms, 3 * ms}},
		"both": {netsim.Config{Links: netsim.Table{All: netsim.Model{Latency: 5 * ms, Rate: 1e6}}},
			[]time.Duration{6 * ms, 7 * ms, 8 * ms}},
		"full queue": {netsim.Config{Links: far, Queue: 2000}, []time.Duration{5 * ms, 5 * ms, 10 * ms}},
		"partition": {netsim.Config{Links: narrow, Partitions: []netsim.Partition{{Ranks: []int{1}, Start: 2 * ms,
			End: time.Second}}},
			[]time.Duration{ms, time.Second, time.Second}},
		"partitions in a row": {netsim.Config{Links: narrow, Partitions: []netsim.Partition{
			{Ranks: []int{1}, Start: 3 * ms, End: 20 * ms}, {Ranks: []int{0}, Start: 2 * ms, End: 3 * ms}}},
			[]time.Duration{ms, 20 * ms, 20 * ms}},
		"partition of both ends": {netsim.Config{Partitions: []netsim.Partition{{Ranks: []int{0, 1}}}},
			[]time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := arrivals(t, test.cfg, len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("arrived at %v, must be %v", got, test.want)
			}
		})
	}
}

// Lost packets delay frames as often as the model says, in an order that only the seed decides, and
// frames stay in order.
func TestLoss(t *testing.T) {
	const count, loss = 4000, 0.25
	m := netsim.Model{Latency: 50 * time.Millisecond, Rate: 1000, Loss: loss} // a frame needs 1/(1 − loss) seconds
	cfg := netsim.Config{Seed: 1, Links: netsim.Table{All: m}}
	at := arrivals(t, cfg, count)
	late := 0
	for i, a := range at {
		if a > time.Duration(float64(i+1)/(1-loss)*1e9)+m.Latency+time.Millisecond {
			late++
		}
	}
	if share := float64(late) / count; share < loss-0.03 || share > loss+0.03 {
		t.Errorf("the fraction of frames that were late must be about %v (got %v)", loss, share)
	}
	if !slices.Equal(at, arrivals(t, cfg, count)) {
		t.Error("the same seed gave other times")
	}
	cfg.Seed = 2
	if slices.Equal(at, arrivals(t, cfg, count)) {
		t.Error("another seed gave the same times")
	}
}

// Each link has a separate latency between the bounds.
func TestLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 5
		cfg := netsim.Config{Seed: 3, Links: netsim.Table{All: netsim.Model{Latency: 10 * time.Millisecond}},
			Spread: 10 * time.Millisecond}
		net, seen := netsim.New(size, cfg), map[time.Duration]bool{}
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
				if least := cfg.Links.All.Latency; d < least || d > least+cfg.Spread {
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

// A partition without end keeps frames for ever, even when their sender has closed; a context ends the wait.
func TestPartitionForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netsim.New(3, netsim.Config{Partitions: []netsim.Partition{{Ranks: []int{0}}}})
		for _, to := range []int{0, 2} {
			if err := net.Transport(1).Send(t.Context(), to, nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		net.Transport(1).Close()
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		if _, err := net.Transport(0).Recv(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("across the partition: %v, must be the deadline", err)
		}
		if _, err := net.Transport(2).Recv(t.Context(), 1); err != nil {
			t.Errorf("on one side of it: %v", err)
		}
	})
}

// A lost member takes along what it had sent; every call that deals with it names it, its own calls
// too.
func TestLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netsim.New(3, netsim.Config{Queue: 1})
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
			if !ok || fault.Rank != 2 || !errors.Is(err, netsim.ErrLost) {
				t.Errorf("%v, must be a PeerError of peer 2 that is lost", err)
			}
		}
		if err := ts[0].Send(t.Context(), 1, nil, []byte("x")); err != nil {
			t.Errorf("between the others: %v", err)
		}
	})
}

func TestStats(t *testing.T) {
	net := netsim.New(2, netsim.Config{})
	for n := range 4 {
		if err := net.Transport(0).Send(t.Context(), 1, nil, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	if frames, bytes := net.Stats(0, 1); frames != 4 || bytes != 6 {
		t.Errorf("%d frames of %d bytes, must be 4 of 6", frames, bytes)
	}
	if frames, bytes := net.Stats(1, 0); frames != 0 || bytes != 0 {
		t.Errorf("%d frames of %d bytes back, must be none", frames, bytes)
	}
}

func TestNewReportsAllFaults(t *testing.T) {
	defer func() {
		err := recover()
		for _, part := range []string{"latency", "rate", "loss", "peer 3", "spread", "queue", "partition 0: end",
			"rank must be below 3 (got 3)"} {
			if text, _ := err.(string); !strings.Contains(text, part) {
				t.Errorf("%v does not name %q", err, part)
			}
		}
	}()
	netsim.New(3, netsim.Config{
		Links: netsim.Table{All: netsim.Model{Latency: -1, Rate: -1},
			Pairs: []netsim.Pair{{From: 0, To: 3, Model: netsim.Model{Loss: 1}}}},
		Spread: -1, Queue: -1, Partitions: []netsim.Partition{{Ranks: []int{3}, Start: 2, End: 1}},
	})
}

// A pair's own model applies only to that pair, in a network in memory as in front of another transport.
func TestNetworkOfPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, err := netsim.ParseTable("latency=1ms; 0>1: latency=1s")
		if err != nil {
			t.Fatal(err)
		}
		ts, start := netsim.New(2, netsim.Config{Links: links}).Transports(), time.Now()
		for from, want := range []time.Duration{time.Second, time.Millisecond} {
			if err := ts[from].Send(t.Context(), 1-from, nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := ts[1-from].Recv(t.Context(), from); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("from %d: arrived after %v, must be %v", from, got, want)
			}
			start = time.Now()
		}
	})
}

// Ten thousand members that each talk to three take memory only for these links.
func TestLinksOnFirstUse(t *testing.T) {
	const size, sites, most = 10_000, 3, 64 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	net := netsim.New(size, netsim.Config{})
	for from := sites; from < size; from++ {
		for to := range sites {
			if err := net.Transport(from).Send(t.Context(), to, nil, []byte{byte(from)}); err != nil {
				t.Fatal(err)
			}
			frame, err := net.Transport(to).Recv(t.Context(), from)
			if err != nil || frame[0] != byte(from) {
				t.Fatalf("site %d received %v of %d: %v", to, frame, from, err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > most {
		t.Errorf("%d members take %d bytes, must be at most %d", size, used, most)
	}
	runtime.KeepAlive(net)
}
