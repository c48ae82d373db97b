package disclosure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/plan"
)

// memberID is a peer ID.
const memberID = "12D3KooWAAbDtCKfTbXVMXFWTBZuDyEeRcGZxb8QmNcLTiBRLF8d"

// open is a policy that allows what a site may allow.
func open() admission.Policy {
	return admission.Policy{Federation: "x", Encoders: []string{"raw", "mlp", "pca", "classes"},
		LayerOutputs: []string{"hidden", "logits"}, Methods: []string{"class-means", "layer-wise", "full-batch"},
		MinMembers: 2, MinInSum: 1, FiguresBy: []string{"age"}}
}

// judgement is a plan that a changed policy refuses by one rule for one setting. Without that line it is allowed.
type judgement struct {
	setting, plan, line, rule string
	change                    func(*admission.Policy)
}

// judgements has one of each setting and rule.
var judgements = []judgement{
	{"method", "method: full-batch", "method: full-batch", "policy.methods",
		func(p *admission.Policy) { p.Methods = []string{"class-means", "layer-wise"} }},
	{"encoder", "method: layer-wise\nencoder: raw", "encoder: raw", "policy.encoders",
		func(p *admission.Policy) { p.Encoders = []string{"pca:200", "classes"} }},
	{"layer_output", "method: layer-wise\nmodel: gcn\nlayer_output: logits", "layer_output: logits",
		"policy.layer_outputs", func(p *admission.Policy) { p.LayerOutputs = []string{"hidden"} }},
	{"layers", "method: layer-wise\nlayers: 3", "layers: 3", "policy.max_layers",
		func(p *admission.Policy) { p.MaxLayers = 2 }},
	{"hops", "hops: 7", "hops: 7", "policy.max_hops", func(p *admission.Policy) { p.MaxHops = 6 }},
	{"encoder", "method: layer-wise\nencoder: pca:300+classes", "encoder: pca:300+classes", "policy.encoders",
		func(p *admission.Policy) { p.Encoders = []string{"pca:200", "classes"} }},
	{"rounds", "method: layer-wise\nrounds: 201", "rounds: 201", "policy.max_rounds",
		func(p *admission.Policy) { p.MaxRounds = 200 }},
	{"class_rounds", "class_rounds: 7", "class_rounds: 7", "policy.max_rounds",
		func(p *admission.Policy) { p.MaxRounds = 6 }},
	{"pca_passes", "method: layer-wise\npca_passes: 2", "pca_passes: 2", "policy.max_pca_passes",
		func(p *admission.Policy) { p.MaxPasses = 1 }},
	{"leave_one_out", "class_target: labels\nleave_one_out: false", "leave_one_out: false", "policy.leave_one_out",
		func(p *admission.Policy) { p.LeaveOneOut = true }},
	{"class_target", "leave_one_out: auto\nclass_target: residual", "class_target: residual", "policy.leave_one_out",
		func(p *admission.Policy) { p.LeaveOneOut = true }},
	{"rows", "method: layer-wise\nmodel: gcn\nrows: int8", "rows: int8", "policy.rows",
		func(p *admission.Policy) { p.Rows = []string{"float32"} }},
	{"secure_sums", "method: layer-wise\nmodel: gcn\nsecure_sums: off", "secure_sums: off", "policy.min_members_in_sum",
		func(p *admission.Policy) { p.MinInSum = 3 }},
	{"epsilon", "epsilon: 8", "epsilon: 8", "policy.max_epsilon", func(p *admission.Policy) { p.MaxEpsilon = 4 }},
	{"delta", "epsilon: 4\ndelta: 0.01", "delta: 0.01", "policy.max_delta",
		func(p *admission.Policy) { p.MaxDelta = 1e-5 }},
	{"figures_by", "figures_by: age:40,65", "figures_by: age:40,65", "policy.figures_by",
		func(p *admission.Policy) { p.FiguresBy = []string{"sex", "a"} }},
	{"relays", "relays: [/ip4/10.0.0.9/tcp/1/p2p/" + memberID + "]",
		"relays: [/ip4/10.0.0.9/tcp/1/p2p/" + memberID + "]", "roster.relays", nil},
}

