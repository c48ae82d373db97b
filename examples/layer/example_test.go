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
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// squashed is the message w·tanh(gain ∘ z), gain a learned row: so the message of a neighbour is bounded.
func squashed(name string, width int) *aggregate.Messages {
	gain := &tape.Param{Name: name + ".gain", Value: mat.New(1, width), Grad: mat.New(1, width)}
	for c := range width {
		gain.Value.Set(0, c, 1)
	}
	return &aggregate.Messages{
		Parameters: []*tape.Param{gain},
		Message: func(m, z []float32, w float32) {
			for c, v := range z {
				m[c] = w * tanh(gain.Value.At(0, c)*v)
			}
		},
		Gradient: func(dz, dm, z []float32, w float32) {
			a, da := gain.Value.Row(0), gain.Grad.Row(0)
			for c, v := range z {
				t := tanh(a[c] * v)
				d := w * dm[c] * (1 - float32(t*t))
				dz[c] += float32(d * a[c])
				da[c] += float32(d * v)
			}
		},
	}
}

func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }

// model is GraphSAGE whose second layer aggregates squashed messages in place of the mean.
func model(c fullbatch.Config) (*nn.Model, error) {
	m, err := c.NewModel()
	if err == nil {
		l := m.Layers[1]
		l.Conv.Agg, l.Edges = squashed(l.Name, l.Spec.In), graph.Mean
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
