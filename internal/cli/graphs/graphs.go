// Package graphs has the commands that make, describe and convert graphs, partitions and their
// parts.
package graphs

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newImport(), newExport(), newPartition(), newMatch(), newInspect()}
}
