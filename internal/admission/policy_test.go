package admission

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

const policyFile = `federation: tumour-registry
methods: [class-means, layer-wise]
encoders: ["pca:64", mlp]
layer_outputs: [logits]
min_members: 3
max_rounds: 200
max_bytes: 100000
max_rate: 4096
hours: ["20:00-06:30", "12:00-13:00"]
rows: [int8, int4]
leave_one_out: true
max_layers: 2
max_hops: 3
max_pca_passes: 1
max_numbers: 2
max_epsilon: 4
max_delta: 0.001
`

func policy(t *testing.T) Policy {
	t.Helper()
	p, err := parsePolicy([]byte(policyFile))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const plan = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func consent() Approval {
	return Approval{Federation: "tumour-registry", Plan: plan, Site: north.id, Expires: "2026-12-31"}
}

// A list, which may be empty, bounds what sites send each other about their tables.
func TestPolicyTold(t *testing.T) {
	for text, want := range map[string]string{"": "", "categories: [ward, sex]\n": `"town"`,
		"categories: []\n": `"ward"`} {
		p, err := parsePolicy([]byte(policyFile + text))
		if err != nil {
			t.Fatal(err)
		}
		err = p.CheckTold([]string{"ward", "town"})
		if (want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "policy.categories")) {
			t.Errorf("%q: the error must contain %s (got %v)", text, want, err)
		}
	}
}

// A site may raise how many nodes must have a text before others get it, and not lower it.
func TestPolicyTextCount(t *testing.T) {
	for text, want := range map[string]int{"": 10, "min_text_count: 0\n": 10, "min_text_count: 25\n": 25} {
		if p, err := parsePolicy([]byte(policyFile + text)); err != nil || p.TextCount() != want {
			t.Errorf("%q: %d (%v), want %d", text, p.TextCount(), err, want)
		}
	}
}

// A policy with a deleted field is refused: a site that asked for its protection must not run without it.
func TestPolicyDeletedFields(t *testing.T) {
	for _, text := range []string{"max_label_epsilon: 4", "least_in_sum: 3", "modes: [retexo]", "solvers: [adam]"} {
		name, _, _ := strings.Cut(text, ":")
		if _, err := parsePolicy([]byte(policyFile + text + "\n")); err == nil ||
			!strings.Contains(err.Error(), "unknown field \""+name+"\"") {
			t.Errorf("%s: the error must be that the field is unknown (got %v)", text, err)
		}
	}
}

