package library_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/retexo"
)

func train(ctx context.Context) error {
	g, err := dataset.Import(dataset.ImportConfig{Nodes: "../hospitals/patients.csv", Edges: "../hospitals/contacts.csv",
		Label: "readmitted", Site: "hospital"})
	if err != nil {
		return err
	}
	shards, err := partition.Partition(g, partition.ByColumn{}, 0, 1) // a part for each hospital
	if err != nil {
		return err
	}
	plan := retexo.Plan{Model: "gcn", Encoder: "raw", Carry: "hidden", Layers: 1, Hidden: 16, Hops: 2}
	spec, err := plan.Spec("single", g.X.Cols(), g.Labels.Classes)
	if err != nil {
		return err
	}
	config := retexo.Defaults(spec)
	network := sim.New(len(shards), sim.Config{}) // in memory; p2p.Host.Join gives a transport between machines
	peers, ctx := errgroup.WithContext(ctx)
	for rank, shard := range shards {
		peers.Go(func() error {
			model, err := retexo.NewModel(config)
			if err != nil {
				return err
			}
			trainer, err := retexo.New(config, shard, model)
			if err != nil {
				return err
			}
			group := comm.NewGroup(network.Transport(rank), rank, len(shards))
			defer group.Close()
			if err := trainer.Run(ctx, group, group); err != nil { // from here on model predicts: model.Infer(g)
				return err
			}
			stages := trainer.Result().Stages
			if rank == 0 {
				fmt.Printf("%d peers, test accuracy %.2f\n", len(shards), stages[len(stages)-1].Test)
			}
			return nil
		})
	}
	return peers.Wait()
}

func Example() {
	if err := train(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 3 peers, test accuracy 0.75
}
