package compare

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/rng"
)

func newDemo() *cobra.Command {
	var c comparing
	var seed uint64
	var graph string
	one := &cobra.Command{
		Use:   "demo",
		Short: "Compare four sites of a built-in graph",
		Long: `Train over the four sites of a built-in graph, each with its own peer over QUIC on this machine, and
compare what they reach together with what each site reaches alone, with the features alone and with pooled data, as
heddle compare does on your data. Each run draws the graph anew.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if graph != "" {
				return cli.Invalid(dataset.Write(graph, dataset.Sites(dataset.SitesConfig{}, rng.New(seed))))
			}
			w, err := c.view.Start(cmd)
			if err = cmp.Or(err, c.CheckSeeds()); err != nil {
				return err
			}
			defer w.End()
			p := heddle.Defaults("", "")
			p.Seed = seed
			again := fmt.Sprintf("heddle demo --seed %d --seeds %d", seed, c.Seeds)
			return c.compare(cmd.Context(), builtIn(p), w, c.view.Text(cmd), again)
		},
	}
	one.Flags().Uint64Var(&seed, "seed", 1, "random seed of the first run's graph and training")
	one.Flags().StringVar(&graph, "graph", "", "write the graph to this directory, and run nothing")
	one.Flags().IntVar(&c.Seeds, "seeds", 3, "runs, each with the next seed")
	one.Flags().StringVarP(&c.Out, "out", "o", filepath.Join("runs", "demo"), "directory to write to")
	c.view.Bind(one.Flags())
	return one
}