func TestPolicyCheck(t *testing.T) {
	allowed := Plan{Method: "layer-wise", Encoder: "pca:64", LayerOutput: "logits", Rows: "int8", Layers: 2, Hops: 3,
		Passes: 1, Rounds: 200, Members: 3, InSum: 3, Epsilon: 4, Delta: 0.001, Numbers: 1.5}
	for what, c := range map[string]struct {
		change func(*Plan)
		want   []string
	}{
		"as allowed":    {func(p *Plan) {}, nil},
		"fewer columns": {func(p *Plan) { p.Encoder = "pca:3" }, nil},
		"more columns":  {func(p *Plan) { p.Encoder = "pca:65" }, []string{"policy.encoders"}},
		"raw":           {func(p *Plan) { p.Encoder = "raw" }, []string{"policy.encoders"}},
		"nonsense":      {func(p *Plan) { p.Encoder = "pca:-1" }, []string{"policy.encoders"}},
		"class means": {func(p *Plan) { p.Method, p.Encoder, p.LayerOutput = "class-means", "classes", "hidden" },
			nil},
		"columns":   {func(p *Plan) { p.Encoder = "pca:16+classes" }, []string{"policy.encoders"}},
		"no number": {func(p *Plan) { p.Encoder = "pca" }, []string{"policy.encoders"}},
		"empty": {func(p *Plan) { *p = Plan{} },
			[]string{"policy.encoders", "policy.methods", "policy.layer_outputs", "policy.rows", "policy.max_epsilon",
				"policy.min_members", "policy.min_members_in_sum"}},
		"hidden rows":     {func(p *Plan) { p.LayerOutput = "hidden" }, []string{"policy.layer_outputs"}},
		"two peers":       {func(p *Plan) { p.Members = 2 }, []string{"policy.min_members"}},
		"two in a sum":    {func(p *Plan) { p.InSum = 2 }, []string{"policy.min_members_in_sum"}},
		"sums in clear":   {func(p *Plan) { p.InSum = 1 }, []string{"policy.min_members_in_sum"}},
		"too many rounds": {func(p *Plan) { p.Rounds = 201 }, []string{"policy.max_rounds"}},
		"end to end":      {func(p *Plan) { p.Method = "full-batch" }, []string{"policy.methods"}},
		"exact rows":      {func(p *Plan) { p.Rows = "float32" }, []string{"policy.rows"}},
		"layers":          {func(p *Plan) { p.Layers = 3 }, []string{"policy.max_layers"}},
		"hops":            {func(p *Plan) { p.Hops = 4 }, []string{"policy.max_hops"}},
		"passes":          {func(p *Plan) { p.Passes = 2 }, []string{"policy.max_pca_passes"}},
		"own labels":      {func(p *Plan) { p.Labels = true }, []string{"policy.leave_one_out"}},
		"epsilon":         {func(p *Plan) { p.Epsilon = 4.5 }, []string{"policy.max_epsilon"}},
		"no noise":        {func(p *Plan) { p.Epsilon = 0 }, []string{"policy.max_epsilon"}},
		"delta":           {func(p *Plan) { p.Delta = 0.01 }, []string{"policy.max_delta"}},
		"numbers":         {func(p *Plan) { p.Numbers = 2.5 }, []string{"policy.max_numbers"}},
	} {
		p := allowed
		c.change(&p)
		err := policy(t).Check(p)
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err != nil && strings.Count(err.Error(), "\n")+1 != len(c.want) {
			t.Errorf("%s: %v, want %v alone", what, err, c.want)
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w+": ") {
				t.Errorf("%s: %v, want rule %s", what, err, w)
			}
		}
	}
	bare := Policy{Federation: "x", Encoders: []string{"pca"}, Methods: []string{"layer-wise"},
		LayerOutputs: []string{"logits"}, MinMembers: 2, MinInSum: 1}
	most := Plan{Method: "layer-wise", Encoder: "pca:9", LayerOutput: "logits", Rows: "float32", Layers: 9, Hops: 9,
		Passes: 9, Rounds: 9, Members: 2, InSum: 1, Labels: true, Delta: 1, Numbers: 9}
	if err := errors.Join(bare.Validate(), bare.Check(most)); err != nil {
		t.Errorf("a policy without these rules: %v", err)
	}
	means := Policy{Federation: "x", Methods: []string{"class-means"}, MinMembers: 2}
	if err := means.Validate(); err != nil {
		t.Errorf("a policy of class means must need no encoders and layer outputs (got %v)", err)
	}
	for least, wrong := range map[int]bool{0: true, 1: false, 2: false, 3: true, 5: true} {
		p, rules := allowed, policy(t)
		p.InSum, rules.MinInSum = 2, least
		if err := rules.Check(p); (err != nil) != wrong {
			t.Errorf("min_members_in_sum %d, two in a sum: %v", least, err)
		}
	}
	free := Policy{Encoders: []string{"pca"}}
	if !free.allowsEncoder("pca:4096") || free.allowsEncoder("raw") {
		t.Error("pca without a number allows any number of components, and nothing else")
	}
}

func TestPolicyHours(t *testing.T) {
	p := policy(t)
	for at, open := range map[string]bool{"20:00": true, "19:59": false, "23:59": true, "00:00": true, "06:29": true,
		"06:30": false, "12:00": true, "12:59": true, "13:00": false} {
		// By the clock on this site's wall, whatever that is in UTC.
		day, err := time.ParseInLocation("2006-01-02 15:04", "2026-11-21 "+at, time.FixedZone("here", 5*3600))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Open(day); (err == nil) != open {
			t.Errorf("%s: %v, want open %v", at, err, open)
		} else if err != nil {
			rule(t, at, err, "policy.hours", at, "20:00-06:30")
		}
	}
	p.Hours = nil
	rule(t, "no hours", p.Open(now), "")
}

func TestPolicyFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "federation",
		policyFile + "encoder: raw\n":      `[18:1]`,
		policyFile + "min_text_count: 9\n": "min_text_count must be at least 10 nodes, or 0 for 10 (got 9)",
		strings.Replace(policyFile, "min_members: 3", "min_members must be at least 2 (got 1)",
			1): "min_members must be at least 2 (got 1)",
		strings.Replace(policyFile, "min_members: 3", "min_members: many", 1): "[5:14]",
		strings.Replace(policyFile, "[logits]", "[]", 1): "layer_outputs must name some of " +
			"hidden, logits (got none)",
		strings.Replace(policyFile, "[logits]", "[rows]",
			1): `layer_outputs must be some of hidden, logits (got "rows")`,
		strings.Replace(policyFile, "mlp", "pca:0",
			1): `encoders must be some of raw, mlp, pca, pca:K, classes, embedding (got "pca:0")`,
		strings.Replace(policyFile, "mlp", "pca:K",
			1): `encoders must be some of raw, mlp, pca, pca:K, classes, embedding (got "pca:K")`,
		strings.Replace(policyFile, "class-means", "magic",
			1): `methods must be some of class-means, layer-wise, full-batch, mini-batch (got "magic")`,
		strings.Replace(policyFile, "20:00-06:30", "20:00", 1): `hours must be spans such as 22:00-06:00 (got "20:00")`,
		strings.Replace(policyFile, "20:00-06:30", "24:00-25:00",
			1): `hours must be spans such as 22:00-06:00 (got "24:00-25:00")`,
		strings.Replace(policyFile, "20:00-06:30", "20:00-20:00",
			1): `hours must be spans such as 22:00-06:00 (got "20:00-20:00")`,
		strings.Replace(policyFile, "max_rate: 4096", "max_rate: 1", 1):      "max_rate 1",
		policyFile + "receive_limit: 1023\n":                                 "receive_limit 1023",
		strings.Replace(policyFile, "max_bytes: 100000", "max_bytes: -1", 1): "max_bytes -1",
		policyFile + "approvers: [bob]\n":                                    "approvers",
		policyFile + "approvers: [" + south.id + ", " + south.id + "]\n":     "named twice",
		policyFile + "approvals: 2\n": "approvals must be 0 to 1, " +
			"the number of approvers (got 2)",
		"hours: !0 &a\n0":                 "must be YAML",
		policyFile + "min_members: 4\n":   "min_members",
		policyFile + "failures: [wait]\n": `unknown field "failures"`,
		policyFile + "min_peers: 3\n":     `unknown field "min_peers"`,
		policyFile + strings.Repeat("# a comment\n", maxPolicy/len("# a comme")): "at most 65536 bytes",
	} {
		if _, err := parsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q…: %v, must contain %q", text, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte("min_members: 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPolicy(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want the file's name", err)
	}
}

func TestApproved(t *testing.T) {
	own := policy(t)
	four := own
	four.Approvers, four.Approvals = []string{south.id, west.id, east.id}, 2
	for _, c := range []struct {
		what   string
		p      Policy
		change func(*Approval)
		by     []someone
		at     time.Time
		want   string
		says   string
	}{
		{"its own", own, nil, []someone{north}, now, "", ""},
		{"nobody", own, nil, nil, now, "approval.signatures", north.id},
		{"another", own, nil, []someone{south}, now, "approval.signatures", "0 of the 1"},
		{"two approvers", four, nil, []someone{south, east}, now, "", ""},
		{"one approver", four, nil, []someone{west}, now, "approval.signatures", "1 of the 2"},
		{"one approver and the machine", four, nil, []someone{west, north}, now, "approval.signatures",
			"missing " + south.id},
		{"another plan", own, func(a *Approval) { a.Plan = strings.Repeat("0", 64) }, []someone{north}, now,
			"approval.plan", "heddle approve"},
		{"another site", own, func(a *Approval) { a.Site = south.id }, []someone{north}, now, "approval.site",
			south.id},
		{"another federation", own, func(a *Approval) { a.Federation = "other" }, []someone{north}, now,
			"approval.federation", "other"},
		{"the last day", own, nil, []someone{north}, now.AddDate(0, 0, 40), "", ""},
		{"too late", own, nil, []someone{north}, now.AddDate(0, 0, 41), "approval.expired", "2026-12-31"},
	} {
		a := consent()
		if c.change != nil {
			c.change(&a)
		}
		rule(t, c.what, c.p.Approved(signed(t, a, c.by...), plan, north.id, c.at), c.want, c.says)
	}
	for k := range plan { // the whole fingerprint counts
		other := []byte(plan)
		other[k] ^= 1
		rule(t, fmt.Sprint("digit ", k), own.Approved(signed(t, consent(), north), string(other), north.id, now),
			"approval.plan", "")
	}
	if got := PlanFingerprint([]byte("test")); got != plan {
		t.Errorf("fingerprint %s, want what sha256sum prints, %s", got, plan)
	}
	if err := (Approval{}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v, want four faults", err)
	}
	if err := Unsigned(consent()).Sign(north.id, south.sign); err == nil {
		t.Error("a signature by another key than the peer ID's is taken")
	}
}

// sink is a transport that counts what is sent.
type sink struct {
	comm.Transport
	bytes int
}

