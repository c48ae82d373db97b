package links

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestKnownByHand: nodes 0 and 1 have the neighbours 2 and 3, of degrees 2 and 3. The site of 0 and 2 does not know the
// edge of 1 and 3.
func TestKnownByHand(t *testing.T) {
	pairs := [][2]int32{{0, 2}, {1, 2}, {0, 3}, {1, 3}, {3, 4}}
	var src, dst []int32
	for _, p := range pairs {
		src, dst = append(src, p[0], p[1]), append(dst, p[1], p[0])
	}
	g := &graph.Graph{Labels: graph.Labels{Class: make([]int32, 5), Classes: 2}, Split: make([]graph.Split, 5)}
	var err error
	if g.Adj, err = graph.FromEdges(5, src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	two, err := shard.Cut(g.Numbered(), []int32{0, 1, 0, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s        *shard.Shard
		common   []float32 // of node 0 with 1, 4 and one that is nowhere
		weighted []float64
	}{
		{shard.Whole(g), []float32{2, 1, 0}, []float64{1/math.Log(2) + 1/math.Log(3), 1 / math.Log(3), 0}},
		{two[0], []float32{1, 0, 0}, []float64{1 / math.Log(2), 0, 0}},
	} {
		k := newKnown(&Learner{cut: &Cut{Messages: c.s}})
		for range 2 { // scratch is clean again
			common, weighted := k.scores(0, []int64{1, 4, 9})
			if !slices.Equal(common, c.common) {
				t.Errorf("%d parts: common neighbours %v, must be %v", c.s.Parts, common, c.common)
			}
			for i, want := range c.weighted {
				if math.Abs(float64(weighted[i])-want) > 1e-6 {
					t.Errorf("%d parts: Adamic–Adar %v, must be %v", c.s.Parts, weighted, c.weighted)
				}
			}
		}
	}
}

// TestKnownHasNoTestLink: edges that are held out are no neighbours.
func TestKnownHasNoTestLink(t *testing.T) {
	g := graphtest.Communities(100, 5, 12, 0.5, rng.New(1))
	task, err := New(train.LinkTask{HeldOut: [2]float64{0.1, 0.2}, Negatives: 1}, 4, shard.Whole(g))
	if err != nil {
		t.Fatal(err)
	}
	k, held := newKnown(task), 0
	for _, l := range task.cut.Links {
		_, near := slices.BinarySearch(k.near[l.At], l.Other)
		if near != (l.Split == graph.Train) {
			t.Errorf("link %d to %d, of split %d: known is %t", l.At, l.Other, l.Split, near)
		}
		if l.Split != graph.Train {
			held++
		}
	}
	if held < 20 {
		t.Errorf("%d links are held out, must be more", held)
	}
}
