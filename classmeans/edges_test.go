package classmeans

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// words returns communities whose nodes have three words each: one of their class, and two others.
func words(n int) *graph.Graph {
	g, key := communities(n, 6), rng.New(1)
	x := &mat.Sparse{Rows: n, Cols: 40, RowPtr: make([]int64, n+1)}
	for i := range n {
		word := key.Fold(uint64(i))
		x.Col = append(x.Col, g.Labels.Class[i], 3+int32(word.Uint64(0)%18), 21+int32(word.Uint64(1)%19))
		x.Val, x.RowPtr[i+1] = append(x.Val, 1, 1, 1), int64(len(x.Col))
	}
	g.X = graph.Features{Sparse: x}
	return g
}

// islands returns g in three parts, the first two of which no edge connects to others, nor the third unless connected
// is set: then one edge leads from it to the second.
func islands(t *testing.T, g *graph.Graph, connected bool) []*shard.Shard {
	t.Helper()
	owner, to := make([]int32, g.N()), *g
	for i := range owner {
		owner[i] = int32(3 * i / g.N())
	}
	var src, dst []int32
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if owner[i] == owner[j] {
				src, dst = append(src, j), append(dst, int32(i))
			}
		}
	}
	if connected {
		src, dst = append(src, int32(g.N()-1)), append(dst, int32(g.N()/2))
	}
	var err error
	if to.Adj, err = graph.FromEdges(g.N(), src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	shards, err := shard.Cut(&to, owner, 3)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// TestRowsThatDoNotCrossAreExact: where no edge connects the sites the model rounds no columns, at any site and in its
// file, and a run that is resumed has the same. One edge is enough for all sites to round them.
func TestRowsThatDoNotCrossAreExact(t *testing.T) {
	g := words(600)
	c := plain(g)
	c.Coarse, c.Target, c.ClassRounds = true, "labels", 2
	shards, exact := islands(t, g, false), c
	exact.Coarse = false
	store := make([]*checkpoint.Store, len(shards))
	r := mustRun(t, c, shards, options{setup: func(rank int, tr *Trainer) {
		store[rank] = &checkpoint.Store{Dir: t.TempDir()}
		tr.Checkpoints = store[rank]
	}})
	want := mustRun(t, exact, shards, options{})
	for rank, tr := range r.trainers {
		if !slices.Equal(tr.Logits().Data, want.trainers[rank].Logits().Data) {
			t.Errorf("peer %d has other logits than by unrounded columns", rank)
		}
		again, err := New(c, shards[rank])
		if err != nil {
			t.Fatal(err)
		}
		again.Checkpoints = store[rank]
		if done, err := again.Resume(again); !done || err != nil {
			t.Fatalf("the finished run must be taken up again (got %t, %v)", done, err)
		}
		for _, m := range []*Trainer{tr, again} {
			if spec := m.Model().Spec.Closed; spec.Rounded() || spec.OwnExact || !spec.Unconnected {
				t.Errorf("the model of peer %d must not round columns (got %+v)", rank, spec)
			}
		}
		logits, err := infer.Graph(again.Model(), shards[rank].Alone())
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range tr.Logits().Data {
			if by := logits.Data[i] - v; math.Abs(float64(by)) > 2e-4 {
				t.Fatalf("peer %d: logit %d is %g off by the model file, must be the same", rank, i, by)
			}
		}
	}
	for rank, tr := range mustRun(t, c, islands(t, g, true), options{}).trainers {
		if spec := tr.Model().Spec.Closed; !spec.Rounded() || spec.Unconnected {
			t.Errorf("an edge connects two sites: the model of peer %d must round columns (got %+v)", rank, spec)
		}
	}
}

// hidden tells a peer that no peer has edges to others.
type hidden struct{ comm.Reducer }

func (h hidden) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	r, err := h.Reducer.Reduce(ctx, c)
	if c.ID.Kind == "column statistics" {
		c.Counts[1] = 0
	}
	return r, err
}

// TestEdgesAreNotDenied: a peer with edges to others never takes their word that nobody has any, so that its rows stay
// coarse.
func TestEdgesAreNotDenied(t *testing.T) {
	c := plain(words(60))
	c.Coarse, c.MinClass = true, 1
	r := start(t.Context(), c, cut(t, words(60), 2),
		options{reducer: func(_ int, g *comm.Group) comm.Reducer { return hidden{g} }})
	for rank, err := range r.errs {
		if !errors.Is(err, comm.ErrRefused) {
			t.Errorf("peer %d must refuse a sum without itself (got %v)", rank, err)
		}
	}
}
