package plan

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// TestAutoRefuses: what preset auto does not take is refused by name.
func TestAutoRefuses(t *testing.T) {
	for given, want := range map[string]string{
		"hidden: 64":               "hidden must not be set with preset auto, which chooses it (got 64)",
		"model: sage":              "model must not be set with preset auto, which chooses it (got sage)",
		"encoder: pca:128":         "encoder must not be set with preset auto, which chooses it (got pca:128)",
		"mode: fullbatch":          "preset applies only to mode retexo (got mode fullbatch)",
		"budget: 0":                "budget must be above 0 (got 0)",
		"rows: int2":               "rows must be float32, bf16, int8 or int4",
		"metric: beauty\nseed: 17": "metric must be accuracy",
	} {
		p, err := Read([]byte("preset: auto\n"+given), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
	for _, given := range []string{"model: gcn\nbudget: 7", "lr: 0.1\nbudget: 8"} {
		p, err := Read([]byte(given), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), "applies only with preset auto (got preset none)") {
			t.Errorf("%s without preset auto: %v", given, err)
		}
	}
}

// TestAutoIsTheDefault: a plan that says nothing about model and training tries several; one that does is a plan of its own.
func TestAutoIsTheDefault(t *testing.T) {
	for given, want := range map[string]string{
		"": Auto, "seed: 3\nbudget: 9\nrows: bf16": Auto, "mode: retexo": Auto, "preset: frugal": "frugal",
		"model: gcn": "", "lr: 0.1": "", "mode: standalone": "", "encoder: raw": "",
	} {
		p, err := Read([]byte(given), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err != nil || p.Preset != want {
			t.Errorf("%q has preset %q, must have %q (%v)", given, p.Preset, want, err)
		}
	}
}

// TestBudget: a budget has a unit or not, and is the same plan.
func TestBudget(t *testing.T) {
	for given, want := range map[string]Megabytes{"50": 50, "50MB": 50, "0.5 gb": 500, "900kB": 0.9, "1e2": 100} {
		p := read(t, "preset: auto\nbudget: "+given, nil)
		q := read(t, "preset: auto", map[string]string{"budget": given})
		if p.Budget != want || q.Budget != want || p.Validate() != nil {
			t.Errorf("%s: %v and %v, want %v", given, p.Budget, q.Budget, want)
		}
		text, err := p.MarshalYAML()
		if again := read(t, string(text), nil); err != nil || again.Budget != want {
			t.Errorf("%s is written as %q: %v", given, text, err)
		}
	}
	for _, given := range []string{"MB", "much", "5 miles", "NaN", "-1", "0"} {
		p, err := Read(nil, map[string]string{"preset": "auto", "budget": given}, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), "budget must be") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// TestCandidatesInherit: a candidate has the plan's settings of what travels, network and faults, and the plan's seed.
func TestCandidatesInherit(t *testing.T) {
	p := *read(t, "preset: auto\nseed: 9\nrows: bf16\nexchange: halo\nmetric: macro-f1\npeers: 3\nprogress_timeout: 2m", nil)
	for _, c := range p.Candidates() {
		q := c.Plan
		if q.Seed != 9 || q.Rows != "bf16" || q.Exchange != "halo" || q.Metric != "macro-f1" || q.Peers != 3 || q.ProgressTimeout != p.ProgressTimeout {
			t.Errorf("%s: %+v", c.Name, q)
		}
		if q.Preset == Auto || !q.InClosedForm() {
			t.Errorf("%s: preset %q, encoder %s", c.Name, q.Preset, q.Encoder)
		}
		if err := q.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if sends := q.Hops > 0; q.WithholdFew != (sends && !c.Usual) {
			t.Errorf("%s: rows of few values are withheld: %t, but one plan alone must send them", c.Name, q.WithholdFew)
		}
	}
	if all := Defaults(Plan{}).Candidates(); all != nil {
		t.Errorf("a plan without preset auto has candidates: %v", all)
	}
}

// TestOwnRowsOfAnyLabels: own rows alone are tried of any labels, and sums of labels of one class a node only.
func TestOwnRowsOfAnyLabels(t *testing.T) {
	for name, labels := range map[string]graph.Labels{"classes": {Classes: 2, Class: []int32{0}}, "several": {Classes: 2, Bits: []uint8{1, 1}},
		"numbers": {Classes: 1, Values: []float32{2}}} {
		own := shard.Whole(&graph.Graph{Name: "small", Adj: graph.CSR{NumDst: 1, NumSrc: 1, RowPtr: []int64{0, 0}},
			X: graph.Features{Dense: mat.New(1, 300)}, Labels: labels, Split: []graph.Split{graph.Train}})
		all, err := read(t, "preset: auto", nil).CandidatesFor(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			switch of := strings.Contains(c.Sets, "class_target=labels"); {
			case c.Name == "own-rows" && (c.Fault != nil || of != (name == "classes") || of != (c.Plan.ClassTarget == "labels")):
				t.Errorf("%s: own-rows is %q with fault %v, must be tried", name, c.Sets, c.Fault)
			case c.Name == "labels" && (c.Fault == nil) != (name == "classes"):
				t.Errorf("%s: labels has fault %v", name, c.Fault)
			}
		}
	}
}

// TestRowsOfManyFeatures: of nodes with one class and more than 64 features few plans send rows; of each of their targets one sends none, and
// one sends rows of nodes with few values. Of fewer features one plan of all does.
func TestRowsOfManyFeatures(t *testing.T) {
	names := func(features int, labels graph.Labels) (tried string) {
		own := shard.Whole(&graph.Graph{Name: "small", Adj: graph.CSR{NumDst: 1, NumSrc: 1, RowPtr: []int64{0, 0}},
			X: graph.Features{Dense: mat.New(1, features)}, Labels: labels, Split: []graph.Split{graph.Train}})
		all, err := read(t, "preset: auto", nil).CandidatesFor(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Fault == nil {
				if tried += " " + c.Name; c.Target != "" {
					tried += ":" + c.Target
				}
				if c.Plan.Hops > 0 && !c.Plan.WithholdFew {
					tried += "+few"
				}
				if c.Plan.WithholdFew != strings.Contains(c.Sets, "withhold_few=true") {
					t.Errorf("%s: withhold_few is %v, and Sets is %q", c.Name, c.Plan.WithholdFew, c.Sets)
				}
			}
		}
		return tried
	}
	class, numbers := graph.Labels{Classes: 2, Class: []int32{0}}, graph.Labels{Classes: 1, Values: []float32{2}}
	few := " own-rows classes own-part-out residual last-hop all-hops labels+few residual-wide"
	if got := names(64, class); got != few {
		t.Errorf("64 features: tried are%s, must be%s", got, few)
	}
	if got, must := names(65, class), " own-rows:labels own-residual:residual residual:residual+few labels:labels+few residual-wide:residual"; got != must {
		t.Errorf("65 features: tried are%s, must be%s", got, must)
	}
	if a, b := names(300, numbers), names(20, numbers); a != b || strings.Contains(a, ":") {
		t.Errorf("numbers: tried are%s of 300 features, must be%s as of 20", a, b)
	}
}

// TestModeAtFault: a mode at fault brings no faults of settings whose defaults depend on it.
func TestModeAtFault(t *testing.T) {
	p := Defaults(Plan{Mode: "foo"})
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), `mode must be retexo, fullbatch, minibatch or standalone (got "foo")`) || strings.Contains(err.Error(), "norm") {
		t.Errorf("%v", err)
	}
}
