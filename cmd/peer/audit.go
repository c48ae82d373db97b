package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/admission"
)

func newAudit() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Check and read a site's log of what it took part in",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newAuditVerify(), newAuditShow())
	return c
}

func newAuditVerify() *cobra.Command {
	var heads []string
	c := &cobra.Command{
		Use:   "verify LOG",
		Short: "Find out whether a log was changed or cut off",
		Long: `Read a log line by line: each must follow from the one before, and the end must be the one that LOG.head
knows. Who can write both can forge both; a head that was kept elsewhere, as each run prints it at its
end, shows that, too: give it with --head.`,
		Example: "  peer audit verify audit.jsonl\n  peer audit verify audit.jsonl --head 17:9f86d0...",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var known []admission.Head
			for _, s := range heads {
				h, err := admission.ParseHead(s)
				if err != nil {
					return badInput{err}
				}
				known = append(known, h)
			}
			head, err := admission.VerifyLog(args[0], nil, known...)
			if err != nil {
				return badInput{err}
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %d records, unchanged; head %s\n", args[0], head.Seq, head)
			return nil
		},
	}
	c.Flags().StringSliceVar(&heads, "head", nil, "an end that the log had once, SEQ:HASH; may be repeated")
	return c
}

func newAuditShow() *cobra.Command {
	var event string
	c := &cobra.Command{
		Use:   "show LOG",
		Short: "Print a log for people, checking it on the way",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, err := admission.VerifyLog(args[0], func(r admission.Record) error {
				if event != "" && string(r.Event) != event {
					return nil
				}
				_, err := fmt.Fprintln(c.OutOrStdout(), say(r))
				return err
			})
			if err != nil {
				return badInput{err}
			}
			return nil
		},
	}
	c.Flags().StringVar(&event, "event", "", "print only these: began, connected, left, refused, lost, ended or repaired")
	return c
}

// say writes a record as one line.
func say(r admission.Record) string {
	parts := []string{fmt.Sprintf("%d  %s  %s", r.Seq, r.Time, r.Event)}
	add := func(some bool, format string, args ...any) {
		if some {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.Name != "", "%s", r.Name)
	add(r.Peer != "", "%s", r.Peer)
	add(r.Federation != "", "%s serial %d", r.Federation, r.Roster)
	add(r.Plan != "", "plan %.16s…", r.Plan)
	add(r.Stage != "", "%s, round %d", r.Stage, r.Round)
	add(r.Door != "", "%d bytes by %s", r.Bytes, r.Door)
	add(r.Rows > 0, "%d rows", r.Rows)
	add(r.Rule != "", "%s:", r.Rule)
	add(r.Text != "", "%q", r.Text)
	return strings.Join(parts, "  ")
}
