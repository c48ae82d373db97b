package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
)

// labelled is a graph of 300 nodes of 5 classes; the last class has one training node. Every third node is for
// training, and some of those have no label.
func labelled(t *testing.T, multi bool) *graph.Graph {
	t.Helper()
	const n, classes = 300, 5
	g := &graph.Graph{Name: "labelled", Labels: graph.Labels{Classes: classes}, Split: make([]graph.Split, n)}
	for i := range n {
		if i%3 == 0 {
			g.Split[i] = graph.Train
		} else {
			g.Split[i] = graph.Test
		}
		class := int32(i%6) - 1 // −1, 2 of the training nodes
		if class < 0 && i%12 == 0 {
			class = int32(i % (classes - 1))
		}
		if i == 33 {
			class = classes - 1
		}
		g.Labels.Class = append(g.Labels.Class, class)
	}
	if multi {
		g.Labels.Bits = make([]uint8, n*classes)
		for i, class := range g.Labels.Class {
			if class >= 0 {
				g.Labels.Bits[i*classes+int(class)] = 1
			}
		}
		g.Labels.Class = nil
	}
	var err error
	if g.Adj, err = graph.FromEdges(n, []int32{0}, []int32{1}, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	return g
}

// validating counts labels over that many peers, and returns the nodes that validate, at any peer.
func validating(t *testing.T, g *graph.Graph, peers int, seed uint64) (nodes []int64, counts LabelCounts) {
	t.Helper()
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(rng.New(uint64(peers)).Uint64(uint64(i)) % uint64(peers))
	}
	shards, err := shard.Cut(g, owner, peers)
	if err != nil {
		t.Fatal(err)
	}
	network := netsim.New(peers, netsim.Config{})
	var mu sync.Mutex
	var wait sync.WaitGroup
	for rank, own := range shards {
		wait.Go(func() {
			c := comm.NewGroup(network.Transport(rank), rank, peers)
			defer c.Close()
			all, err := CountLabels(t.Context(), c, comm.ReduceID{Kind: "labels"}, own, Draw{Seed: seed})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			counts = all
			train := all.HoldOut(own)
			for _, i := range train.NodesIn(graph.Val) {
				nodes = append(nodes, own.Global[i])
			}
			if again := ReadLabels(all.Sums, g.Labels.Kind(), Draw{Seed: seed}).HoldOut(own); !slices.Equal(again.Split,
				train.Split) {
				t.Errorf("%d peers: from the sums of a checkpoint other nodes validate", peers)
			}
		})
	}
	wait.Wait()
	slices.Sort(nodes)
	return nodes, counts
}

// TestHoldOut: without validation nodes about a tenth of the labelled training nodes validate, the same ones for any
// peers; nothing changes if any peer has one.
func TestHoldOut(t *testing.T) {
	for _, multi := range []bool{false, true} {
		g := labelled(t, multi)
		want, counts := validating(t, g, 1, 4)
		if len(want) < 4 || len(want) > 20 || counts.HeldOut != float64(len(want)) ||
			counts.Validating() != counts.HeldOut {
			t.Errorf("multi %t: %d of 100 training nodes validate, counted %g", multi, len(want), counts.HeldOut)
		}
		learned := make([]float64, g.Labels.Classes)
		training := 0.0
		for i, split := range g.Split {
			has := multi || g.Labels.Class[i] >= 0
			if held := slices.Contains(want, int64(i)); held && (split != graph.Train || !has) {
				t.Errorf("multi %t: node %d, of split %d, validates", multi, i, split)
			} else if split == graph.Train && has && !held {
				training++
				for k, n := range one(g.Labels.Select([]int32{int32(i)})) {
					learned[k] += n
				}
			}
		}
		if counts.Labelled != training || !slices.Equal(counts.Classes, learned) {
			t.Errorf("multi %t: counts %v of %g nodes, want %v of %g", multi, counts.Classes, counts.Labelled, learned,
				training)
		}
		if text := counts.Warning(); !strings.Contains(text,
			fmt.Sprintf("%d of the %g labelled training nodes", len(want), training+float64(len(want)))) {
			t.Error(text)
		}
		for _, peers := range []int{2, 7} {
			if got, _ := validating(t, g, peers, 4); !slices.Equal(got, want) {
				t.Errorf("multi %t, %d peers: nodes %v validate, with one peer %v", multi, peers, got, want)
			}
		}
		if got, _ := validating(t, g, 1, 5); slices.Equal(got, want) {
			t.Errorf("multi %t: another seed draws the same nodes", multi)
		}
		g.Split[200] = graph.Val // at one of the peers; node 200 has a label
		got, counts := validating(t, g, 7, 4)
		if !slices.Equal(got, []int64{200}) || counts.HeldOut != 0 || counts.Warning() != "" ||
			counts.Labelled != training+float64(len(want)) {
			t.Errorf("multi %t: nodes %v validate beside a validation node: %+v", multi, got, counts)
		}
	}
}

