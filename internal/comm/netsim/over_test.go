package netsim_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// over returns size members in memory behind connections of model m.
func over(size int, m netsim.Model) []comm.Transport {
	ts := netsim.New(size, netsim.Config{}).Transports()
	for r, t := range ts {
		ts[r] = netsim.Over(t, r, size, netsim.Table{All: m}, 1)
	}
	return ts
}

func TestConformanceOver(t *testing.T) {
	for name, m := range map[string]netsim.Model{
		"no model": {},
		"slow":     {Latency: 100 * time.Microsecond, Rate: 4e9, Loss: 0.001},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Close waits for seconds if nobody receives
			commtest.Conformance(t, func(t *testing.T, size int) []comm.Transport { return over(size, m) })
		})
	}
}

// Frames arrive a latency after the rate has let them leave, and the rate is shared by all peers.
func TestArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := over(3, netsim.Model{Latency: 50 * time.Millisecond, Rate: 1e6})
		start := time.Now()
		for i := range 4 { // 10 ms each
			if err := ts[0].Send(t.Context(), 1+i%2, nil, make([]byte, 10_000)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			if _, err := ts[1+i%2].Recv(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(60+10*i)*time.Millisecond; got != want {
				t.Errorf("frame %d arrives after %v, must be %v", i, got, want)
			}
		}
		for _, m := range ts {
			m.Close()
		}
	})
}

// What is lost costs a round trip each time: the mean delay of many frames is that of the model.
func TestLossOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 3000
		m := netsim.Model{Latency: 10 * time.Millisecond, Loss: 0.2}
		ts := over(2, m)
		var total time.Duration
		for range count {
			start := time.Now()
			if err := ts[0].Send(t.Context(), 1, nil, make([]byte, 1400)); err != nil {
				t.Fatal(err)
			}
			if _, err := ts[1].Recv(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			total += time.Since(start)
		}
		// One packet is repeated 0.2 + 0.04 + … = 0.25 times; its variance is 0.2/0.8².
		mean, want := float64(total)/count/1e6, 10+2*10*0.25
		if tolerance := 4 * 20 * math.Sqrt(0.3125/count); math.Abs(mean-want) > tolerance {
			t.Errorf("mean delay %.3f ms, must be %.3f ± %.3f", mean, want, tolerance)
		}
		for _, m := range ts {
			m.Close()
		}
	})
}

// Predict says what sums over slow connections take.
func TestPredict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, calls = 4, 20
		m := netsim.Model{Latency: 30 * time.Millisecond, Rate: 2e6}
		start := time.Now()
		loads := make([]comm.Load, size)
		var all sync.WaitGroup
		for r, transport := range over(size, m) {
			all.Go(func() {
				g := comm.NewGroup(transport, r, size)
				x := make([]float32, 50_000)
				for range calls {
					if err := g.AllReduce(context.Background(), comm.Reduce, x); err != nil {
						t.Error(err)
					}
				}
				b := g.Bytes()
				trips, _ := g.Waits()
				loads[r] = comm.Load{Trips: trips, Bytes: b.Halo + b.Reduce + b.Control}
				if err := g.Barrier(context.Background()); err != nil { // nobody closes while another still receives
					t.Error(err)
				}
				g.Close()
			})
		}
		all.Wait()
		took := time.Since(start) - m.Latency
		for r, l := range loads {
			if l.Trips != 2*calls {
				t.Errorf("member %d waited for %d trips, must be %d", r, l.Trips, 2*calls)
			}
			if ratio := float64(m.Predict(l)) / float64(took); ratio < 0.9 || ratio > 1.1 {
				t.Errorf("member %d: predicted %v, took %v", r, m.Predict(l), took)
			}
		}
	})
}

// A pair with a separate model is as slow as this model, the others are not, and neither uses the other's rate.
func TestPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, err := netsim.ParseTable("rate=8Mbit; 0>1: latency=1s,rate=80kbit")
		if err != nil {
			t.Fatal(err)
		}
		ts := netsim.New(3, netsim.Config{}).Transports()
		for r, m := range ts {
			ts[r] = netsim.Over(m, r, 3, links, 1)
		}
		start := time.Now()
		frame := make([]byte, 10_000) // 1 s of 80 kbit/s, 10 ms of 8 Mbit/s
		for _, to := range []int{1, 2} {
			if err := ts[0].Send(t.Context(), to, nil, frame); err != nil {
				t.Fatal(err)
			}
		}
		if err := ts[1].Send(t.Context(), 0, nil, frame); err != nil {
			t.Fatal(err)
		}
		for _, arrival := range []struct {
			from, to int
			after    time.Duration
		}{{0, 2, 10 * time.Millisecond}, {1, 0, 10 * time.Millisecond}, {0, 1, 2 * time.Second}} {
			if _, err := ts[arrival.to].Recv(t.Context(), arrival.from); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != arrival.after {
				t.Errorf("from %d to %d: %v, must be %v", arrival.from, arrival.to, got, arrival.after)
			}
		}
		for _, m := range ts {
			m.Close()
		}
	})
}
