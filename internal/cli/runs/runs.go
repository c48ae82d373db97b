// Package runs has the commands that train and predict.
package runs

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/compare"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/cli/links"
	"github.com/heddle-gnn/heddle/internal/cli/live"
	"github.com/heddle-gnn/heddle/internal/cli/simulate"
)

// Program returns the program with all commands, by that name.
func Program(name string) cli.Program {
	return cli.Program{Name: name, Short: "Train graph neural networks across sites without pooling",
		Long: `Heddle trains one graph neural network across sites that cannot share their data: hospitals, banks, servers, phones.

Start with:  ` + name + ` demo`,
		Commands: func() []*cobra.Command {
			own := []*cobra.Command{newTrain(), newPlan(), newJoin(false), newPredict(), newBench(),
				live.Command(), simulate.Command(), links.Command()}
			return slices.Concat(own, compare.Commands(newJoin(true)), graphs.Commands(), federation.Commands())
		}}
}
