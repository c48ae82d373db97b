package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
)

// alone sums over one peer.
type alone struct{}

func (alone) Reduce(context.Context, *comm.Contribution) (comm.Reduced, error) {
	return comm.Reduced{}, nil
}

// find returns the correction of logits of g's nodes, at one peer.
func find(t *testing.T, g *graph.Graph, logits mat.Dense) Correction {
	s, id := shard.Whole(g), func(kind string) comm.ReduceID { return comm.ReduceID{Kind: kind} }
	counts, err := CountLabels(t.Context(), alone{}, id("labels"), s, Draw{})
	if err != nil {
		t.Fatal(err)
	}
	m := ShareMover{Reducer: alone{}, ID: id, Shard: s, Labels: counts, Logits: logits.Clone()}
	c, err := m.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// skewed returns the graph of 7, 2 and 1 of ten nodes, and logits of them: noise, and more for a node's class. 30 nodes
// of each class validate, or the given number of them.
func skewed(key rng.Key, more float32, validating int) (*graph.Graph, mat.Dense) {
	g := graphtest.Skewed(true)
	logits := mat.New(g.N(), 3)
	var seen [3]int
	for i, k := range g.Labels.Class {
		for j := range logits.Cols {
			logits.Set(i, j, float32(key.Normal(uint64(i*logits.Cols+j))))
		}
		logits.Set(i, int(k), logits.At(i, int(k))+more)
		if g.Split[i] == graph.Val {
			if seen[k]++; seen[k] > validating {
				g.Split[i] = graph.Test
			}
		}
	}
	return g, logits
}

// accuracy is the accuracy over the test nodes.
func accuracy(g *graph.Graph, logits mat.Dense) float64 {
	right, nodes := 0, g.InSplit(graph.Test)
	for _, i := range nodes {
		if eval.ArgMax(logits.Row(int(i))) == int(g.Labels.Class[i]) {
			right++
		}
	}
	return float64(right) / float64(len(nodes))
}

// TestPoorModelStays: logits that hardly distinguish the classes show no shares either, and few validation nodes cannot
// see that. Logits that do distinguish them move.
func TestPoorModelStays(t *testing.T) {
	const draws = 40
	for _, poor := range []bool{true, false} {
		more, validating := float32(1.5), 30
		if poor {
			more, validating = 0.2, 10
		}
		gain, worst := 0.0, 1.0
		for draw := range draws {
			g, logits := skewed(rng.New(uint64(draw)), more, validating)
			before := accuracy(g, logits)
			if by := find(t, g, logits).Bias; by != nil {
				addShares(by, logits)
			}
			change := accuracy(g, logits) - before
			gain += change / draws
			worst = min(worst, change)
		}
		t.Logf("poor %v: moves gain %.4f, the worst %.4f", poor, gain, worst)
		if least := map[bool]float64{true: -0.05, false: -0.02}[poor]; worst < least {
			t.Errorf("poor %v: a move gains %.4f, must be at least %.2f", poor, worst, least)
		}
		if !poor && gain < 0.02 {
			t.Errorf("moves gain %.4f, must be 2 points", gain)
		}
	}
}

// TestDrawnByClass: nodes that were sampled by class need some of each class, but not equally many. Nodes that were
// sampled at random from classes of other frequencies were not sampled by class.
func TestDrawnByClass(t *testing.T) {
	for _, c := range []struct {
		nodes []float64
		want  bool
	}{
		{[]float64{20, 20, 20}, true}, {[]float64{20, 19, 20}, true}, {[]float64{18, 18, 17, 17, 17, 19, 16}, true},
		{[]float64{2, 1}, false}, {[]float64{40, 30, 20}, false}, {[]float64{4000, 4200}, false},
		{[]float64{4, 5, 5, 5, 4, 0}, false}, {[]float64{0, 0}, false},
	} {
		if got := evenly(c.nodes); got != c.want {
			t.Errorf("%v training nodes of each class were drawn by class: %v, must be %v", c.nodes, got, c.want)
		}
	}
}

// TestMissingLabels: logits of a model move in the same direction if a few training or validation nodes have lost their
// labels.
func TestMissingLabels(t *testing.T) {
	g, logits := skewed(rng.New(1), 1.5, 30)
	want := find(t, g, logits)
	if want.Bias == nil {
		t.Fatal("logits are not moved")
	}
	lost := map[graph.Split]int{}
	for i, split := range g.Split {
		if (split == graph.Train || split == graph.Val) && lost[split] < 2 {
			g.Labels.Class[i] = -1
			lost[split]++
		}
	}
	got := find(t, g, logits)
	if got.Bias == nil {
		t.Fatal("logits are not moved without a few labels")
	}
	if !(got.Bias[0] > 0 && got.Bias[0] > got.Bias[1] && got.Bias[1] > got.Bias[2]) {
		t.Errorf("the move is %v without a few labels, must be up for frequent classes as %v", got.Bias, want.Bias)
	}
}

// TestOtherTypesTellNothing: nodes of a type without labels, which the model gives one class, change nothing.
func TestOtherTypesTellNothing(t *testing.T) {
	g, logits := skewed(rng.New(1), 1.5, 30)
	want := find(t, g, logits)
	if want.Bias == nil {
		t.Fatal("logits are not moved")
	}
	n := g.N()
	adj, err := graph.FromEdges(2*n, nil, nil, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	more, x := mat.New(2*n, logits.Cols), mat.New(2*n, g.X.Cols())
	copy(more.Data, logits.Data)
	copy(x.Data, g.X.Dense.Data)
	g.Types = graph.Types{Names: []string{"labelled", "other"}, Of: make([]uint8, 2*n)}
	for i := n; i < 2*n; i++ {
		more.Set(i, 2, 1)
		g.Types.Of[i] = 1
	}
	g.Adj, g.X = adj, graph.Features{Dense: x}
	g.Split = append(g.Split, make([]graph.Split, n)...)
	g.Labels.Class = append(g.Labels.Class, slices.Repeat([]int32{-1}, n)...)
	if got := find(t, g, more); !slices.Equal(got.Bias, want.Bias) {
		t.Errorf("the move is %v with nodes of another type, must be %v", got.Bias, want.Bias)
	}
}

func TestShiftedShares(t *testing.T) {
	chance := [][]float64{{0.8, 0.1, 0.1}, {0.2, 0.7, 0.1}, {0.1, 0.3, 0.6}}
	shares := []float64{0.6, 0.3, 0.1}
	confusion, given := make([][]float64, 3), make([]float64, 3)
	for k, row := range chance {
		for j, p := range row {
			confusion[k] = append(confusion[k], 1000*p)
			given[j] += 5000 * shares[k] * p
		}
	}
	for k, q := range shifted(confusion, given) {
		if math.Abs(q-shares[k]) > 0.08 { // a tenth more nodes count as of all classes alike
			t.Errorf("class %d has a share of %.3f, must be %.3f", k, q, shares[k])
		}
	}
	for _, q := range shifted(confusion, []float64{0, 0, 0}) {
		if math.Abs(q-1.0/3) > 1e-12 {
			t.Errorf("a share is %g without nodes, must be a third", q)
		}
	}
}

// TestChoose: the first of the best parts is chosen or, with few validation nodes, the last one that they cannot
// distinguish from it.
func TestChoose(t *testing.T) {
	right := [][]float64{{10, 20}, {14, 18}, {16, 15}, {16, 15}, {20, 3}}
	weight, validating := []float64{0.7 / 20, 0.3 / 20}, []float64{20, 20}
	if got := choosePart(right, weight, validating, false); got != 2 {
		t.Errorf("part %d is chosen, must be 2, the first of the best", got)
	}
	right[4] = []float64{17, 12}
	if got := choosePart(right, weight, validating, true); got != 4 {
		t.Errorf("part %d is chosen, must be 4, within half a standard error of the best", got)
	}
	right[4] = []float64{10, 10}
	if got := choosePart(right, weight, validating, true); got != 3 {
		t.Errorf("part %d is chosen, must be 3, the last near the best", got)
	}
}
