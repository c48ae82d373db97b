// Command peer takes part in runs of a federation, as a site's server: those commands of heddle that such a server
// needs.
package main

import (
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
)

var program = cli.Program{Name: "peer", Short: "Take part in runs of a federation", Full: "heddle",
	Long: `Take part in runs of a federation, as a site's server. Plans are written, tables imported and pages drawn
by the program heddle, which has these commands, too.`,
	Commands: func() []*cobra.Command { return federation.Site(nil, nil) }}

func main() { program.Main() }
