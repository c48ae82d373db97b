package plan

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// TestRefusedBySeveral: what several closed forms do not take is refused by name.
func TestRefusedBySeveral(t *testing.T) {
	for given, want := range map[string]string{
		"hidden: 64":               "hidden applies only to method layer-wise, full-batch or mini-batch (got method class-means)",
		"model: sage":              "model applies only to method layer-wise, full-batch or mini-batch (got method class-means)",
		"encoder: pca:128":         "encoder applies only to method layer-wise, full-batch or mini-batch (got method class-means)",
		"budget: 0":                "budget must be above 0 (got 0)",
		"rows: int2":               "rows must be float32, bf16, int8 or int4",
		"metric: beauty\nseed: 17": "metric must be accuracy",

		"single: true\nbudget: 7":                    "budget applies only to method class-means without single (got method class-means)",
		"method: layer-wise\nbudget: 7":              "budget applies only to method class-means without single (got method layer-wise)",
		"method: full-batch\nsingle: true":           "single applies only to method class-means (got method full-batch)",
		"hops: 2\nsingle: false":                     "hops applies only to method class-means",
		"method: mini-batch\nclass_target: residual": "class_target applies only to method class-means (got method mini-batch)",
	} {
		p, err := Read(sections(given), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

// TestMethodOfAPlan: a plan that says nothing of its method compares closed forms, unless it has what one needs or links.
func TestMethodOfAPlan(t *testing.T) {
	for given, want := range map[string]Plan{
		"": {Method: ClassMeans}, "seed: 3\nbudget: 9\nrows: bf16": {Method: ClassMeans}, "task: links": {Method: LayerWise},
		"single: true": {Method: ClassMeans, Single: true}, "hops: 3": {Method: ClassMeans, Single: true}, "row_norm: l1": {Method: ClassMeans, Single: true},
		"epsilon: 4": {Method: ClassMeans, Single: true}, "class_rounds: 2": {Method: ClassMeans, Single: true},
		"method: layer-wise": {Method: LayerWise}, "method: full-batch\nhops: 3": {Method: FullBatch}, "method: mini-batch": {Method: MiniBatch},
	} {
		p := read(t, given, nil)
		if p.Method != want.Method || p.Single != want.Single || p.Contest() != (want.Method == ClassMeans && !want.Single) {
			t.Errorf("%q has method %s and single %t, must have %s and %t", given, p.Method, p.Single, want.Method, want.Single)
		}
		if one := read(t, "", map[string]string{"hops": "2"}); !one.Single {
			t.Error("a flag of a closed form must ask for one")
		}
	}
}

// TestBudget: a budget has a unit or not, and is the same plan.
func TestBudget(t *testing.T) {
	for given, want := range map[string]Megabytes{"50": 50, "50MB": 50, "0.5 gb": 500, "900kB": 0.9, "1e2": 100} {
		p := read(t, "method: class-means\nbudget: "+given, nil)
		q := read(t, "method: class-means", map[string]string{"budget": given})
		if p.Budget != want || q.Budget != want || p.Validate() != nil {
			t.Errorf("%s: %v and %v, want %v", given, p.Budget, q.Budget, want)
		}
		text, err := p.MarshalYAML()
		if again := read(t, string(text), nil); err != nil || again.Budget != want {
			t.Errorf("%s is written as %q: %v", given, text, err)
		}
	}
	for _, given := range []string{"MB", "much", "5 miles", "NaN", "-1", "0"} {
		p, err := Read(nil, map[string]string{"budget": given}, nil)
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
	p := *read(t, "method: class-means\nseed: 9\nrows: bf16\nexchange: halo\nmetric: macro-f1\npeers: 3\nprogress_timeout: 2m", nil)
	for _, c := range p.Candidates() {
		q := c.Plan
		if q.Seed != 9 || q.Rows != "bf16" || q.Exchange != "halo" || q.Metric != "macro-f1" || q.Peers != 3 || q.ProgressTimeout != p.ProgressTimeout {
			t.Errorf("%s: %+v", c.Name, q)
		}
		if !q.InClosedForm() {
			t.Errorf("%s: method %s, must be one closed form", c.Name, q.Method)
		}
		if err := q.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if sends := q.Hops > 0; q.WithholdFew != (sends && !c.Usual) {
			t.Errorf("%s: rows of few values are withheld: %t, but one plan alone must send them", c.Name, q.WithholdFew)
		}
	}
	for _, ask := range []Plan{{Single: true}, {Method: LayerWise}, {Method: FullBatch}} {
		if all := Defaults(ask).Candidates(); all != nil {
			t.Errorf("a plan of %s, single %t, has candidates: %v", ask.Method, ask.Single, all)
		}
	}
}

// TestOwnRowsOfAnyLabels: own rows alone are tried of any labels, and sums of labels of one class a node only.
func TestOwnRowsOfAnyLabels(t *testing.T) {
	for name, labels := range map[string]graph.Labels{"classes": {Classes: 2, Class: []int32{0}}, "several": {Classes: 2, Bits: []uint8{1, 1}},
		"numbers": {Classes: 1, Values: []float32{2}}} {
		own := shard.Whole(&graph.Graph{Name: "small", Adj: graph.CSR{NumDst: 1, NumSrc: 1, RowPtr: []int64{0, 0}},
			X: graph.Features{Dense: mat.New(1, 300)}, Labels: labels, Split: []graph.Split{graph.Train}})
		all, err := read(t, "method: class-means", nil).CandidatesFor(own)
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
		all, err := read(t, "method: class-means", nil).CandidatesFor(own)
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

// TestMethodAtFault: a method at fault brings no faults of settings whose defaults depend on it.
func TestMethodAtFault(t *testing.T) {
	p := Defaults(Plan{Method: "foo"})
	if err := p.Validate(); err == nil || err.Error() != `method must be class-means, layer-wise, full-batch or mini-batch (got "foo")` {
		t.Errorf("%v", err)
	}
}

// TestSizes: memory is a number of MiB, or a size with its unit, and is written as the number.
func TestSizes(t *testing.T) {
	for given, want := range map[string]Mebibytes{
		"0": 0, "64": 64, "4GiB": 4096, "1.5 GiB": 1536, "512mib": 512, "1GB": 953, "2e3": 2000,
	} {
		p := read(t, "method: mini-batch\nmemory: "+given, nil)
		q := read(t, "method: mini-batch", map[string]string{"memory": given, "feature_cache": given})
		if p.Memory != want || q.Memory != want || q.FeatureCache != want || p.Validate() != nil {
			t.Errorf("%s: %v, %v and %v, want %v", given, p.Memory, q.Memory, q.FeatureCache, want)
		}
		text, err := p.MarshalYAML()
		if again := read(t, string(text), nil); err != nil || again.Memory != want {
			t.Errorf("%s is written as %q: %v", given, text, err)
		}
	}
	for _, given := range []string{"MiB", "much", "NaN", "1.5", "12KiB", "-1", "-1GiB", "1e30", "inf"} {
		p, err := Read(nil, map[string]string{"method": "mini-batch", "memory": given}, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), "memory must be ") {
			t.Errorf("%s: %v", given, err)
		}
	}
}
