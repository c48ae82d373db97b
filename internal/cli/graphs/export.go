package graphs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/dgl"
)

func newExport() *cobra.Command {
	var shards, out string
	cmd := &cobra.Command{
		Use:   "export --shards DIR --out DIR",
		Short: "Write a partition for DGL",
		Long: `Write a partition in the format of the Deep Graph Library, which dgl.distributed.load_partition opens.
DGL numbers the nodes of a part consecutively; the column orig_id has the node numbers of the shards. Sparse features
become dense.`,
		Example: "  heddle export --shards parts --out dgl",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			list, closer, err := shard.ReadDir(shards)
			if err != nil {
				return cli.Invalid(err)
			}
			defer func() { err = errors.Join(err, closer.Close()) }()
			path, err := dgl.WriteDir(out, list)
			if err != nil {
				return cli.Invalid(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d parts of %s\n", path, len(list), list[0].Name)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&shards, "shards", "", "directory of a partition")
	f.StringVarP(&out, "out", "o", "", "new or empty directory to write to")
	cli.Reads(f, "shards")
	cli.Required(cmd, "shards", "out")
	return cmd
}

// importDGL makes shards from a partition that DGL wrote.
func importDGL(cmd *cobra.Command, path, out string, n dgl.Names) error {
	p, err := dgl.Read(path)
	if err != nil {
		return cli.Invalid(err)
	}
	g, owner, err := p.Graph(n)
	if err != nil {
		return cli.Invalid(err)
	}
	shards, err := shard.Cut(g.Numbered(), owner, len(p.Parts))
	if err != nil {
		return cli.Invalidf("%s: %w", path, err)
	}
	return writeParts(cmd.OutOrStdout(), out, shards, shard.Meta{Policy: "dgl " + p.Method})
}