// TestLastRound: if the last round is taken no node is held out, which is reported; a class of one node does not
// matter.
func TestLastRound(t *testing.T) {
	for _, multi := range []bool{false, true} {
		g := labelled(t, multi)
		s := shard.Whole(g)
		draw := Draw{Seed: 4, LastRound: true}
		sums := make([]float64, LabelsLen(g.Labels.Kind(), g.Labels.Classes))
		for i, n := range LabelNumbers(s, draw) {
			sums[i] = float64(n)
		}
		counts := ReadLabels(sums, g.Labels.Kind(), draw)
		want := float64(g.Labels.Select(g.InSplit(graph.Train)).Labelled())
		if counts.HeldOut != 0 || counts.Validating() != 0 || counts.Labelled != want {
			t.Errorf("multi %t: of %g labelled training nodes %g train and %g validate, all must train", multi, want,
				counts.Labelled, counts.HeldOut)
		}
		if n := len(counts.HoldOut(s).NodesIn(graph.Val)); n != 0 {
			t.Errorf("multi %t: %d nodes validate, must be 0", multi, n)
		}
		if text := counts.Warning(); !strings.Contains(text,
			fmt.Sprintf("all %g labelled training nodes are learned from", want)) {
			t.Errorf("multi %t: the warning is %q", multi, text)
		}
	}
}

// one returns the label counts of labels.
func one(labels graph.Labels) (count []float64) {
	for _, n := range labels.Count() {
		count = append(count, float64(n))
	}
	return count
}

// TestHoldOutSparesSmallClasses: whatever the seed, every class that has training nodes keeps some; with one training
// node a class nothing can be held out, which is reported. A validation node without a label is none.
func TestHoldOutSparesSmallClasses(t *testing.T) {
	g := labelled(t, false)
	g.Labels.Class[200], g.Split[200] = -1, graph.Val
	for seed := range uint64(40) {
		nodes, counts := validating(t, g, 2, seed)
		if slices.Contains(nodes, 33) {
			t.Errorf("seed %d: the only node of its class validates", seed)
		}
		for k, n := range counts.Classes {
			if n == 0 && slices.ContainsFunc(g.InSplit(graph.Train),
				func(i int32) bool { return int(g.Labels.Class[i]) == k }) {
				t.Errorf("seed %d: class %d has no training node left", seed, k)
			}
		}
	}
	few := labelled(t, false)
	for i, split := range few.Split {
		if split == graph.Train && i > 6 {
			few.Split[i] = graph.Test
		}
	}
	few.Labels.Class[0], few.Labels.Class[3], few.Labels.Class[6] = 0, 1, 2
	for seed := range uint64(20) {
		nodes, counts := validating(t, few, 2, seed)
		if len(nodes) != 0 || counts.Labelled != 3 ||
			!strings.Contains(counts.Warning(), "3 labelled training nodes are too few") {
			t.Errorf("seed %d: nodes %v validate, %q", seed, nodes, counts.Warning())
		}
	}
}

// TestFalseCounts: counts of one peer that no labels have are refused, whether the peer that sums sees them or only
// their sum. A clean count is not.
func TestFalseCounts(t *testing.T) {
	for name, test := range map[string]struct {
		multi bool
		lie   func(n []int64)
		want  string
	}{
		"negative": {false, func(n []int64) { n[1] = -500 },
			"a label count must be at most 198 (got 65036)"},
		"more than all nodes": {false, func(n []int64) { n[11] = 301 }, "a label count must be at most"},
		"no such labels":      {false, func(n []int64) { n[10]++ }, "must be their"},
		"one label too many":  {false, func(n []int64) { n[3]++ }, "must be their"},
		"many that validate": {false, func(n []int64) { n[12] = 190 },
			"labelled nodes of the other peers must be at most their"},
		"more than labelled": {true, func(n []int64) { n[2] = 150 }, "of class 2 at the other peers must be at most"},
		"true":               {false, func([]int64) {}, ""},
		"true of several":    {true, func([]int64) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			const peers = 3
			g := labelled(t, test.multi)
			owner := make([]int32, g.N())
			for i := range owner {
				owner[i] = int32(i % 100 % peers)
			}
			shards, err := shard.Cut(g, owner, peers)
			if err != nil {
				t.Fatal(err)
			}
			network, errs := netsim.New(peers, netsim.Config{}), make([]error, peers)
			var wait sync.WaitGroup
			for rank, own := range shards {
				wait.Go(func() {
					c := comm.NewGroup(network.Transport(rank), rank, peers)
					var r comm.Reducer = c
					if rank == 1 {
						r = lying{c, test.lie}
					}
					_, err := CountLabels(t.Context(), r, comm.ReduceID{Kind: "labels"}, own, Draw{Seed: 1})
					if errs[rank] = c.Refuse(t.Context(), err); err == nil {
						errs[rank] = c.Barrier(t.Context())
					}
				})
			}
			wait.Wait()
			for rank, err := range errs {
				if test.want == "" && err == nil || rank == 1 && test.want != "" && errors.Is(err, comm.ErrRefused) {
					continue
				}
				if err == nil || test.want == "" || !errors.Is(err, comm.ErrRefused) ||
					!strings.Contains(err.Error(), test.want) {
					t.Errorf("peer %d must refuse the counts with %q (got %v)", rank, test.want, err)
				}
			}
		})
	}
}

// lying changes the counts of one peer.
type lying struct {
	comm.Reducer
	lie func([]int64)
}

func (l lying) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	l.lie(c.Counts)
	return l.Reducer.Reduce(ctx, c)
}
