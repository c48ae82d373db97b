package federation

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// checking has the flags that check a plan for a site, and what they name.
type checking struct {
	plan, policy, shard, trusted, model string

	read  heddle.Plan
	text  []byte            // of the plan, or of plan and model
	asked *nn.Model         // with which the members predict together (nil = the plan is to train)
	card  modelfile.Card    // of asked
	print [32]byte          // its fingerprint
	rules *admission.Policy // (nil = none was given)
	rank  int               // of the shard
}

func (k *checking) bind(f *pflag.FlagSet, plan string) {
	f.StringVar(&k.plan, "plan", "", plan)
	f.StringVar(&k.policy, "policy", "", "policy of this site")
	f.StringVar(&k.shard, "shard", "", "this site's part, or several with commas between")
	f.StringVar(&k.trusted, "trusted", "", "file of the roster in force (default: next to the key)")
	f.StringVar(&k.model, "model", "", "model file, if the plan is to predict, not to train")
	cli.Reads(f, "plan", "policy", "shard", "model")
}

func newCheck() *cobra.Command {
	var k checking
	c := &cobra.Command{
		Use:   "check --plan plan.yaml --shard parts/part-0",
		Short: "Show what a plan sends from this site",
		Long: `Show, on one page, what leaves this site in a run by a plan: rows of nodes and parts of sums, how many
numbers of each node, to whom, and how many bytes at most; what our own attacks recover of its rows; then all settings
of the plan. With --policy also say whether this site's policy and the roster in force allow it. heddle approve shows
the same page before it asks for a yes. With --model the page is of heddle predict --plan: what leaves when all
members predict by that model.`,
		Example: "  heddle check --plan plan.yaml --shard parts/part-0 --policy policy.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			return k.showPage(c.Context(), c.OutOrStdout())
		},
	}
	k.bind(c.Flags(), "plan to check")
	cli.Required(c, "plan", "shard")
	return c
}

// showPage prints the page. The error lists what this site does not allow.
func (k *checking) showPage(ctx context.Context, stdout io.Writer) (err error) {
	if err := k.load(); err != nil {
		return err
	}
	own, closer, err := cli.ReadParts(k.shard, len(k.read.Members))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	k.rank = own.Rank
	p, err := k.page(own)
	if err != nil {
		return err
	}
	ledger := dp.Ledger{Path: gate.Files{Trusted: k.trusted, TrustedDir: cli.TrustedDir()}.Runs(own),
		Data: shard.Edges(own)}
	if p.before, err = ledger.Spent(); err != nil {
		return err
	}
	refused := k.judge(p, time.Now())
	if p.model == "" { // our attacks are on rows of training
		if p.attacked, err = p.Attack(ctx, own, attackTime); err != nil {
			return err
		}
	}
	p.print(stdout)
	return refused
}

// load reads plan, model and policy.
func (k *checking) load() error {
	p, text, err := cli.ReadPlan(k.plan)
	if err != nil {
		return err
	}
	k.read, k.text = *p, text
	if k.model != "" {
		if k.asked, k.card, err = modelfile.Read(k.model); err != nil {
			return cli.Invalid(err)
		}
		if k.print, err = modelfile.Fingerprint(k.asked, k.card); err != nil {
			return cli.Invalid(err)
		}
		k.text = disclosure.InferenceText(k.text, k.print)
	}
	if k.policy == "" {
		return nil
	}
	rules, err := admission.ReadPolicy(k.policy)
	if err != nil {
		return cli.Invalid(err)
	}
	rules = rules.In(admission.Federation(text)) // may_leave of site.yaml may name none
	k.rules = &rules
	return nil
}

// page returns the page for the site that has own.
func (k *checking) page(own *shard.Shard) (*page, error) {
	if n := len(k.read.Members); own.Parts != n {
		return nil, cli.Invalidf("%s is part %d of %d, and %s has %d members", k.shard, own.Rank, own.Parts, k.plan, n)
	}
	p := &page{own: own, fingerprint: admission.PlanFingerprint(k.text)}
	var err error
	if k.asked != nil {
		p.model = hex.EncodeToString(k.print[:])
		if p.Disclosure, err = disclosure.OfModel(k.read, k.asked, k.card, own); err != nil {
			return nil, cli.Invalidf("%s: %w", k.model, err)
		}
		return p, nil
	}
	if err = disclosure.CheckSite(k.read, own, own.Rank); err != nil {
		return nil, fmt.Errorf("%s: %w", k.plan, err)
	}
	if p.Disclosure, err = disclosure.Of(k.read, own); err != nil {
		return nil, cli.Invalidf("%s: %w", k.plan, err)
	}
	return p, nil
}

// judge adds to p the verdicts of policy and roster. The error lists what they do not allow.
func (k *checking) judge(p *page, now time.Time) error {
	if k.rules == nil {
		p.verdicts = append(p.verdicts, [2]string{"policy", "none was given (--policy)"})
		return nil
	}
	if p.model == "" {
		p.figures = k.rules.SiteFigures
	}
	say := func(what, by, text string, err error) error {
		if err != nil {
			text, err = by+" does not allow it", cli.Invalidf("%s is not allowed by %s: %w", k.plan, by, err)
		}
		p.verdicts = append(p.verdicts, [2]string{what, text})
		return err
	}
	refused := say("policy", k.policy, k.policy+" allows it", p.Judge(*k.rules))
	file := inForce(k.trusted, k.rules.Federation)
	held, err := file.Read()
	switch {
	case errors.Is(err, admission.ErrUnknownFederation):
		none := admission.Roster{Federation: k.rules.Federation}
		text := "none of " + none.Federation + " is in force here: heddle join checks the members"
		err = say("roster", "the roster", text, none.AllowsRelays(now, k.read.Relays, k.read.Addresses()))
	case err != nil:
		err = cli.Invalid(err)
	default:
		by := fmt.Sprintf("serial %d of %s", held.Body.Serial, held.Body.Federation)
		err = say("roster", by, by+" lists all members, and all relays", disclosure.Admitted(k.read, held.Body, now))
	}
	return errors.Join(refused, err)
}
