package closedform

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/leaf"
)

// separate returns g cut into parts without the edges between them: those of sites first, then those of leaves; and g
// without these edges.
func separate(t *testing.T, g *graph.Graph, sites, leaves int) (parts []*shard.Shard, pooled *graph.Graph) {
	owner := make([]int, g.N())
	for r, s := range cut(t, g, sites+leaves) {
		one := shard.Whole(s.Alone())
		copy(one.Global, s.Global)
		one.Nodes = int64(g.N())
		if r < sites {
			one.Rank, one.Parts, one.Boundary, one.Fingerprint = r, sites, make([][]int32, sites), [32]byte{}
			one.HaloPtr = nil
			for range sites + 1 {
				one.HaloPtr = append(one.HaloPtr, one.Owned)
			}
		}
		parts = append(parts, one)
		for _, i := range s.Global[:s.Owned] {
			owner[i] = r
		}
	}
	var src, dst []int32
	for i := range g.N() {
		for _, j := range g.Adj.Col[g.Adj.RowPtr[i]:g.Adj.RowPtr[i+1]] {
			if owner[i] == owner[j] {
				src, dst = append(src, j), append(dst, int32(i))
			}
		}
	}
	adj, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	alone := *g
	alone.Adj = adj
	return parts, &alone
}

// flaky is the uplink of a leaf that misses some exchanges.
type flaky struct {
	leaf.Uplink
	misses func(exchange int) bool
}

func (f flaky) Send(ctx context.Context, site int, share []byte) error {
	if f.misses(int(binary.LittleEndian.Uint32(share[4:]))) {
		return errors.New("offline")
	}
	return f.Uplink.Send(ctx, site, share)
}

// federate trains parts, of which the first are of sites and the others of leaves. misses says which leaf is offline when.
func federate(t *testing.T, c Config, parts []*shard.Shard, sites int, misses func(p, exchange int) bool) (all []*Trainer, exchanged []int) {
	leaves := len(parts) - sites
	net := netsim.New(len(parts), netsim.Config{Links: netsim.Table{All: netsim.Model{Latency: time.Millisecond}}})
	a := leaf.Agreement{Sites: sites, Least: 2, Most: leaves}
	rules := leaf.Rules{Cohorts: []leaf.Cohort{{Name: "all", Most: leaves}},
		Attest: func(context.Context, leaf.Token, []byte) (string, error) { return "all", nil }}
	all = make([]*Trainer, len(parts))
	exchanges := make([]sizes, len(parts))
	collectors := make([]*leaf.Collector, sites)
	var run, served, ready sync.WaitGroup
	ready.Add(sites)
	for r, s := range parts {
		trainer, err := New(c, s)
		if err != nil {
			t.Fatal(err)
		}
		trainer.Leaves = true
		all[r] = trainer
		run.Go(func() {
			g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
			if r >= sites {
				ready.Wait()
				who := leaf.Token{byte(r)}
				link, err := leaf.Dial(t.Context(), net.Transport(r), a, who, nil)
				if err != nil {
					t.Error(err)
				}
				up := flaky{link, func(k int) bool { return misses(r-sites, k) }}
				exchanges[r].Reducer = &leaf.Contributor{Agreement: a, Token: who, Uplink: up}
			} else {
				g = comm.NewGroup(net.Transport(r), r, sites)
				in, err := leaf.NewIntake(a, r, rules)
				if err != nil {
					t.Error(err)
				}
				collectors[r], err = leaf.NewCollector(a, g, g, in, in.Quorum(leaves, time.Second))
				if err != nil {
					t.Error(err)
				}
				exchanges[r].Reducer = collectors[r]
				ready.Done()
				for p := sites; p < len(parts); p++ {
					served.Go(func() { collectors[r].Serve(t.Context(), net.Transport(r), p) }) //nolint:errcheck // ends as leaves leave
				}
			}
			if err := trainer.Run(t.Context(), g, &exchanges[r]); err != nil {
				t.Errorf("member %d: %v", r, err)
			}
		})
	}
	run.Wait()
	for _, s := range collectors {
		s.Stop(io.EOF)
	}
	for r := sites; r < len(parts); r++ {
		net.Transport(r).Close()
	}
	served.Wait()
	return all, exchanges[0].numbers
}

// sizes is a reducer that notes how many numbers each sum has.
type sizes struct {
	comm.Reducer
	numbers []int
}

func (s *sizes) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	s.numbers = append(s.numbers, len(c.Update)+len(c.Counts))
	return s.Reducer.Reduce(ctx, c)
}

