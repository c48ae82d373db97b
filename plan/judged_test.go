package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
)

// id is a peer ID.
const id = "12D3KooWAAbDtCKfTbXVMXFWTBZuDyEeRcGZxb8QmNcLTiBRLF8d"

// open is a policy that allows what a site may allow.
func open() admission.Policy {
	return admission.Policy{Federation: "x", Encoders: []string{"raw", "mlp", "pca", "classes"},
		LayerOutputs: []string{"hidden", "logits"}, Methods: []string{"class-means", "layer-wise", "full-batch"},
		MinMembers: 2, MinInSum: 1, FiguresBy: []string{"age"}}
}

// judgement is a plan that a changed policy refuses by one rule for one setting: without that line it is allowed.
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
	{"relays", "relays: [/ip4/10.0.0.9/tcp/1/p2p/" + id + "]", "relays: [/ip4/10.0.0.9/tcp/1/p2p/" + id + "]",
		"roster.relays", nil},
}

// TestEveryRule: each rule that the tag of a setting names refuses a plan for this setting, and no other rule does.
func TestEveryRule(t *testing.T) {
	for _, c := range judgements {
		s, _ := Lookup(read(t, c.plan, nil).Method, c.setting)
		if !slices.Contains(s.Rules, c.rule) {
			t.Errorf("%s has rules %v, must have %s", c.setting, s.Rules, c.rule)
		}
		policy, roster := open(), admission.Roster{Federation: "x", Serial: 1}
		if c.change != nil {
			c.change(&policy)
		}
		judge := func(text string) (rules []string) {
			p := *read(t, text, nil)
			p.Members = make([]Member, 3)
			err := errors.Join(p.Allowed(policy), roster.AllowsRelays(time.Now(), p.Relays, nil))
			for line := range strings.Lines(errorText(err)) {
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
		if got := judge(rest); len(got) > 0 {
			t.Errorf("%q: refused by %v, must be allowed", rest, got)
		}
	}
	tagged := []string{"policy.max_numbers", "policy.min_members"} // which no setting decides alone
	for _, s := range Settings("") {
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

// TestDeletedPrivacySettings: a plan with a setting of privacy that is no more is refused, and no other one is
// suggested.
func TestDeletedPrivacySettings(t *testing.T) {
	for _, text := range []string{"label_epsilon: 4", "colluding: 1", "clip_means: true", "least_in_sum: 3"} {
		_, err := Read(sections(""+text), nil, nil)
		name, _, _ := strings.Cut(text, ":")
		if got := errorText(err); !strings.Contains(got, "unknown field \""+name+"\"") {
			t.Errorf("%s: the error must be that the field is unknown (got %q)", text, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestStrangeTexts: what a plan says is shown at terminals, so that all texts have the alphabet of the roster.
func TestStrangeTexts(t *testing.T) {
	member := func(name, address string) string {
		return "members:\n- name: " + name + "\n  id: " + id + "\n  addresses: [" + address + "]\n"
	}
	const address = "/ip4/10.0.0.1/udp/4001/quic-v1"
	read(t, member("north", address), nil)
	for text, want := range map[string]string{
		member(`"no\e[2Jrth"`,
			address): `name must be 1 to 63 letters, digits and . _ - (got "no\x1b[2Jrth")`,
		member(`"north (verified)"`, address):     "name must be",
		member(strings.Repeat("n", 64), address):  "name must be",
		member(id, address):                       "could be taken for that peer",
		member("north", `"/ip4/1.2.3.4/tcp/1\r"`): "address must be a multiaddress",
		strings.Replace(member("n", address), id, `"12\e[A"`,
			1): `member 0: the ID must be one that heddle init prints (got "12\x1b[A")`,
		"relays: [\"/ip4/1.2.3.4/tcp/1/p2p/\\u202e\"]\n": "relays must be printable ASCII",
		"policy: \"\\e]0;x\\a\"\n":                       `policy must be printable ASCII (got "\x1b]0;x\a")`,
		member("north", address) +
			"- name: north\n  id: other\n": `members must have a name each (got "north" for number 0 and number 1)`,
		"seed: 1\n# " + strings.Repeat("x", 65<<10) + "\n": "at most 65536 bytes",
		"encoder: [&a [b, b], &b [*a, *a], &c [*b, *b]]\n": "must not have anchors",
	} {
		p, err := Read([]byte(text), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\a\r") {
			t.Errorf("%.80q: the error has an escape: %q", text, err)
		}
	}
}

// TestAdmittedRelays: a plan leads over no relay that the roster does not list, not even in a member's address.
func TestAdmittedRelays(t *testing.T) {
	const relay = "/ip4/10.0.0.9/tcp/1"
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r := admission.Roster{Federation: "x", Serial: 4, Members: []admission.Member{
		{Name: "north", ID: id, Role: admission.Trainer, Expires: "2099-12-31"},
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
		p := Plan{Members: []Member{{Name: "north", ID: id}}}
		if c.relay != "" {
			p.Relays = []string{c.relay}
		}
		if c.address != "" {
			p.Members[0].Addresses = []string{c.address}
		}
		if err := p.Admitted(r, now); !strings.Contains(errorText(err), c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for change, rule := range map[string]func(*Plan){
		"roster.name":    func(p *Plan) { p.Members[0].Name = "sooth" },
		"roster.unknown": func(p *Plan) { p.Members[0].ID = "12D3KooWother" },
		"roster.role":    func(p *Plan) { p.Members[0].ID = "12D3KooWpost" },
	} {
		p := Plan{Members: []Member{{Name: "north", ID: id}}}
		rule(&p)
		if err := p.Admitted(r, now); !strings.HasPrefix(errorText(err), change+": ") {
			t.Errorf("%v, must be by %s", err, change)
		}
	}
}
