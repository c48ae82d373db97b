package link_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/comm/link"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// over returns size members in memory behind connections of model m.
func over(size int, m link.Model) []comm.Transport {
	ts := sim.New(size, sim.Config{}).Transports()
	for r, t := range ts {
		ts[r] = link.Over(t, r, size, link.Table{All: m}, 1)
	}
	return ts
}

func TestConformance(t *testing.T) {
	for name, m := range map[string]link.Model{
		"no model": {},
		"slow":     {Latency: 100 * time.Microsecond, Rate: 4e9, Loss: 0.001},
	} {
		t.Run(name, func(t *testing.T) {
			commtest.Conformance(t, func(t *testing.T, size int) []comm.Transport { return over(size, m) })
		})
	}
}

// Frames arrive a latency after the rate has let them leave, and the rate is shared by all peers.
func TestArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := over(3, link.Model{Latency: 50 * time.Millisecond, Rate: 1e6})
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
				t.Errorf("frame %d arrives after %v, want %v", i, got, want)
			}
		}
		for _, m := range ts {
			m.Close()
		}
	})
}

// What is lost costs a round trip each time: the mean delay of many frames is that of the model.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 3000
		m := link.Model{Latency: 10 * time.Millisecond, Loss: 0.2}
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
			t.Errorf("mean delay %.3f ms, want %.3f ± %.3f", mean, want, tolerance)
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
		m := link.Model{Latency: 30 * time.Millisecond, Rate: 2e6}
		start := time.Now()
		loads := make([]link.Load, size)
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
				loads[r] = link.Load{Trips: trips, Bytes: b.Halo + b.Reduce + b.Control}
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
				t.Errorf("member %d waited for %d trips, want %d", r, l.Trips, 2*calls)
			}
			if ratio := float64(m.Predict(l)) / float64(took); ratio < 0.9 || ratio > 1.1 {
				t.Errorf("member %d: predicted %v, took %v", r, m.Predict(l), took)
			}
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]link.Model{
		"latency=50ms,rate=5Mbit,loss=1%": {Latency: 50 * time.Millisecond, Rate: 625_000, Loss: 0.01},
		"rate=1.5Gbit":                    {Rate: 187.5e6},
		"loss=0.25":                       {Loss: 0.25},
		"loss=0.99999":                    {Loss: 0.99999},
		"latency=0s,rate=800bit":          {Rate: 100},
	} {
		m, err := link.Parse(text)
		if err != nil || m != want {
			t.Errorf("%q is %+v, %v, want %+v", text, m, err, want)
		}
		if again, err := link.Parse(m.String()); err != nil || again != m {
			t.Errorf("%+v writes itself as %q, which is %+v, %v", m, m.String(), again, err)
		}
	}
	for _, text := range []string{"", "latency", "latency=-1s", "rate=5", "rate=0Mbit", "rate=1e400Mbit", "rate=NaNbit", "loss=1", "loss=100%", "loss=NaN", "speed=1", "loss=1%,loss=2%", "latency=1ms,"} {
		if m, err := link.Parse(text); err == nil || !strings.Contains(err.Error(), "link: ") {
			t.Errorf("%q is %+v, %v, want an error", text, m, err)
		}
	}
}

func TestParseTable(t *testing.T) {
	slow, far := link.Model{Rate: 625_000}, link.Model{Latency: 150 * time.Millisecond}
	for text, want := range map[string]link.Table{
		"rate=5Mbit":                     {All: slow},
		"latency=150ms; 0-2: rate=5Mbit": {All: far, Pairs: []link.Pair{{0, 2, slow}, {2, 0, slow}}},
		"3>1: latency=150ms\nrate=5Mbit\n1-0:rate=5Mbit\n": {All: slow, Pairs: []link.Pair{{3, 1, far}, {1, 0, slow}, {0, 1, slow}}},
	} {
		got, err := link.ParseTable(text)
		if err != nil || got.All != want.All || !slices.Equal(got.Pairs, want.Pairs) {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := link.ParseTable(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%+v writes itself as %q, which is %+v, %v", got, got.String(), again, err)
		}
		if err := got.Check(4); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", ";", "0: rate=5Mbit", "0-0: rate=5Mbit", "0-x: rate=5Mbit", "-1>2: rate=5Mbit", "0-1:", "0>1>2: rate=5Mbit"} {
		if got, err := link.ParseTable(text); err == nil || !strings.Contains(err.Error(), "link: ") {
			t.Errorf("%q is %+v, %v, want an error", text, got, err)
		}
	}
	two, _ := link.ParseTable("0-2: rate=5Mbit")
	if err := two.Check(2); err == nil || !strings.Contains(err.Error(), "peer 2") {
		t.Errorf("of two peers: %v", err)
	}
	if got := (link.Table{All: far, Pairs: []link.Pair{{0, 1, slow}}}).Worst(); got != (link.Model{Latency: far.Latency, Rate: slow.Rate}) {
		t.Errorf("the worst is %+v", got)
	}
}

// A pair with a way of its own is as slow as that says, the others are not, and neither takes of the other's rate.
func TestPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways, err := link.ParseTable("rate=8Mbit; 0>1: latency=1s,rate=80kbit")
		if err != nil {
			t.Fatal(err)
		}
		ts := sim.New(3, sim.Config{}).Transports()
		for r, m := range ts {
			ts[r] = link.Over(m, r, 3, ways, 1)
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
				t.Errorf("from %d to %d: %v, want %v", arrival.from, arrival.to, got, arrival.after)
			}
		}
		for _, m := range ts {
			m.Close()
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("latency=50ms,rate=5Mbit,loss=1%")
	f.Add("rate=1bit,,")
	f.Add("0-1: rate=1bit; 2>1: loss=1%")
	f.Fuzz(func(t *testing.T, s string) {
		if ways, err := link.ParseTable(s); err == nil {
			if again, err := link.ParseTable(ways.String()); err != nil || len(again.Pairs) != len(ways.Pairs) {
				t.Errorf("%q is %+v, then %+v, %v", s, ways, again, err)
			}
		}
		if m, err := link.Parse(s); err == nil && !(m.Latency >= 0 && m.Rate >= 0 && m.Loss >= 0 && m.Loss < 1) {
			t.Errorf("%q is %+v", s, m)
		}
	})
}
