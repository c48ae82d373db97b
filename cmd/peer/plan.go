package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
)

// agreement is a plan that the peers of a run on several machines share.
type agreement struct {
	*heddle.Plan
	text []byte // of the file that it was read from
}

// readPlan reads a plan that was agreed on: no flag changes it. An error names the file and, of the plan, every fault.
func readPlan(path string, warn func(string)) (*agreement, error) {
	plan, err := loadPlan("join", path, nil, nil, warn)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, badInput{err}
	}
	p := &agreement{plan, text}
	if err := p.CheckMembers(); err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", path, err)}
	}
	return p, nil
}

func newPlan() *cobra.Command {
	var config, out string
	var port int
	c := &cobra.Command{
		Use:   "plan NAME=ID[@HOST] ...",
		Short: "Write the plan of a run on several machines",
		Long: `Write the plan of a run on several machines: the settings and the members. The first member holds part-0, the next
part-1, and so on. Give the same file to all of them. HOST is an IP address or a name; a member without a host
only dials out.`,
		Example: `  peer plan --preset frugal --out plan.yaml north=12D3KooW...@10.0.0.1 south=12D3KooW...@10.0.0.2`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			plan, err := loadPlan("join", config, givenSettings(c.Flags()), nil, func(text string) { fmt.Fprintln(c.ErrOrStderr(), "peer:", text) })
			if err != nil {
				return err
			}
			p := &agreement{Plan: plan}
			if err := p.AddMembers(args, port); err != nil {
				return badInput{err}
			}
			if err := p.CheckMembers(); err != nil {
				return badInput{err}
			}
			text, err := p.MarshalYAML()
			if err != nil {
				return err
			}
			if out == "" {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			if err := writable(out); err != nil {
				return err
			}
			return writeWhole(out, func(w io.Writer) error { _, err := w.Write(text); return err })
		},
	}
	bindSettings(c.Flags(), "join")
	groupHelp(c)
	c.Flags().StringVar(&config, "config", "", "settings file (YAML); flags override it")
	c.Flags().StringVarP(&out, "out", "o", "", "file to write (default: standard output)")
	c.Flags().IntVar(&port, "port", 4001, "port of a host's first peer")
	return c
}
