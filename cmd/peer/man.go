package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands",
		Example: "  peer man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cli.WritableDir(args[0]); err != nil {
				return err
			}
			// SOURCE_DATE_EPOCH replaces the day on which they are written.
			head := &doc.GenManHeader{Section: "1", Source: "Heddle", Manual: "Heddle"}
			root := c.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, head, args[0]); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			return nil
		},
	}
}
