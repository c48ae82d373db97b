package netsim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// parse reads a model for all peers.
func parse(s string) (netsim.Model, error) {
	t, err := netsim.ParseTable(s)
	return t.All, err
}

func TestParse(t *testing.T) {
	for text, want := range map[string]netsim.Model{
		"latency=50ms,rate=5Mbit,loss=1%": {Latency: 50 * time.Millisecond, Rate: 625_000, Loss: 0.01},
		"rate=1.5Gbit":                    {Rate: 187.5e6},
		"loss=0.25":                       {Loss: 0.25},
		"loss=0.99999":                    {Loss: 0.99999},
		"latency=0s,rate=800bit":          {Rate: 100},
	} {
		m, err := parse(text)
		if err != nil || m != want {
			t.Errorf("%q is %+v, %v, must be %+v", text, m, err, want)
		}
		if again, err := parse(m.String()); err != nil || again != m {
			t.Errorf("%+v writes itself as %q, which is %+v, %v", m, m.String(), again, err)
		}
	}
	for _, text := range []string{"", "latency", "latency=-1s", "rate=5", "rate=0Mbit", "rate=1e400Mbit", "rate=NaNbit",
		"loss=1", "loss=100%", "loss=NaN", "speed=1", "loss=1%,loss=2%", "latency=1ms,"} {
		if m, err := parse(text); err == nil {
			t.Errorf("%q is %+v, %v, must be an error", text, m, err)
		}
	}
}

func TestParseTable(t *testing.T) {
	slow, far := netsim.Model{Rate: 625_000}, netsim.Model{Latency: 150 * time.Millisecond}
	for text, want := range map[string]netsim.Table{
		"rate=5Mbit":                     {All: slow},
		"latency=150ms; 0-2: rate=5Mbit": {All: far, Pairs: []netsim.Pair{{0, 2, slow}, {2, 0, slow}}},
		"3>1: latency=150ms\nrate=5Mbit\n1-0:rate=5Mbit\n": {
			All: slow, Pairs: []netsim.Pair{{3, 1, far}, {1, 0, slow}, {0, 1, slow}}},
	} {
		got, err := netsim.ParseTable(text)
		if err != nil || got.All != want.All || !slices.Equal(got.Pairs, want.Pairs) {
			t.Errorf("%q is %+v, %v, must be %+v", text, got, err, want)
		}
		if again, err := netsim.ParseTable(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%+v writes itself as %q, which is %+v, %v", got, got.String(), again, err)
		}
		if err := got.Check(4); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", ";", "0: rate=5Mbit", "0-0: rate=5Mbit", "0-x: rate=5Mbit",
		"-1>2: rate=5Mbit", "0-1:", "0>1>2: rate=5Mbit"} {
		if got, err := netsim.ParseTable(text); err == nil {
			t.Errorf("%q is %+v, %v, must be an error", text, got, err)
		}
	}
	two, _ := netsim.ParseTable("0-2: rate=5Mbit")
	if err := two.Check(2); err == nil || !strings.Contains(err.Error(), "peer 2") {
		t.Errorf("of two peers: %v", err)
	}
	worst := netsim.Model{Latency: far.Latency, Rate: slow.Rate}
	if got := (netsim.Table{All: far, Pairs: []netsim.Pair{{0, 1, slow}}}).Worst(); got != worst {
		t.Errorf("the worst is %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("latency=50ms,rate=5Mbit,loss=1%")
	f.Add("rate=1bit,,")
	f.Add("0-1: rate=1bit; 2>1: loss=1%")
	f.Fuzz(func(t *testing.T, s string) {
		if links, err := netsim.ParseTable(s); err == nil {
			if again, err := netsim.ParseTable(links.String()); err != nil || len(again.Pairs) != len(links.Pairs) {
				t.Errorf("%q is %+v, then %+v, %v", s, links, again, err)
			}
		}
		if m, err := parse(s); err == nil && !(m.Latency >= 0 && m.Rate >= 0 && m.Loss >= 0 && m.Loss < 1) {
			t.Errorf("%q is %+v", s, m)
		}
	})
}
