package federation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// approving has the flags of heddle approve.
type approving struct {
	checking
	key, site, until, out string
	yes                   bool
}

func newApprove() *cobra.Command {
	var a approving
	c := &cobra.Command{
		Use:   "approve --plan plan.yaml --policy policy.yaml --shard parts/part-0",
		Short: "Approve a plan for this site",
		Long: `Show what a plan sends from this site (heddle check), check it against this site's policy and the
roster in force, ask for a yes, and sign this site's approval, which heddle join --approval requires. The approval
covers exactly this file: any change needs a new approval. With several runs (heddle plan --seeds) it covers all of
them.

If the policy names approvers, each of them runs this command with their own key and --site. One file collects their
signatures.`,
		Example: "  heddle approve --plan plan.yaml --policy policy.yaml --shard parts/part-0\n" +
			"  heddle approve --plan plan.yaml --policy policy.yaml --shard parts/part-0 --identity officer.key " +
			"--site 12D3KooW...",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.approve(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
	f := c.Flags()
	a.bind(f, "plan to approve")
	f.StringVar(&a.key, "identity", cli.DefaultIdentity(), "key file of the approver")
	f.StringVar(&a.site, "site", "", "ID of the peer that may train (default: the key's)")
	f.StringVar(&a.until, "until", string(admission.Day(time.Now().AddDate(0, 3, 0))),
		"last day on which training may begin")
	f.StringVarP(&a.out, "out", "o", "approval.json", "file to write, or to add a signature to")
	f.BoolVar(&a.yes, "yes", false, "approve without asking, for scripts")
	cli.Required(c, "plan", "policy", "shard")
	return c
}

func (a *approving) approve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if err := a.showPage(ctx, stdout); err != nil {
		return err
	}
	id, err := cli.LoadKey(a.key)
	if err != nil {
		return err
	}
	if a.site == "" {
		a.site = id.PeerID()
	}
	rank, err := a.read.Rank(a.site)
	if err != nil {
		return cli.Invalidf("%s: %w", a.plan, err)
	}
	if rank != a.rank {
		return cli.Invalidf("%s is part %d, and %s is member %d of %s", a.shard, a.rank, a.site, rank, a.plan)
	}
	signed := admission.Unsigned(admission.Approval{Federation: a.rules.Federation,
		Plan: admission.PlanFingerprint(a.text),
		Site: a.site, Expires: admission.Date(a.until)})
	// Signatures of other approvers under the same approval stay.
	if held, err := admission.ReadFile[admission.Approval](a.out); err == nil && held.Body == signed.Body {
		signed = held
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Invalid(err)
	}
	if err := a.confirm(ctx, stdin, stdout); err != nil {
		return err
	}
	if err := signed.Sign(id.PeerID(), id.Sign); err != nil {
		return cli.Invalid(err)
	}
	if err := cli.WritableDir(filepath.Dir(a.out)); err != nil {
		return err
	}
	if err := admission.WriteFile(a.out, signed); err != nil {
		return cli.Invalid(err)
	}
	fmt.Fprintf(stdout, "approved     for %s until %s, signed by %d, in %s\n",
		a.rules.Federation, a.until, len(signed.Signatures), a.out)
	if err := a.rules.Approved(signed, signed.Body.Plan, a.site, time.Now()); err != nil {
		fmt.Fprintf(stdout, "not enough yet: %v\n", err)
	}
	return nil
}

// confirm asks for a yes, unless the flags gave it.
func (a *approving) confirm(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if a.yes {
		return nil
	}
	what := "this plan"
	if text := seeds(a.read); text != "" {
		what += " (runs: " + text + ")"
	}
	fmt.Fprintf(stdout, "\nApprove %s for %s until %s? [y/N] ", what, a.read.Members[a.rank].Name, a.until)
	answered := make(chan string, 1)
	go func() { // a read from a terminal cannot be interrupted
		answer, _ := bufio.NewReader(stdin).ReadString('\n') // an answer that cannot be read is a no
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("not approved, and nothing is signed: answer y, or give --yes where nobody can answer")
	}
}
