package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/internal/yamltext"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
)

// SessionOf returns what a meeting without training needs of s.
func SessionOf(s heddle.Site) session.Site {
	return session.Site{Identity: s.Identity, Shard: s.Shard, State: s.State, Network: s.Network, Wait: s.Wait,
		Gate: s.Gate, OnEvent: s.OnEvent}
}

// LoadPlan makes a plan for a command, train or join, from the file at path, if there is one, and the settings that
// flags gave, by name. Keys of the file that are not settings go to rest. All faults are reported at once. If train is
// to learn links, and nothing sets a method, it is full-batch. It also returns the text of the file. The class_weights
// of a flag may be a file of them.
func LoadPlan(command, path string, given map[string]string, rest any) (p *heddle.Plan, text []byte, err error) {
	if path != "" {
		if text, err = disk.ReadStart(path, yamltext.MaxLen); err != nil {
			return nil, nil, Invalid(err)
		}
	}
	if file := given["class_weights"]; file != "" && file != "balanced" && !strings.Contains(file, "=") {
		weights, err := readClassWeights(file)
		if err != nil {
			return nil, nil, Invalid(err)
		}
		given["class_weights"] = weights
	}
	more := given
	if command == "train" && strings.HasPrefix(value(text, given, "task"), "links") && value(text, given,
		"method") == "" {
		// All peers are of one machine, which may send rows in every epoch.
		more = map[string]string{"method": plan.FullBatch}
		maps.Copy(more, given)
	}
	p, err = heddle.ReadPlan(text, more, rest)
	inFile := path != "" && (err != nil || len(given) == 0)
	if err == nil {
		err = errors.Join(p.Only(command), p.Validate())
	}
	if err != nil && inFile {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return p, text, Invalid(err)
}

// value returns a setting that was given or, otherwise, its value in the text of a plan (empty = it is in neither).
func value(text []byte, given map[string]string, name string) string {
	if text, ok := given[name]; ok {
		return text
	}
	pairs, _ := yamltext.Pairs(text) // ReadPlan reports the fault
	for _, pair := range pairs {
		if pair.Key.String() == name {
			return pair.Value.String()
		}
	}
	return ""
}

// ReadPlan reads a plan that several sites agreed on, which flags do not change, and returns its
// text, too. An error names the file and all faults.
func ReadPlan(path string) (*heddle.Plan, []byte, error) { return readPlan(path, nil) }

// readPlan is ReadPlan with settings of this site.
func readPlan(path string, given map[string]string) (*heddle.Plan, []byte, error) {
	p, text, err := LoadPlan("join", path, given, &admission.FederationKeys{})
	if err != nil {
		return nil, nil, err
	}
	approved := admission.PlanText(text)
	if end, err := yamltext.Pairs(text[len(approved):]); err != nil || len(end) > 1 {
		return nil, nil, Invalidf("%s: signatures must be the last key, because a site approves only what is before "+
			"them (got %d keys from there on)", path, len(end))
	}
	if err := disclosure.CheckMembers(*p); err != nil {
		return nil, nil, Invalidf("%s: %w", path, err)
	}
	return p, approved, nil
}

// SiteFlags are a site's place in a run on several machines, as flags give it.
type SiteFlags struct {
	Plan     string            // file
	Identity string            // file of this peer's key
	Given    map[string]string // settings of this site by name, as flags give them
	Site     heddle.Site
}

// Bind adds the flags of a site. The help of --plan and --wait depends on the command.
func (s *SiteFlags) Bind(f *pflag.FlagSet, plan, wait string) {
	f.StringVar(&s.Plan, "plan", "", plan)
	f.StringVar(&s.Identity, "identity", DefaultIdentity(), "key file of this peer, made on first use")
	f.StringSliceVar(&s.Site.Network.Listen, "listen", nil, "multiaddresses to listen on (default: the plan's)")
	f.DurationVar(&s.Site.Wait, "wait", 10*time.Minute, wait)
	Reads(f, "plan")
}

// BindGate adds the flags of what a site requires before it takes part in a run.
func (s *SiteFlags) BindGate(f *pflag.FlagSet) {
	g := &s.Site.Gate
	f.StringVar(&g.Roster, "roster", "", "roster of the federation, with --policy and --approval")
	f.StringVar(&g.Trusted, "trusted", "", "file of the roster in force (default: next to the key)")
	f.StringVar(&g.Policy, "policy", "", "policy of this site")
	f.StringVar(&g.Approval, "approval", "", "approval of the plan by this site")
	Reads(f, "roster", "policy", "approval")
	f.StringVar(&g.Audit, "audit", "", "log file of runs and of what left this peer")
	g.TrustedDir = TrustedDir()
}

// Sit reads the plan and this peer's key, and returns the plan and the peer's rank in it.
func (s *SiteFlags) Sit(w *Watch) (*heddle.Plan, int, error) {
	return s.SitAs(w, func(*heddle.Plan) (identity.Identity, error) { return LoadOrMakeKey(s.Identity) })
}

// SitAs is Sit of a peer whose key identify returns; it may add members to the plan.
func (s *SiteFlags) SitAs(w *Watch, identify func(*heddle.Plan) (identity.Identity, error)) (*heddle.Plan, int, error) {
	p, text, err := readPlan(s.Plan, s.Given)
	if err != nil {
		return nil, 0, err
	}
	if s.Site.Identity, err = identify(p); err != nil {
		return nil, 0, err
	}
	if _, err = netsim.ParseLink(s.Site.Network.Link, len(p.Members)); err != nil {
		return nil, 0, err
	}
	rank, err := p.Rank(s.Site.Identity.PeerID())
	if err != nil {
		return nil, 0, Invalidf("%s: %w", s.Plan, err)
	}
	s.Site.Gate.PlanText, s.Site.OnEvent = text, w.Event
	return p, rank, nil
}

// BindLedger adds the flags of what runs may spend of a data set's privacy.
func BindLedger(f *pflag.FlagSet, l *gate.Ledger) {
	f.StringVar(&l.Path, "privacy-ledger", "", "log file of the privacy that runs spent on this data set")
	f.TextVar((*budget)(l), "privacy-budget", &budget{}, "limit for all runs in the ledger, as epsilon,delta")
}

// budget is the flag of a ledger's limit.
type budget gate.Ledger

// MarshalText implements encoding.TextMarshaler.
func (b *budget) MarshalText() ([]byte, error) {
	return dp.Guarantee{Epsilon: b.Epsilon, Delta: b.Delta}.MarshalText()
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *budget) UnmarshalText(text []byte) error {
	var of dp.Guarantee
	err := of.UnmarshalText(text)
	b.Epsilon, b.Delta = of.Epsilon, of.Delta
	return err
}

// printLedger prints what the runs so far have spent of the edges of parts, if there is a ledger.
func printLedger(w io.Writer, of gate.Ledger, parts ...*shard.Shard) error {
	if of.Path == "" {
		return nil
	}
	l := dp.Ledger{Path: of.Path, Data: shard.Edges(parts...)}
	l.Budget = dp.Guarantee{Epsilon: of.Epsilon, Delta: of.Delta}
	spent, err := l.Spent()
	if err != nil {
		return err
	}
	delta, budget := cmp.Or(l.Budget.Delta, dp.UsualDelta), ""
	if l.Budget.Epsilon > 0 {
		budget = fmt.Sprintf(" of %g", l.Budget.Epsilon)
	}
	if spent.Entries > 0 {
		fmt.Fprintf(w, "ledger: %s, edges: %d runs have spent ε %.3g at δ %g%s\n", l.Path, spent.Entries,
			spent.Epsilon(delta), delta, budget)
	}
	return nil
}