func (s *sink) Send(_ context.Context, _ int, head, body []byte) error {
	s.bytes += len(head) + len(body)
	return nil
}

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(t)
		p.Hours, p.MaxBytes = nil, 100000+lastWords
		to := &sink{}
		g := p.Guard(to, 0, nil)
		start := time.Now()
		for range 20 { // 20 × 5000 bytes at 4096 bytes a second, with a free burst of 1024
			if err := g.Send(t.Context(), 1, nil, make([]byte, 5000)); err != nil {
				t.Fatal(err)
			}
		}
		least := time.Duration(float64(100000-1024) / 4096 * float64(time.Second))
		if took := time.Since(start); took < least-time.Millisecond || took > least+time.Second {
			t.Errorf("100,000 bytes took %v, want %v", took, least)
		}
		rule(t, "one byte more", g.Send(t.Context(), 1, nil, make([]byte, 1)), "policy.max_bytes", "101024")
		ending := make([]byte, comm.HeaderLen)
		ending[0], ending[1] = 2, 7 // a refusal
		binary.LittleEndian.PutUint64(ending[8:], lastWords-comm.HeaderLen)
		err := g.Send(t.Context(), 1, ending, make([]byte, lastWords-comm.HeaderLen))
		if err != nil || to.bytes != 100000+lastWords {
			t.Errorf("after %d bytes: why the run ends must go, too (got %v)", to.bytes, err)
		}
		rule(t, "a second one", g.Send(t.Context(), 1, ending, nil), "policy.max_bytes")
		to.bytes -= lastWords
		if to.bytes != 100000 {
			t.Errorf("%d bytes went, want 100000", to.bytes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late *comm.PeerError
		if err := p.Guard(to, 0, nil).Send(ctx, 3, nil, make([]byte, 9000)); !errors.As(err, &late) || late.Rank != 3 {
			t.Errorf("%v, want a PeerError of rank 3 where time runs out", err)
		}
		p.MaxRate, p.Hours = 0, []string{time.Now().Format("15:04") + "-" + time.Now().Add(time.Hour).Format("15:04")}
		g = p.Guard(to, 0, nil)
		rule(t, "within the hours", g.Send(t.Context(), 1, nil, nil), "")
		time.Sleep(2 * time.Hour)
		rule(t, "after them", g.Send(t.Context(), 1, nil, nil), "policy.hours")
	})
}

// TestGuardKeepsWhatWasSent: what is kept is never less than what was sent, and not much more; a process that begins
// with it sends no more in all than the policy allows, and one that ends normally leaves the exact number.
func TestGuardKeepsWhatWasSent(t *testing.T) {
	p := policy(t)
	p.Hours, p.MaxRate = nil, 0
	to, kept, writes := &sink{}, int64(0), 0
	keep := func(n int64) error { kept = n; writes++; return nil }
	for life := range 3 {
		g := p.Guard(to, kept, keep)
		for range 300 {
			if err := g.Send(t.Context(), 1, nil, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if most := int64(to.bytes) + int64(life+1)*p.MaxBytes/keepSteps; kept < int64(to.bytes) || kept > most {
				t.Fatalf("%d bytes are recorded; must be at least the %d sent and at most %d", kept, to.bytes, most)
			}
		} // and is killed
	}
	if writes > 3*(300*100/1500+1) {
		t.Errorf("%d writes for %d bytes", writes, to.bytes)
	}
	g := p.Guard(to, kept, keep)
	var err error
	for err == nil {
		err = g.Send(t.Context(), 1, nil, make([]byte, 100))
	}
	rule(t, "in all lives", err, "policy.max_bytes", "100000")
	if to.bytes > 100000 || to.bytes < 100000-4*100000/keepSteps {
		t.Errorf("%d bytes were sent in all, must be close to 100000", to.bytes)
	}
	if err := g.Settle(); err != nil || kept != g.Sent() {
		t.Errorf("%d bytes are recorded at the end (%v), must be %d", kept, err, g.Sent())
	}
	full := errors.New("disk full")
	if err := p.Guard(to, 0, func(int64) error { return full }).Send(t.Context(), 1, nil,
		make([]byte, 1)); !errors.Is(err, full) {
		t.Errorf("%v; nothing may be sent that cannot be recorded", err)
	}
}

func FuzzApproval(f *testing.F) {
	s := Unsigned(consent())
	if err := s.Sign(north.id, north.sign); err != nil {
		f.Fatal(err)
	}
	b, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, file []byte) { canonical[Approval](t, file) })
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(policyFile))
	f.Add([]byte("a: 0\nhours: !0 &a\n0")) // at which the YAML library panics
	f.Add([]byte("federation: x\nhours: [\"1:00-2:00\"]\nencoders: &a [raw]\nsolvers: *a\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := parsePolicy(file)
		if err != nil {
			return
		}
		p.Check(Plan{Encoder: "pca:3"})
		if err := p.Open(now); err != nil && len(p.Hours) == 0 {
			t.Error(err)
		}
	})
}
