package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph/dgl"
	"github.com/heddle-gnn/heddle/graph/partition"
)

func newExport() *cobra.Command {
	var shards, out string
	cmd := &cobra.Command{
		Use:   "export --shards DIR --out DIR",
		Short: "Write a partition as the Deep Graph Library stores one",
		Long: `Write a partition as the Deep Graph Library stores one: dgl.distributed.load_partition opens it. DGL numbers the
nodes of a part one after another; the column orig_id has the numbers of the shards. Sparse features become dense.`,
		Example: "  peer export --shards parts --out dgl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			list, closer, err := partition.ReadDir(shards)
			if err != nil {
				return badInput{err}
			}
			defer func() { err = errors.Join(err, closer.Close()) }()
			path, err := dgl.WriteDir(out, list)
			if err != nil {
				return badInput{err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d parts of %s\n", path, len(list), list[0].Name)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&shards, "shards", "", "directory that peer partition wrote")
	f.StringVarP(&out, "out", "o", "", "directory to write, which must not exist or be empty")
	required(cmd, "shards", "out")
	return cmd
}

// importDGL makes Heddle's shards of a partition that DGL wrote.
func importDGL(cmd *cobra.Command, path, out string, n dgl.Names) error {
	p, err := dgl.Read(path)
	if err != nil {
		return badInput{err}
	}
	g, owner, err := p.Graph(n)
	if err != nil {
		return badInput{err}
	}
	shards, err := partition.Cut(identified(g), owner, len(p.Parts))
	if err != nil {
		return badInput{fmt.Errorf("%s: %w", path, err)}
	}
	m, err := partition.WriteDir(out, shards, partition.Meta{Policy: "dgl " + p.Method})
	if err != nil {
		return badInput{err}
	}
	describe(cmd.OutOrStdout(), out, m)
	return nil
}
