package federation

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
)

func newPolicy() *cobra.Command {
	var federation string
	c := &cobra.Command{
		Use:   "policy " + strings.Join(admission.Templates, "|"),
		Short: "Print a policy to begin with, or explain one",
		Long: `Print a policy of ten lines with comments, for a site to change: no other site can change it. heddle
policy explain prints what a policy allows and refuses. docs/reference/policies.md has all fields.`,
		Example: "  heddle policy hospital --federation tumour-registry > policy.yaml\n" +
			"  heddle policy explain policy.yaml",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: admission.Templates,
		RunE: func(c *cobra.Command, args []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), admission.Template(args[0], federation))
			return err
		},
	}
	c.Flags().StringVar(&federation, "federation", "my-federation", "name of the roster")
	c.AddCommand(&cobra.Command{
		Use:   "explain FILE",
		Short: "Print what a policy allows, refuses and leaves open",
		Long: `Print in plain words what a policy allows, refuses and leaves open. FILE is a policy, or site.yaml, whose
may_leave is one.`,
		Example: "  heddle policy explain site.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := admission.ReadPolicy(args[0])
			if err != nil {
				return cli.Invalid(err)
			}
			allows, refuses, open := p.Explain()
			for k, all := range [][]string{allows, refuses, open} {
				fmt.Fprintln(c.OutOrStdout(), []string{"Allowed:", "Refused:", "Left open:"}[k])
				for _, one := range all {
					fmt.Fprintf(c.OutOrStdout(), "  %s\n", one)
				}
			}
			return nil
		},
	})
	return c
}
