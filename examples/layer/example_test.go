package layer_test

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// joint is the message w·ReLU(z∘gain + r), gain a learned row and r the row of the destination: what a neighbour and the
// node have together.
func joint(name string, width int) *aggregate.Messages {
	gain := tape.NewParam(name+".gain", 1, width, 1)
	return &aggregate.Messages{
		Reduce: aggregate.SumOf, ReadsDst: true, Parameters: []*tape.Param{gain},
		Message: func(b *aggregate.EdgeBatch) {
			a := gain.Value.Row(0)
			for k := range b.M.Rows {
				m, r := b.M.Row(k), b.Dst.Row(k)
				for c, z := range b.Src.Row(k) {
					m[c] = float32(a[c]*z) + r[c]
				}
			}
			kernels.ReLU(b.M.Data, b.M.Data)
			for k, w := range b.Weight {
				kernels.Scale(w, b.M.Row(k))
			}
		},
		Gradient: func(b *aggregate.EdgeBatch) {
			a, da := gain.Value.Row(0), b.Grads[0].Row(0)
			for k, w := range b.Weight {
				m, dm, z, dz, dr := b.M.Row(k), b.DM.Row(k), b.Src.Row(k), b.DSrc.Row(k), b.DDst.Row(k)
				for c, open := range m {
					if open > 0 {
						d := float32(w * dm[c])
						dz[c] += float32(d * a[c])
						dr[c] += d
						da[c] += float32(d * z[c])
					}
				}
			}
		},
	}
}

// model is GraphSAGE whose second layer aggregates joint messages in place of the mean.
func model(c fullbatch.Config) (*nn.Model, error) {
	m, err := c.NewModel()
	if err == nil {
		l := m.Layers[1]
		l.Conv.Agg, l.Edges = joint(l.Name, l.Spec.In), graph.Mean
	}
	return m, err
}

// train returns the test accuracy that so many workers reach.
func train(ctx context.Context, g *graph.Graph, workers int) (float64, error) {
	shards, err := partition.Partition(g, partition.Random{}, workers, 1)
	if err != nil {
		return 0, err
	}
	spec, err := nn.Preset("sage", "single", g.X.Cols(), g.Labels.Classes, 16, 2)
	if err != nil {
		return 0, err
	}
	config := fullbatch.Defaults(spec)
	config.Rounds = 30
	network, accuracy := netsim.New(workers, netsim.Config{}), make([]float64, workers)
	run, ctx := errgroup.WithContext(ctx)
	for rank, shard := range shards {
		run.Go(func() error {
			m, err := model(config)
			if err != nil {
				return err
			}
			trainer, err := fullbatch.New(config, shard, m)
			if err != nil {
				return err
			}
			group := comm.NewGroup(network.Transport(rank), rank, workers)
			defer group.Close()
			err = trainer.Run(ctx, group, group)
			accuracy[rank] = trainer.Result().Final().Test
			return err
		})
	}
	err = run.Wait()
	return accuracy[0], err
}

func Example() {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 30, Train: 0.2, Val: 0.2}, rng.New(1))
	one, err1 := train(context.Background(), g, 1)
	three, err3 := train(context.Background(), g, 3)
	fmt.Println(err1, err3, "better than chance:", one > 0.5, "as good over three workers:", math.Abs(one-three) < 0.01)
	// Output: <nil> <nil> better than chance: true as good over three workers: true
}
