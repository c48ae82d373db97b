package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// learned is the configuration of two layers behind rows of 6 numbers.
func learned(t *testing.T, g *graph.Graph, model string) Config {
	t.Helper()
	a := nn.Architecture{Model: model, Task: "single", Features: g.X.Cols(), Classes: 3, Layers: 2, Hidden: 8,
		Learned: 6}
	if _, ok := g.X.Numbers(); ok {
		a.Features = 1
	}
	if c, _ := nn.ConvolutionNamed(model); c.Typed {
		a.Relations = traintest.Relations
	}
	spec, err := a.Spec()
	if err != nil {
		t.Fatal(err)
	}
	c := Defaults(spec)
	c.Rounds, c.EvalEvery = 12, 3
	return c
}

// typedRows returns a toy whose nodes are of three types, the second with one column that is 1, with typed edges.
func typedRows() *graph.Graph {
	g := traintest.Typed(toy(rng.New(2), 90, 8))
	g.Types = graph.Types{Names: []string{"a", "bare", "b"}, Ptr: []int64{0, 4, 5, 8}}
	x := &mat.Sparse{Rows: 90, Cols: 8, RowPtr: []int64{0}}
	for i := range 90 {
		kind := i % 3
		g.Types.Of = append(g.Types.Of, uint8(kind))
		for j := g.Types.Ptr[kind]; j < g.Types.Ptr[kind+1]; j++ {
			v := g.X.Dense.At(i, int(j))
			if kind == 1 {
				v = 1
			}
			x.Col, x.Val = append(x.Col, int32(j)), append(x.Val, v)
		}
		x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
	}
	g.X = graph.Features{Sparse: x}
	return g
}

// TestOwnRows: nodes without features learn a row each that their owner alone holds and no sum has, and curves, rows
// and predictions are those of one worker, over 2 and 4.
func TestOwnRows(t *testing.T) {
	bare := toy(rng.New(2), 90, 1)
	bare.X = graph.Identity(90)
	for _, k := range []struct {
		name, model string
		g           *graph.Graph
		rows        int
	}{{"no features", "gcn", bare, 90}, {"typed, a type without", "rgcn", typedRows(), 30}} {
		t.Run(k.name, func(t *testing.T) {
			c := learned(t, k.g, k.model)
			one := trained(t, c, cut(t, k.g, "", 1))[0]
			if one.own.table.Rows != k.rows {
				t.Fatalf("%d nodes have a row, must be %d", one.own.table.Rows, k.rows)
			}
			if n := len(one.Params.Value); n > 2000 {
				t.Fatalf("%d parameters are summed, must be few: rows of nodes are not among them", n)
			}
			fresh, err := newOwnRows(c, one.shard, one.key)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(fresh.table.Data, one.own.table.Data) {
				t.Fatal("no row has changed")
			}
			for _, parts := range []int{2, 4} {
				held := 0
				for r, tr := range trained(t, c, cut(t, k.g, "uneven", parts)) {
					got, must := tr.Result().Final(), one.Result().Final()
					for i, w := range must.Curve {
						within(t, fmt.Sprintf("worker %d of %d, loss of epoch %d", r, parts, i), got.Curve[i].Loss,
							w.Loss, 1e-4)
					}
					within(t, "test loss", got.TestLoss, must.TestLoss, 1e-4)
					held += tr.own.table.Rows
					for i, at := range tr.own.of {
						node := tr.shard.Global[i]
						if whole := one.own.of[node]; (whole < 0) != (at < 0) {
							t.Fatalf("node %d has row %d, at one worker row %d", node, at, whole)
						} else if at >= 0 {
							near(t, fmt.Sprintf("row of node %d", node), tr.own.table.Row(int(at)),
								one.own.table.Row(int(whole)))
						}
						near(t, "logits", tr.Logits().Row(i), one.Logits().Row(int(node)))
					}
				}
				if held != k.rows {
					t.Errorf("the workers hold %d rows, must be %d", held, k.rows)
				}
			}
			// A model file has no rows of nodes: the bias stands in for each.
			inferred, err := infer.Graph(one.Model, k.g)
			if err != nil {
				t.Fatal(err)
			}
			one.own = nil
			one.infer.Reset()
			scores, err := one.pass(one.val, one.infer, nil).forward()
			if err != nil {
				t.Fatal(err)
			}
			for n, i := range one.split[graph.Val] {
				at := n
				if one.val.rows != nil {
					at = int(one.val.rows[n])
				}
				near(t, "logits without rows", inferred.Row(int(i)), scores.Row(at))
			}
		})
	}
}

// TestOwnRowsResume: a run that is cut off goes on from the newest checkpoint that all workers have, each with its own
// rows, to the same ones; where they have none of the same epoch, it says so.
func TestOwnRowsResume(t *testing.T) {
	g := typedRows()
	c := learned(t, g, "rgcn")
	c.Order, c.Checkpoint = "fixed", 2
	shards := cut(t, g, "uneven", 2)
	whole := trained(t, c, shards)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.RoundEnd && e.Round == 6 && tr.shard.Rank == 1 {
				cancel()
			}
		}
		if err := tr.Run(ctx, g, g); err == nil {
			return errors.New("it was not interrupted")
		}
		return nil
	})
	var from [2]int
	for r, tr := range workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.Restored {
				from[tr.shard.Rank] = e.Round
			}
		}
		return tr.Run(context.Background(), g, g)
	}) {
		if from[r] < 4 || from[0] != from[1] {
			t.Errorf("the workers went on from epochs %v, must be the same and at least 4", from)
		}
		if !slices.Equal(tr.own.table.Data, whole[r].own.table.Data) ||
			!slices.Equal(tr.Params.Value, whole[r].Params.Value) {
			t.Errorf("worker %d has other rows than in a run that was not cut off", r)
		}
	}
}
