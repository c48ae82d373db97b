package classmeans

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/train/checkpoint"
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

// federate trains parts, of which the first are of sites and the others of leaves. misses says which leaf is offline
// when. edges are those between nodes of different parts, by their names; nil: there are none.
func federate(
	t *testing.T, c Config, parts []*shard.Shard, sites int, edges *leaf.CrossEdges, misses func(p, exchange int) bool,
) (all []*Trainer, exchanged []int) {
	leaves := len(parts) - sites
	net := netsim.New(len(parts), netsim.Config{Links: netsim.Table{All: netsim.Model{Latency: time.Millisecond}}})
	a := leaf.Agreement{Sites: sites, Least: 2, Most: leaves, Edges: edges != nil}
	rules := leaf.Rules{Cohorts: []gate.Cohort{{Name: "all", Most: leaves}}, Edges: edges,
		Attest: func(_ context.Context, who [16]byte, _ []byte) (gate.Admission, error) {
			return gate.Admission{Cohort: "all", Nodes: names(parts[binary.LittleEndian.Uint32(who[:])])}, nil
		}}
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
				who := leaf.Token(append(binary.LittleEndian.AppendUint32(nil, uint32(r)), make([]byte, 12)...))
				link, known, err := leaf.Dial(t.Context(), net.Transport(r), a, who, nil, names(s))
				if err != nil {
					t.Error(err)
				}
				up := flaky{link, func(k int) bool { return misses(r-sites, k) }}
				one := &leaf.Contributor{Agreement: a, Token: who, Uplink: up, Known: known}
				if exchanges[r].Reducer = one; edges != nil {
					trainer.Beyond = one
				}
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
				if edges != nil {
					if err := collectors[r].Bind(t.Context(), names(s)); err != nil {
						t.Error(err)
					}
					trainer.Beyond = collectors[r]
				}
				ready.Done()
				for p := sites; p < len(parts); p++ {
					served.Go(func() {
						collectors[r].Serve(t.Context(), net.Transport(r), p) //nolint:errcheck // ends as leaves leave
					})
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

// names returns those by which edges know the nodes of a part.
func names(s *shard.Shard) (all []string) {
	for _, i := range s.Global {
		all = append(all, fmt.Sprint("node ", i))
	}
	return all
}

// between returns the edges of g that its parts lack.
func between(t *testing.T, g, parts *graph.Graph) *leaf.CrossEdges {
	var pairs [][2]string
	for i := range g.N() {
		has, _ := parts.Adj.Row(i)
		all, _ := g.Adj.Row(i)
		for _, j := range all {
			if int(j) > i && !slices.Contains(has, j) {
				pairs = append(pairs, [2]string{fmt.Sprint("node ", i), fmt.Sprint("node ", j)})
			}
		}
	}
	edges, err := leaf.NewEdges(pairs)
	if err != nil {
		t.Fatal(err)
	}
	return edges
}

// singles returns parts with each node of the parts from the given one on as a part of its own, and pooled without the
// edges that this loses.
func singles(t *testing.T, parts []*shard.Shard, pooled *graph.Graph, from int) ([]*shard.Shard, *graph.Graph) {
	alone := *pooled
	var src, dst []int32
	for _, s := range parts[:from] {
		for i := range s.Owned {
			col, _ := s.Adj.Row(i)
			for _, j := range col {
				src, dst = append(src, int32(s.Global[j])), append(dst, int32(s.Global[i]))
			}
		}
	}
	all := parts[:from:from]
	for _, s := range parts[from:] {
		for i := range int32(s.Owned) {
			one := shard.Whole(&graph.Graph{Adj: graph.CSR{NumDst: 1, NumSrc: 1, RowPtr: []int64{0, 0}},
				X: s.X.Select([]int32{i}), Labels: s.Labels.Select([]int32{i}), Split: s.Split[i : i+1]})
			one.Global[0], one.Nodes = s.Global[i], s.Nodes
			all = append(all, one)
		}
	}
	var err error
	if alone.Adj, err = graph.FromEdges(pooled.N(), src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	return all, &alone
}

// Edges between members count, although no member sees both ends of one: with all leaves in time the model and the rows
// are those of one peer with all data and all edges, where leaves have graphs and where each is one node.
func TestEdgesBetweenMembers(t *testing.T) {
	const sites = 2
	g := communities(300, 4)
	c := leavesConfig(g, "labels")
	c.ClassWeights = slices.Repeat([]float32{1}, g.Labels.Classes) // logits are not moved, as none are with leaves
	one := mustRun(t, c, []*shard.Shard{shard.Whole(g)}, options{}).trainers[0]
	for name, single := range map[string]bool{"graphs": false, "one node each": true} {
		t.Run(name, func(t *testing.T) {
			parts, pooled := separate(t, g, sites, 4)
			if single {
				parts, pooled = singles(t, parts, pooled, sites+2)
			}
			edges := between(t, g, pooled)
			synctest.Test(t, func(t *testing.T) {
				all, _ := federate(t, c, parts, sites, edges, func(int, int) bool { return false })
				for r, trainer := range all {
					logits, most := trainer.Logits(), 0.0
					for i, node := range parts[r].Global {
						for k, v := range logits.Row(i) {
							most = max(most, math.Abs(float64(v-one.Logits().At(int(node), k))))
						}
					}
					if most > 1e-3 {
						t.Errorf("member %d: logits are off by %g from those of one peer with all data and edges, "+
							"must be within 0.001", r, most)
					}
				}
			})
			without := mustRun(t, c, []*shard.Shard{shard.Whole(pooled)}, options{}).trainers[0]
			if a, b := one.Result().Stages[0].Test, without.Result().Stages[0].Test; a <= b {
				t.Errorf("test accuracy is %.3f with the edges between members and %.3f without, must differ for "+
					"this test to say anything", a, b)
			}
		})
	}
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
	c.Target, c.Random, c.LastHop = target, 0, true
	return c
}

// With all leaves in time the model is that of one peer with all data, but for the grid of the sums, at every site and
// leaf; sums have as many numbers as the formula says.
func TestLeavesTrainAsOnePeer(t *testing.T) {
	for _, test := range []struct{ target, leaveOut string }{{"labels", Auto}, {"residual", Auto},
		{"residual", "true"}} {
		target := test.target
		t.Run(target+" "+test.leaveOut, func(t *testing.T) {
			const sites = 2
			g := communities(900, 4)
			// with about as many training nodes of each class the logits of one peer are moved
			for i, k := range g.Labels.Class {
				if k == 0 && i%8 > 0 && g.Split[i] == graph.Train {
					g.Split[i] = graph.None
				}
			}
			parts, pooled := separate(t, g, sites, 6)
			c := leavesConfig(g, target)
			c.LeaveOut = test.leaveOut
			one := mustRun(t, c, []*shard.Shard{shard.Whole(pooled)}, options{}).trainers[0]
			synctest.Test(t, func(t *testing.T) {
				all, exchanged := federate(t, c, parts, sites, nil, func(int, int) bool { return false })
				if want := c.Exchanges(len(one.Result().Stages[0].Curve)); fmt.Sprint(exchanged) != fmt.Sprint(want) {
					t.Errorf("sums must have %v numbers (got %v)", want, exchanged)
				}
				for r, trainer := range all {
					for i, params := range one.Model().Params() {
						if got := trainer.Model().Params()[i].Value; !sameBits(got.Clone().Data,
							all[0].Model().Params()[i].Value.Clone().Data) {
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
		all, _ := federate(t, c, parts, sites, nil, func(p, exchange int) bool { return p == 0 || (p+exchange)%3 == 0 })
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
