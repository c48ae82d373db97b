package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph/partition"
)

func newReorder() *cobra.Command {
	var shards, by, out string
	cmd := &cobra.Command{
		Use:   "reorder --shards DIR --by ORDER --out DIR",
		Short: "Put the rows of a partition's parts into an order in which neighbours lie together",
		Long: `Put the rows of a partition's parts into an order in which neighbours lie together in memory, so that sums over
them take less time: cluster (communities, the best as a rule), rcm (reverse Cuthill-McKee) or degree. Who owns what stays.`,
		Example: "  peer reorder --shards parts --by cluster --out parts-near",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			order, err := partition.ParseOrder(by)
			if err != nil {
				return badInput{err}
			}
			before, err := partition.ReadManifest(shards)
			if err != nil {
				return badInput{err}
			}
			list, closer, err := partition.ReadDir(shards)
			if err != nil {
				return badInput{err}
			}
			defer func() { err = errors.Join(err, closer.Close()) }()
			meta := before.Meta
			meta.Policy += ", rows by " + by
			m, err := partition.WriteDir(out, partition.Reorder(list, order), meta)
			if err != nil {
				return badInput{err}
			}
			describe(cmd.OutOrStdout(), out, m)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&shards, "shards", "", "directory that peer partition wrote")
	f.StringVar(&by, "by", "cluster", "order of the rows: cluster, rcm or degree")
	f.StringVarP(&out, "out", "o", "", "directory to write, which must not exist or be empty")
	required(cmd, "shards", "out")
	return cmd
}
