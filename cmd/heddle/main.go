// Command heddle trains graph neural networks over a graph whose parts are on different machines.
package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/compare"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/cli/runs"
)

var program = cli.Program{Name: "heddle", Short: "Train graph neural networks across sites without pooling",
	Long: `Heddle trains one graph neural network across sites that cannot share their data: hospitals, banks,
servers, phones.

Start with: heddle demo`,
	Groups: [][]string{{"Start", "demo", "import", "train", "compare", "predict", "inspect"},
		{"Several sites", "init", "invite", "plan", "take-part", "match", "join", "status", "doctor"},
		{"Agree and audit", "approve", "check", "policy", "roster", "audit"},
		{"More", "partition", "recommend", "serve", "export", "simulate", "relay"}},
	Commands: func() []*cobra.Command {
		pages := report.Pages{}
		return slices.Concat(runs.Commands(), federation.Commands(pages, graphs.SiteWriter{}), graphs.Commands(),
			compare.Commands(federation.NewJoin(pages, compare.After{})))
	}}

func main() { program.Main() }