// TestEveryRule: each rule that the tag of a setting names refuses a plan for this setting, and no other rule does.
func TestEveryRule(t *testing.T) {
	for _, c := range judgements {
		s, _ := plan.Lookup(read(t, c.plan).Method, c.setting)
		if !slices.Contains(s.Rules, c.rule) {
			t.Errorf("%s has rules %v, must have %s", c.setting, s.Rules, c.rule)
		}
		policy, roster := open(), admission.Roster{Federation: "x", Serial: 1}
		if c.change != nil {
			c.change(&policy)
		}
		judge := func(text string) (rules []string) {
			p := read(t, text)
			err := errors.Join(policy.Check(judged(p)), roster.AllowsRelays(time.Now(), p.Relays, nil))
			if err == nil {
				return nil
			}
			for line := range strings.Lines(err.Error()) {
				rule, _, _ := strings.Cut(line, ":")
				rules = append(rules, rule)
			}
			return rules
		}
		if got := judge(c.plan); !slices.Equal(got, []string{c.rule}) {
			t.Errorf("%q: refused by %v, must be by %s", c.plan, got, c.rule)
		}
		rest := strings.Trim(strings.Replace(c.plan, c.line, "", 1), "\n")
		if c.setting == "class_target" {
			rest += "\nclass_target: labels"
		}
		if c.setting == "epsilon" {
			rest += "\nepsilon: 4"
		}
		if got := judge(strings.TrimSpace(rest)); len(got) > 0 {
			t.Errorf("%q: refused by %v, must be allowed", rest, got)
		}
	}
	tagged := []string{"policy.max_numbers", "policy.min_members"} // which no setting decides alone
	for _, s := range plan.Settings("") {
		for _, rule := range s.Rules {
			tagged = append(tagged, rule)
			if !slices.ContainsFunc(judgements,
				func(j judgement) bool { return j.setting == s.Name && j.rule == rule }) {
				t.Errorf("%s: no case shows that %s judges it", s.Name, rule)
			}
		}
	}
	strictest := admission.Policy{MinMembers: 9, LeaveOneOut: true, MaxLayers: 1, MaxHops: 1, MaxPasses: 1,
		MaxRounds: 1, MaxEpsilon: 1, MaxDelta: 1, MaxNumbers: 1}
	for line := range strings.Lines(strictest.Check(admission.Plan{Labels: true, Layers: 2, Hops: 2, Passes: 2,
		Rounds: 2, Delta: 2, Numbers: 2}).Error()) {
		if rule, _, _ := strings.Cut(line, ":"); !slices.Contains(tagged, rule) {
			t.Errorf("no setting says that %s judges it", rule)
		}
	}
}

// TestMembersInSum: a policy judges how many members' parts are added up before others see them.
func TestMembersInSum(t *testing.T) {
	for _, c := range []struct {
		sums          string
		members, want int
	}{{"auto", 2, 2}, {"auto", 3, 3}, {"auto", 64, 64}, {"on", 2, 2}, {"off", 3, 1}, {"off", 651, 1}} {
		p := plan.Defaults("", "")
		p.Federation().SecureSums, p.Members = c.sums, make([]plan.Member, c.members)
		if got := judged(p).InSum; got != c.want {
			t.Errorf("secure_sums %s of %d members: a policy judges %d members in a sum, must be %d", c.sums,
				c.members, got, c.want)
		}
	}
}

// TestAdmittedRelays: a plan leads over no relay that the roster does not list, not even in a member's address.
func TestAdmittedRelays(t *testing.T) {
	const relay = "/ip4/10.0.0.9/tcp/1"
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r := admission.Roster{Federation: "x", Serial: 4, Members: []admission.Member{
		{Name: "north", ID: memberID, Role: admission.Trainer, Expires: "2099-12-31"},
		{Name: "post", ID: "12D3KooWpost", Role: admission.Relay, Expires: "2099-12-31", Addresses: []string{relay}}}}
	for _, c := range []struct{ relay, address, want string }{
		{"", "", ""},
		{relay + "/p2p/12D3KooWpost", relay + "/p2p/12D3KooWpost/p2p-circuit", ""},
		{relay + "/p2p/12D3KooWother", "", "roster.relays: relay " + relay +
			"/p2p/12D3KooWother is not in serial 4 of x"},
		{"/ip4/10.0.0.8/tcp/1/p2p/12D3KooWpost", "", "roster.relays: "},
		{"", "/ip4/10.0.0.8/tcp/1/p2p/12D3KooWother/p2p-circuit",
			"roster.relays: relay /ip4/10.0.0.8/tcp/1/p2p/12D3KooWother is not"},
	} {
		p := plan.Plan{Members: []plan.Member{{Name: "north", ID: memberID}}}
		if c.relay != "" {
			p.Relays = []string{c.relay}
		}
		if c.address != "" {
			p.Members[0].Addresses = []string{c.address}
		}
		if err := Admitted(p, r, now); !strings.Contains(fmt.Sprint(err), c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for change, rule := range map[string]func(*plan.Plan){
		"roster.name":    func(p *plan.Plan) { p.Members[0].Name = "sooth" },
		"roster.unknown": func(p *plan.Plan) { p.Members[0].ID = "12D3KooWother" },
		"roster.role":    func(p *plan.Plan) { p.Members[0].ID = "12D3KooWpost" },
	} {
		p := plan.Plan{Members: []plan.Member{{Name: "north", ID: memberID}}}
		rule(&p)
		if err := Admitted(p, r, now); !strings.HasPrefix(fmt.Sprint(err), change+": ") {
			t.Errorf("%v, must be by %s", err, change)
		}
	}
}
