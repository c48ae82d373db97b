package federation

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/chain"
	"github.com/heddle-gnn/heddle/internal/cli"
)

func newAudit() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Check and read this site's audit log",
	}
	c.AddCommand(newAuditVerify(), newAuditShow())
	return c
}

func newAuditVerify() *cobra.Command {
	var heads []string
	c := &cobra.Command{
		Use:   "verify LOG",
		Short: "Check whether a log was changed or truncated",
		Long: `Check a log line by line: each line must hold the hash of the previous one, and the last line must
match LOG.head. Whoever can write both files can forge both. A head that was kept elsewhere (each run prints one at
its end) detects that: give it with --head.`,
		Example: "  heddle audit verify audit.jsonl\n  heddle audit verify audit.jsonl --head 17:9f86d0...",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var known []chain.Head
			for _, s := range heads {
				h, err := chain.ParseHead(s)
				if err != nil {
					return cli.Invalid(err)
				}
				known = append(known, h)
			}
			head, err := admission.VerifyLog(args[0], nil, known...)
			if err != nil {
				return cli.Invalid(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %d records, unchanged; head %s\n", args[0], head.Seq, head)
			return nil
		},
	}
	c.Flags().StringSliceVar(&heads, "head", nil, "earlier end of the log, SEQ:HASH (may be repeated)")
	return c
}

func newAuditShow() *cobra.Command {
	var event string
	c := &cobra.Command{
		Use:   "show LOG",
		Short: "Print a log in readable form and check it",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, err := admission.VerifyLog(args[0], func(r admission.Record) error {
				if event != "" && string(r.Event) != event {
					return nil
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", r.Time, AuditLine(r))
				return err
			})
			return cli.Invalid(err)
		},
	}
	c.Flags().StringVar(&event, "event", "", "kind of records to print (default: all)")
	return c
}

// AuditLine returns a record, without its time, as a line to read.
func AuditLine(r admission.Record) string {
	parts := []string{fmt.Sprintf("%d: %s", r.Seq, r.Event)}
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
