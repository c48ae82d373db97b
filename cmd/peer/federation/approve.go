package federation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
)

func newApprove() *cobra.Command {
	var plan, policy, key, site, until, out string
	c := &cobra.Command{
		Use:   "approve --plan plan.yaml --policy policy.yaml",
		Short: "Approve a plan for this site",
		Long: `Show a plan, check it against this site's policy, and sign this site's approval, which peer join --approval
requires. The approval covers exactly this file: any change needs a new approval.

If the policy names approvers, each of them runs this command with their own key and --site. One file collects
their signatures.`,
		Example: "  peer approve --plan plan.yaml --policy policy.yaml\n  peer approve --plan plan.yaml --policy policy.yaml --identity officer.key --site 12D3KooW...",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			warn := cli.NewWatch(c.ErrOrStderr(), false).Warn
			p, text, err := cli.ReadPlan(plan, warn)
			if err != nil {
				return err
			}
			fingerprint := admission.PlanFingerprint(text)
			rules, warnings, err := admission.ReadPolicy(policy)
			if err != nil {
				return cli.Invalid(err)
			}
			for _, text := range warnings {
				warn(text)
			}
			if err := rules.Check(p.Judged()); err != nil {
				return cli.Invalidf("%s is not allowed by %s: %w", plan, policy, err)
			}
			id, err := cli.LoadKey(key)
			if err != nil {
				return err
			}
			if site == "" {
				site = id.PeerID()
			}
			if _, err := p.Rank(site); err != nil {
				return fmt.Errorf("%s: %w", plan, err)
			}
			a := admission.Unsigned(admission.Approval{Federation: rules.Federation, Plan: fingerprint, Site: site,
				Expires: admission.Date(until)})
			// Signatures of other approvers under the same approval stay.
			if held, err := admission.ReadFile[admission.Approval](out); err == nil && held.Body == a.Body {
				a = held
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return cli.Invalid(err)
			}
			if err := a.Sign(id.PeerID(), id.Sign); err != nil {
				return cli.Invalid(err)
			}
			if err := cli.Writable(out); err != nil {
				return err
			}
			if err := admission.WriteFile(out, a); err != nil {
				return cli.Invalid(err)
			}
			w := c.OutOrStdout()
			describePlan(w, p, fingerprint)
			fmt.Fprintf(w, "approved     for %s until %s, signed by %d, in %s\n", rules.Federation, until, len(a.Signatures),
				out)
			if err := rules.Approved(a, fingerprint, site, time.Now()); err != nil {
				fmt.Fprintf(w, "not enough yet: %v\n", err)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&plan, "plan", "", "plan to approve")
	f.StringVar(&policy, "policy", "", "policy of this site")
	f.StringVar(&key, "identity", cli.DefaultIdentity(), "key file of the approver")
	f.StringVar(&site, "site", "", "ID of the peer that may train (default: that of the key)")
	f.StringVar(&until, "until", string(admission.Day(time.Now().AddDate(0, 3, 0))),
		"last day on which training may begin")
	f.StringVarP(&out, "out", "o", "approval.json", "file to write, or to add a signature to")
	cli.Required(c, "plan", "policy")
	return c
}

// describePlan prints what a person should know before approving.
func describePlan(w io.Writer, p *heddle.Plan, fingerprint string) {
	fmt.Fprintf(w, "plan         %s\n", fingerprint)
	fmt.Fprintf(w, "model        %s, %d layers, %d hops, hidden width %d\n", p.Model, p.Layers, p.Hops, p.Hidden)
	fmt.Fprintf(w, "travels      encoder %s, layer output %s\n", p.Encoder, p.LayerOutput)
	fmt.Fprintf(w, "solver       %s, at most %d rounds of a layer\n", p.Solver, p.Rounds)
	for _, m := range p.Members {
		fmt.Fprintf(w, "peer         %s  %s  %v\n", m.Name, m.ID, m.Addresses)
	}
}
