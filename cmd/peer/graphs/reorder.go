package graphs

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
)

func newReorder() *cobra.Command {
	var shards, by, out string
	cmd := &cobra.Command{
		Use:   "reorder --shards DIR --by ORDER --out DIR",
		Short: "Reorder rows so that neighbours are close in memory",
		Long: `Reorder the rows of each part so that neighbours are close in memory, which makes sums over neighbours faster: cluster
(communities, usually the best), rcm (reverse Cuthill-McKee) or degree. Each node keeps its owner.`,
		Example: "  peer reorder --shards parts --by cluster --out parts-near",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			order, err := partition.ParseOrder(by)
			if err != nil {
				return cli.Invalid(err)
			}
			before, err := shard.ReadManifest(shards)
			if err != nil {
				return cli.Invalid(err)
			}
			list, closer, err := shard.ReadDir(shards)
			if err != nil {
				return cli.Invalid(err)
			}
			defer func() { err = errors.Join(err, closer.Close()) }()
			meta := before.Meta
			meta.Policy += ", rows by " + by
			return writeParts(cmd.OutOrStdout(), out, shard.Reorder(list, order), meta)
		},
	}
	f := cmd.Flags()
	f.StringVar(&shards, "shards", "", "directory of a partition")
	cli.Reads(f, "shards")
	f.StringVar(&by, "by", "cluster", "order of the rows: cluster, rcm or degree")
	f.StringVarP(&out, "out", "o", "", "directory to write; must be new or empty")
	cli.Required(cmd, "shards", "out")
	return cmd
}
