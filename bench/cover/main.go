// Cover measures what sums in place of rows save: it trains the same model over K peers in memory once by rows of the halo
// and once by covers, layer by layer and all layers at once, and prints the bytes of rows, sums and gradients and by how
// much the losses differ, one line a graph and policy.
//
//	go run ./bench/cover
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/retexo"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cover:", err)
		os.Exit(1)
	}
}

func run() error {
	root := flag.String("root", "../shared/data", "folder of the data sets")
	graphs := flag.String("graph", "cora,dblp-citation,facebook-pages,amazon-computers,github-web-ml,tolokers", "graphs to measure")
	policies := flag.String("policy", "random,restream:5,multilevel", "how they are partitioned")
	parts := flag.Int("k", 4, "number of parts")
	hidden := flag.Int("hidden", 64, "width of the hidden rows, and of the encoder's")
	flag.Parse()
	fmt.Println("graph policy rows messages layerwise_halo layerwise_cover layerwise_differ epoch_halo epoch_cover epoch_differ")
	for _, name := range strings.Split(*graphs, ",") {
		g, err := dataset.Read(filepath.Join(*root, name), 0)
		if err != nil {
			return err
		}
		for _, policy := range strings.Split(*policies, ",") {
			if err := measure(g, name, policy, *parts, *hidden); err != nil {
				return fmt.Errorf("%s, %s: %w", name, policy, err)
			}
		}
	}
	return nil
}

func measure(g *graph.Graph, name, policy string, parts, hidden int) error {
	p, err := partition.ParsePolicy(policy)
	if err != nil {
		return err
	}
	shards, err := partition.Partition(g, p, parts, 1)
	if err != nil {
		return err
	}
	rows := 0
	for _, s := range shards {
		rows += s.Halo()
	}
	fmt.Print(name, " ", policy, " ", rows, " ", partition.Plans(shards).Total)
	for _, train := range []func(g *graph.Graph, shards []*partition.Shard, exchange string, hidden int) (outcome, error){layerwise, atOnce} {
		halo, err := train(g, shards, "halo", hidden)
		if err != nil {
			return err
		}
		cover, err := train(g, shards, "auto", hidden)
		if err != nil {
			return err
		}
		worst := 0.0
		for i, loss := range cover.losses {
			worst = max(worst, math.Abs(loss-halo.losses[i])/halo.losses[i])
		}
		fmt.Printf(" %d %d %.1e", halo.bytes, cover.bytes, worst)
	}
	fmt.Println()
	return nil
}

// outcome is what a training left: bytes through the door of rows, of all peers, and the losses of its steps.
type outcome struct {
	bytes  int64
	losses []float64
}

// layerwise trains two layers of GCN on principal components for five rounds each; the bytes are those of the whole run.
func layerwise(g *graph.Graph, shards []*partition.Shard, exchange string, hidden int) (out outcome, err error) {
	spec, err := retexo.Plan{Model: "gcn", Encoder: fmt.Sprintf("pca:%d", min(hidden, g.X.Cols())), Carry: "hidden", Layers: 2, Hidden: hidden, Hops: 1}.
		Spec(task(g), g.X.Cols(), g.Labels.Classes)
	if err != nil {
		return out, err
	}
	c := retexo.Defaults(spec)
	c.Rounds, c.Exchange = 5, exchange
	results := make([]retexo.Result, len(shards))
	err = each(shards, func(s *partition.Shard, group *comm.Group) error {
		m, err := retexo.NewModel(c)
		if err != nil {
			return err
		}
		t, err := retexo.New(c, s, m)
		if err != nil {
			return err
		}
		err = t.Run(context.Background(), group, group)
		results[s.Rank] = t.Result()
		return err
	})
	for _, r := range results {
		out.bytes += r.Bytes.Halo
	}
	for _, r := range results[0].Rounds {
		out.losses = append(out.losses, r.Loss)
	}
	return out, err
}

// atOnce trains two layers of GCN together for three epochs; the bytes are those of the second, without validation.
func atOnce(g *graph.Graph, shards []*partition.Shard, exchange string, hidden int) (out outcome, err error) {
	spec, err := nn.Preset("gcn", task(g), g.X.Cols(), g.Labels.Classes, hidden, 2)
	if err != nil {
		return out, err
	}
	c := fullbatch.Defaults(spec)
	c.Epochs, c.EvalEvery, c.Exchange = 3, 1000, exchange
	results := make([]fullbatch.Result, len(shards))
	err = each(shards, func(s *partition.Shard, group *comm.Group) error {
		m, err := fullbatch.NewModel(c)
		if err != nil {
			return err
		}
		t, err := fullbatch.New(c, s, m)
		if err != nil {
			return err
		}
		err = t.Run(context.Background(), group, group)
		results[s.Rank] = t.Result()
		return err
	})
	if err != nil {
		return out, err
	}
	for _, r := range results {
		out.bytes += r.Epochs[2].Bytes.Halo - r.Epochs[1].Bytes.Halo
	}
	for _, e := range results[0].Epochs {
		out.losses = append(out.losses, e.Loss)
	}
	return out, nil
}

func task(g *graph.Graph) string {
	if g.Labels.Multi() {
		return "multi"
	}
	return "single"
}

// each runs f as every peer.
func each(shards []*partition.Shard, f func(s *partition.Shard, group *comm.Group) error) error {
	net := sim.New(len(shards), sim.Config{})
	errs := make([]error, len(shards))
	var wait sync.WaitGroup
	for r, s := range shards {
		wait.Go(func() {
			group := comm.NewGroup(net.Transport(r), r, len(shards))
			defer group.Close()
			errs[r] = f(s, group)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
