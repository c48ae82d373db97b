package leaf_test

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/mat"
)

// kept is a journal in memory.
type kept map[string][]byte

func (k kept) journal() *leaf.Journal {
	return &leaf.Journal{Keep: func(name string, b []byte) error { k[name] = b; return nil },
		Kept: func(name string) ([]byte, error) { return k[name], nil }}
}

// life runs several sums at two sites that go on from their journals, and returns the sums at each. Every third one is
// a sum over neighbours. In the first `other` sums they have other numbers than usual. No leaf is there: a sum that
// waits for one takes a tick.
func life(t *testing.T, journals []kept, run byte, sums, other int) (all [2][]float32, errs [2]error) {
	t.Helper()
	edges, err := leaf.NewEdges([][2]string{{"0 a", "1 b"}})
	if err != nil {
		t.Fatal(err)
	}
	a := leaf.Agreement{Run: [8]byte{run}, Sites: 2, Least: 2, Most: 2, Edges: true}
	net := netsim.New(2, netsim.Config{})
	var both sync.WaitGroup
	for q := range 2 {
		both.Go(func() {
			rules := open(2, 0)
			rules.Edges = edges
			in, err := leaf.NewIntake(a, q, rules)
			if err != nil {
				t.Error(err)
			}
			g := comm.NewGroup(net.Transport(q), q, 2)
			s, err := leaf.NewCollector(a, g, g, in, in.Quorum(1, time.Nanosecond))
			if err != nil {
				t.Error(err)
			}
			if err := s.Bind(t.Context(), nodesOf(q)); err != nil {
				t.Error(err)
			}
			if errs[q] = s.Resume(t.Context(), journals[q].journal()); errs[q] != nil {
				return
			}
			for k := range sums {
				more := 0
				if k < other {
					more = 100
				}
				id := comm.ReduceID{Step: k, Kind: "life"}
				if k%3 == 2 {
					x, err := s.Gather(t.Context(), id, mat.View(1, 2, []float32{float32(q + more), float32(k)}))
					if err != nil {
						t.Error(err)
					}
					all[q] = append(all[q], x.Data...)
					continue
				}
				c := &comm.Contribution{ID: id, Update: []float32{float32(q + k + more)},
					Counts: []int64{int64(10*q + k + more)}}
				if _, err := s.Reduce(t.Context(), c); err != nil {
					t.Error(err)
				}
				all[q] = append(all[q], c.Update[0], float32(c.Counts[0]))
			}
			s.Stop(io.EOF)
		})
	}
	both.Wait()
	return all, errs
}

// Sites that begin again have the earlier sums, and nobody sums them again: here with other numbers, which the sums do
// not get. A site that lacks the last sum gets it; the last one over neighbours is repeated. A site that has lost more,
// or has the sums of another run, returns an error.
func TestJournal(t *testing.T) {
	whole := []kept{{}, {}}
	want, _ := life(t, whole, 1, 6, 0)
	for name, test := range map[string]struct {
		lost []string // at the second site
		kept int      // sums that both go on with
	}{"nothing lost": {nil, 6}, "a sum": {[]string{"sum-5", "sum-4"}, 5},
		"one over neighbours": {[]string{"sum-5"}, 5}} {
		journals := []kept{{}, {}}
		for q, k := range whole {
			for name, b := range k {
				journals[q][name] = b
			}
		}
		for _, sum := range test.lost {
			delete(journals[1], sum)
		}
		if name == "a sum" {
			delete(journals[0], "sum-5")
		}
		before := len(journals[0])
		got, errs := life(t, journals, 1, 6, test.kept)
		for q := range got {
			if errs[q] != nil {
				t.Fatalf("%s: %v", name, errs[q])
			}
			for k, v := range got[q] {
				if v != want[q][k] {
					t.Errorf("%s: site %d has %v, must have %v", name, q, got[q], want[q])
					break
				}
			}
			if len(journals[q]) != 6 || before < 5 {
				t.Errorf("%s: site %d keeps %d sums, must keep 6", name, q, len(journals[q]))
			}
		}
	}
	if _, errs := life(t, []kept{whole[0], {}}, 1, 6, 0); errs[0] == nil ||
		!strings.Contains(errs[0].Error(), "has lost what it kept of the run: it has 0 sums and another 6") {
		t.Errorf("beside a site that has lost all the error is %v, must say so", errs[0])
	}
	if _, errs := life(t, []kept{whole[0], whole[0]}, 2, 6, 0); errs[0] == nil ||
		!strings.Contains(errs[0].Error(), "of another run") {
		t.Errorf("with sums of another run the error is %v, must say so", errs[0])
	}
}
