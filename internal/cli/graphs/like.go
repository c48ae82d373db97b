package graphs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// bindLike adds the flag of a model whose columns tables become, to a command that has the flags of bindTables.
func bindLike(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "like", "", "model file whose columns and classes the tables get")
	cli.Reads(c.Flags(), "like")
	c.MarkFlagsMutuallyExclusive("split-column", "split-time")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		var given []string
		c.Flags().Visit(func(f *pflag.Flag) {
			if slices.Contains(roles, f.Name) {
				given = append(given, "--"+f.Name)
			}
		})
		if *path == "" || given == nil {
			return nil
		}
		return cli.Invalidf("--like gives the columns the roles that they have in the model: omit %s",
			strings.Join(given, ", "))
	}
}

// roles are the flags that --like replaces.
var roles = []string{"id-column", "label-column", "class-order", "multi", "regression", "split-column", "numeric",
	"categorical", "text", "age", "ignore", "source-column", "target-column", "weight-column", "merge",
	"relation-column", "edge-columns", "directed", "split-time", "embed"}

// readLike gives c the encoding of the model file at path; an empty path is none.
func readLike(path string, c *dataset.ImportConfig) error {
	if path == "" {
		return nil
	}
	_, card, err := modelfile.Read(path)
	if err != nil {
		return cli.Invalid(err)
	}
	if card.Encoding == nil {
		return cli.Invalidf("%s was not trained on tables: it does not say how columns become features", path)
	}
	c.Like = card.Encoding
	return nil
}
