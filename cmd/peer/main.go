// Command peer takes part in runs of a federation, as a site's server: those commands of heddle that such a server
// needs.
package main

import (
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
)

var program = cli.Program{Name: "peer", Short: "Take part in runs of a federation", Full: "heddle",
	Long: `Take part in runs of a federation, as a site's server. The program heddle has these commands, too, and
writes plans, imports tables and makes pages.`,
	Commands: func() []*cobra.Command { return federation.Site(nil, nil) }}

func main() { program.Main() }
