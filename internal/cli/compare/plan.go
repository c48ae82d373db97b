package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
)

// overSites lets c, which is heddle compare, take part in a run over real sites: with --plan it does what join does. c
// gets join's flags; if both have a name, c's flag stays.
func overSites(c, join *cobra.Command) {
	var both, joins []string
	join.Flags().VisitAll(func(f *pflag.Flag) {
		if c.Flags().Lookup(f.Name) != nil {
			both = append(both, f.Name)
			return
		}
		one := *f
		one.Annotations = map[string][]string{}
		maps.Copy(one.Annotations, f.Annotations)
		delete(one.Annotations, cobra.BashCompOneRequiredFlag) // only with --plan
		one.Annotations[cli.FlagSection] = []string{"Over real sites, with --plan"}
		c.Flags().AddFlag(&one)
		joins = append(joins, f.Name)
	})
	here := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		over := c.Flags().Changed("plan")
		var wrong []string
		c.Flags().Visit(func(f *pflag.Flag) {
			if slices.Contains(joins, f.Name) != over && !slices.Contains(both, f.Name) {
				wrong = append(wrong, "--"+f.Name)
			}
		})
		switch {
		case !over && len(wrong) > 0:
			return cli.Invalidf("%s: over real sites heddle compare requires --plan", strings.Join(wrong, ", "))
		case !over:
			return here(c, args)
		case len(wrong) > 0:
			return cli.Invalidf("with --plan the plan has the settings and --shard is the data, in one run (got %s)",
				strings.Join(wrong, ", "))
		case !c.Flags().Changed("shard"):
			return cli.Invalidf("--plan requires --shard, this site's part")
		}
		for _, name := range both {
			if f := c.Flags().Lookup(name); f.Changed {
				if err := join.Flags().Set(name, f.Value.String()); err != nil {
					return cli.Invalidf("--%s: %w", name, err)
				}
			}
		}
		join.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: c.CommandPath()}
		join.SetContext(c.Context())
		join.SetOut(c.OutOrStdout())
		join.SetErr(c.ErrOrStderr())
		return join.RunE(join, args)
	}
}