// leavesConfig is plain without what leaves cannot have.
func leavesConfig(g *graph.Graph, target string) Config {
	c := plain(g)
	c.Target, c.Random = target, 0
	return c
}

// With all leaves in time the model is that of one peer with all data, but for the grid of the sums, at every site and
// leaf; sums have as many numbers as the formula says.
func TestLeavesTrainAsOnePeer(t *testing.T) {
	for _, test := range []struct{ target, leaveOut string }{{"labels", Auto}, {"residual", Auto}, {"residual", "true"}} {
		target := test.target
		t.Run(target+" "+test.leaveOut, func(t *testing.T) {
			const sites = 2
			g := communities(900, 4)
			parts, pooled := separate(t, g, sites, 6)
			c := leavesConfig(g, target)
			c.LeaveOut = test.leaveOut
			one := mustRun(t, c, []*shard.Shard{shard.Whole(pooled)}, options{}).trainers[0]
			synctest.Test(t, func(t *testing.T) {
				all, exchanged := federate(t, c, parts, sites, func(int, int) bool { return false })
				if want := c.Exchanges(target == "residual", len(one.Result().Stages[0].Curve)); fmt.Sprint(exchanged) != fmt.Sprint(want) {
					t.Errorf("sums must have %v numbers (got %v)", want, exchanged)
				}
				for r, trainer := range all {
					for i, params := range one.Model().Params() {
						if got := trainer.Model().Params()[i].Value; !sameBits(got.Clone().Data, all[0].Model().Params()[i].Value.Clone().Data) {
							t.Errorf("member %d: %s differs from that of site 0", r, params.Name)
						}
					}
					most := 0.0
					for i, v := range trainer.Logits().Clone().Data {
						k := int(parts[r].Global[i/g.Labels.Classes])
						most = max(most, math.Abs(float64(v-one.Logits().At(k, i%g.Labels.Classes))))
					}
					if most > 1e-3 {
						t.Errorf("member %d: logits differ by %g from those of one peer with all data", r, most)
					}
					if got, want := trainer.Result(), one.Result(); got.Stages[0].Test != want.Stages[0].Test {
						t.Errorf("member %d: accuracy must be %v (got %v)", r, want.Stages[0].Test, got.Stages[0].Test)
					}
				}
			})
		})
	}
}

// Leaves that are offline now and then, and one that never sends anything, cost no more than their rows.
func TestLeavesComeAndGo(t *testing.T) {
	const sites = 3
	g := communities(1200, 4)
	parts, pooled := separate(t, g, sites, 9)
	c := leavesConfig(g, "labels")
	one := mustRun(t, c, []*shard.Shard{shard.Whole(pooled)}, options{}).trainers[0]
	synctest.Test(t, func(t *testing.T) {
		all, _ := federate(t, c, parts, sites, func(p, exchange int) bool { return p == 0 || (p+exchange)%3 == 0 })
		right, tested := 0.0, 0.0
		for r, trainer := range all {
			for _, i := range parts[r].NodesIn(graph.Test) {
				best := 0
				for k, v := range trainer.Logits().Row(int(i)) {
					if v > trainer.Logits().At(int(i), best) {
						best = k
					}
				}
				if tested++; int32(best) == parts[r].Labels.Class[i] {
					right++
				}
			}
		}
		if got, want := right/tested, one.Result().Stages[0].Test; got < want-0.03 {
			t.Errorf("accuracy must be at least 0.03 below that of all data, %.3f (got %.3f)", want, got)
		}
	})
}

// What leaves cannot have is refused before anything is sent.
func TestLeavesRefuse(t *testing.T) {
	g := communities(90, 4)
	for want, change := range map[string]func(*Config, *Trainer){
		"random_features": func(c *Config, _ *Trainer) { c.Random = 8 },
		"components":      func(c *Config, _ *Trainer) { c.Components = 2 },
		"clip_means":      func(c *Config, _ *Trainer) { c.ClipMeans = true },
		"checkpoints":     func(_ *Config, t *Trainer) { t.Checkpoints = &checkpoint.Store{} },
	} {
		c := leavesConfig(g, "labels")
		change(&c, &Trainer{})
		trainer, err := New(c, shard.Whole(g))
		if err != nil {
			t.Fatal(err)
		}
		change(&c, trainer)
		trainer.Leaves = true
		group := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
		if err := trainer.Run(t.Context(), group, group); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, must say %s", err, want)
		}
	}
}
