package federation

import (
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/plan"
)

func newPlan() *cobra.Command {
	var config, out, federation string
	var port, leafPort int
	c := &cobra.Command{
		Use:   "plan [NAME=ID[@HOST[:PORT]] ...]",
		Short: "Write the plan of a run on several machines",
		Long: `Write the plan of a run on several machines: the settings and the members. The first member has
part-0, the next part-1, and so on. Give the same file to all of them. HOST is an IP address or a name, an IPv6
address before a port in brackets: [2001:db8::1]:4001. A member without a host only dials out. Without members the
plan is for peers that a scheduler starts (join --secret). With --phones the members that have a host collect shares
of phones, and must come first.

With --federation the file is also the roster of a federation: the members sign it (heddle roster sign), more than half
of them must, and membership ends after a year.`,
		Example: `  heddle plan --out plan.yaml north=12D3KooW...@10.0.0.1 south=12D3KooW...@10.0.0.2
  heddle plan --method full-batch --out plan.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			given := cli.GivenSettings(c.Flags())
			if _, err := cli.TakeInitial(given); err != nil {
				return err
			}
			p, _, err := cli.LoadPlan("join", config, given, nil)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				err := p.AddMembers(args, port)
				if err == nil && p.ClassMeans.Leaves > 0 {
					err = p.CollectLeaves(leafPort)
				}
				if err == nil {
					err = disclosure.CheckMembers(*p)
				}
				if err != nil {
					return cli.Invalid(err)
				}
			}
			text, err := p.MarshalYAML()
			if err != nil {
				return err
			}
			if federation != "" && (out == "" || len(args) == 0) {
				return cli.Invalidf("--federation must be given with members and --out FILE, to which signatures come")
			}
			if out == "" {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			if err := cli.Writable(out); err != nil {
				return err
			}
			err = cli.WriteText(c.OutOrStdout(), out, string(text))
			if federation == "" || err != nil {
				return err
			}
			return saveDraft(c.OutOrStdout(), out, founded(federation, p.Members))
		},
	}
	cli.BindSettings(c.Flags(), "join", func(s plan.Setting) bool { return !s.Local || s.Name == "relays" })
	c.Flags().StringVar(&config, "config", "", "settings file (YAML), which flags override")
	cli.Reads(c.Flags(), "config")
	c.Flags().StringVar(&federation, "federation", "", "name of a federation of the members, who sign the file")
	c.Flags().StringVarP(&out, "out", "o", "", "file to write (default: standard output)")
	c.Flags().IntVar(&port, "port", firstPort, "port of a host's first peer without one")
	c.Flags().IntVar(&leafPort, "leaf-port", 4101, "port for phones of a host's first peer, with --phones")
	cli.ShortHelp(c, "method", "config", "seed", "seeds", "task", "metric", "epsilon", "rows", "phones",
		"phone-when", "relay", "port", "federation", "out")
	return c
}
