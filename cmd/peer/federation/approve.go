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

// approving has the flags of peer approve.
type approving struct{ plan, policy, key, site, until, out string }

func newApprove() *cobra.Command {
	var a approving
	c := &cobra.Command{
		Use:   "approve --plan plan.yaml --policy policy.yaml",
		Short: "Approve a plan for this site",
		Long: `Show a plan, check it against this site's policy, and sign this site's approval, which peer join --approval
requires. The approval covers exactly this file: any change needs a new approval.

If the policy names approvers, each of them runs this command with their own key and --site. One file collects
their signatures.`,
		Example: "  peer approve --plan plan.yaml --policy policy.yaml\n  peer approve --plan plan.yaml --policy policy.yaml --identity officer.key --site 12D3KooW...",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.run(cli.NewWatch(c.ErrOrStderr(), false), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&a.plan, "plan", "", "plan to approve")
	f.StringVar(&a.policy, "policy", "", "policy of this site")
	f.StringVar(&a.key, "identity", cli.DefaultIdentity(), "key file of the approver")
	f.StringVar(&a.site, "site", "", "ID of the peer that may train (default: that of the key)")
	f.StringVar(&a.until, "until", string(admission.Day(time.Now().AddDate(0, 3, 0))),
		"last day on which training may begin")
	f.StringVarP(&a.out, "out", "o", "approval.json", "file to write, or to add a signature to")
	cli.Required(c, "plan", "policy")
	return c
}

func (a approving) run(w *cli.Watch, stdout io.Writer) error {
	p, text, err := cli.ReadPlan(a.plan, w.Warn)
	if err != nil {
		return err
	}
	fingerprint := admission.PlanFingerprint(text)
	rules, warnings, err := admission.ReadPolicy(a.policy)
	if err != nil {
		return cli.Invalid(err)
	}
	for _, text := range warnings {
		w.Warn(text)
	}
	if err := p.Allowed(rules); err != nil {
		return cli.Invalidf("%s is not allowed by %s: %w", a.plan, a.policy, err)
	}
	id, err := cli.LoadKey(a.key)
	if err != nil {
		return err
	}
	if a.site == "" {
		a.site = id.PeerID()
	}
	if _, err := p.Rank(a.site); err != nil {
		return cli.Invalidf("%s: %w", a.plan, err)
	}
	signed := admission.Unsigned(admission.Approval{Federation: rules.Federation, Plan: fingerprint, Site: a.site,
		Expires: admission.Date(a.until)})
	// Signatures of other approvers under the same approval stay.
	if held, err := admission.ReadFile[admission.Approval](a.out); err == nil && held.Body == signed.Body {
		signed = held
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Invalid(err)
	}
	if err := signed.Sign(id.PeerID(), id.Sign); err != nil {
		return cli.Invalid(err)
	}
	if err := cli.Writable(a.out); err != nil {
		return err
	}
	if err := admission.WriteFile(a.out, signed); err != nil {
		return cli.Invalid(err)
	}
	describePlan(stdout, p, rules, fingerprint)
	fmt.Fprintf(stdout, "approved     for %s until %s, signed by %d, in %s\n",
		rules.Federation, a.until, len(signed.Signatures), a.out)
	if err := rules.Approved(signed, fingerprint, a.site, time.Now()); err != nil {
		fmt.Fprintf(stdout, "not enough yet: %v\n", err)
	}
	return nil
}

// describePlan prints what a person should know before approving.
func describePlan(w io.Writer, p *heddle.Plan, rules admission.Policy, fingerprint string) {
	fmt.Fprintf(w, "plan         %s\n", fingerprint)
	if all := p.Candidates(); all != nil {
		fmt.Fprintf(w, "tries        the plans below, for which all peers together send at most %g MB\n", p.Budget)
		for _, c := range all {
			if err := c.Plan.Allowed(rules); err != nil {
				fmt.Fprintf(w, "not          %s: %v\n", c.Name, err)
				continue
			}
			fmt.Fprintf(w, "or           %s\n", c.Name)
			describeRun(w, c.Plan)
		}
	} else {
		describeRun(w, *p)
	}
	for _, m := range p.Members {
		fmt.Fprintf(w, "peer         %s  %s  %v\n", m.Name, m.ID, m.Addresses)
	}
}

// describeRun prints what a run by p computes and sends.
func describeRun(w io.Writer, p heddle.Plan) {
	judged := p.Judged()
	if p.Encoder.Kind == "classes" {
		fmt.Fprintf(w, "model        rounds of class means, %d hops\n", p.Hops)
		fmt.Fprintf(w, "travels      encoder %s: sums over all sites (%s), rows of one number a class (%s)\n",
			p.Encoder, p.Sums, p.Rows)
	} else {
		fmt.Fprintf(w, "model        %s, %d layers, %d hops, hidden width %d\n", p.Model, p.Layers, p.Hops, p.Hidden)
		fmt.Fprintf(w, "travels      encoder %s, layer output %s\n", p.Encoder, p.LayerOutput)
	}
	sums := p.SumTerms(len(p.Members))
	fmt.Fprintf(w, "sums         %s\n", sums.Trust)
	if sums.Secure {
		fmt.Fprintf(w, "             %s; keys by %s\n", sums.Form, sums.Keys)
	}
	if p.Epsilon > 0 {
		fmt.Fprintf(w, "privacy      of edges, ε %g at δ %g\n", p.Epsilon, p.Delta)
	}
	fmt.Fprintf(w, "solver       %s, at most %d rounds of a layer\n", judged.Solver, judged.Rounds)
}
