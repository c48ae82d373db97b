package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/minibatch"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/retexo"
)

// sections moves each setting of a text to its section.
func sections(text string) []byte {
	method := ClassMeans
	if strings.Contains(text, "task: links") {
		method = LayerWise
	}
	for line := range strings.SplitSeq(text, "\n") {
		if name, found := strings.CutPrefix(line, "method: "); found {
			method = name
		}
	}
	of := map[string]string{} // by place
	for line := range strings.SplitSeq(text, "\n") {
		name, _, _ := strings.Cut(line, ":")
		s, _ := Lookup(method, name)
		of[s.place()] += strings.Repeat("  ",
			len(strings.FieldsFunc(s.place(), func(r rune) bool { return r == '.' }))) + line + "\n"
	}
	own := sectionOf(method)
	if inner := own + ".experimental"; of[inner] != "" {
		of[own] += "  experimental:\n" + of[inner]
	}
	for _, name := range []string{own, "experimental"} {
		if of[name] != "" {
			of[""] += name + ":\n" + of[name]
		}
	}
	return []byte(of[""])
}

// read makes a plan that must be sound. Settings may be anywhere in its text.
func read(t *testing.T, text string, given map[string]string) *Plan {
	t.Helper()
	p, err := Read(sections(text), given, nil)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatalf("%q %v: %v", text, given, err)
	}
	return p
}

// TestTags: the tags are complete, and every name is unique.
func TestTags(t *testing.T) {
	types := map[string]Setting{}
	for _, method := range Methods() {
		seen := map[string]bool{}
		for _, s := range Settings(method) {
			one, had := types[s.Name]
			if seen[s.Name] || had && (one.Type != s.Type || one.Flag != s.Flag || one.Only != s.Only ||
				one.Local != s.Local || one.Experimental != s.Experimental) {
				t.Errorf("%s occurs twice, or is another setting with another method", s.Name)
			}
			seen[s.Name], types[s.Name] = true, s
			for _, c := range s.when {
				if by, _ := Lookup(method, c.setting); len(by.Choices) > 0 && by.Name != "model" &&
					by.Name != "encoder" && len(slices.DeleteFunc(slices.Clone(c.values),
					func(v string) bool { return slices.Contains(by.Choices, v) })) > 0 {
					t.Errorf("%s: when %s is one of %q, and not of %q", s.Name, by.Name, c.values, by.Choices)
				}
			}
		}
	}
	for _, s := range Settings("") {
		if s.Help == "" || len(s.Help) > 60 {
			t.Errorf("%s: help of %d characters", s.Name, len(s.Help))
		}
		if !slices.Contains([]string{"", "train", "join"}, s.Only) {
			t.Errorf("%s: only %q", s.Name, s.Only)
		}
		if s.Default != "" && len(s.Choices) > 0 && s.Name != "encoder" && !slices.Contains(s.Choices, s.Default) {
			t.Errorf("%s: default %q is none of %q", s.Name, s.Default, s.Choices)
		}
		if s.to != "" {
			_, layerwise := fieldOf(reflect.TypeFor[retexo.Config](), s.to)
			_, closedForm := fieldOf(reflect.TypeFor[classmeans.Config](), s.to)
			_, sampled := fieldOf(reflect.TypeFor[minibatch.Config](), s.to)
			if _, endToEnd := fieldOf(reflect.TypeFor[fullbatch.Config](), s.to); !layerwise && !endToEnd &&
				!closedForm && !sampled {
				t.Errorf("%s: no trainer has a field %s", s.Name, s.to)
			}
		}
		for _, c := range s.when {
			if c.setting == "model" && slices.ContainsFunc(c.values, func(v string) bool { return traits[v] == nil }) {
				t.Errorf("%s: no such traits: %q", s.Name, c.values)
			}
		}
	}
}

// fieldOf finds a field by its path.
func fieldOf(of reflect.Type, path string) (f reflect.StructField, ok bool) {
	for name := range strings.SplitSeq(path, ".") {
		if f, ok = of.FieldByName(name); !ok {
			return f, false
		}
		of = f.Type
	}
	return f, true
}

// everyPlan calls f with the defaults of all methods, models and solvers that go together.
func everyPlan(f func(p Plan)) {
	for _, model := range nn.Convolutions(nil) {
		conv, _ := nn.ConvolutionNamed(model)
		if f(Defaults(FullBatch, model)); conv.LayerWise {
			f(Defaults(LayerWise, model))
		}
		if minibatch.Samples(conv) {
			f(Defaults(MiniBatch, model))
		}
	}
	f(Defaults("", ""))
	for _, method := range []string{FullBatch, LayerWise} {
		f(Plan{Method: method, Task: Task{Kind: "links"}}.Usual())
	}
	for _, solver := range []string{"adamw", "sgd"} {
		p := Defaults(LayerWise, "")
		p.Gradient().Solver = solver
		f(p)
	}
}

// TestDefaults: what a method, a model and a task start from is sound, and comes back from its text.
func TestDefaults(t *testing.T) {
	everyPlan(func(p Plan) {
		name := fmt.Sprint(p.Method, " ", p.Task, " ", p.Gradient().Model, " ", p.Gradient().Solver)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, members := range [][]Member{nil,
			{{Name: "north", ID: "12D3", Addresses: []string{"/ip4/10.0.0.1/udp/4001/quic-v1"}}}} {
			p.Members = members
			text, err := p.MarshalYAML()
			if err != nil {
				t.Fatal(err)
			}
			if again := read(t, string(text), nil); !reflect.DeepEqual(*again, p) {
				t.Errorf("%s: of\n%s\ncomes %+v\nwant %+v", name, text, *again, p)
			}
			for setting, has := range map[string]bool{"hidden": p.Method != ClassMeans,
				"local_steps": p.Method == LayerWise, "batch_size": p.Method == MiniBatch,
				"memory": members == nil && (p.Method == FullBatch || p.Method == MiniBatch)} {
				if strings.Contains(string(text), "\n  "+setting+":") != has {
					t.Errorf("%s: its text has settings that it does not read, or not those that it reads:\n%s", name,
						text)
				}
			}
		}
	})
}

// TestFanouts: one number applies to all layers.
func TestFanouts(t *testing.T) {
	for _, k := range []struct {
		fanouts []int
		want    []int
	}{{[]int{7}, []int{7, 7, 7}}, {[]int{15, 10, -1}, []int{15, 10, -1}}} {
		p := Defaults(MiniBatch, "")
		p.Gradient().Layers, p.MiniBatch.Fanouts = 3, k.fanouts
		c, err := p.sampledConfig(task{Features: 5, Classes: 2})
		if err != nil || !slices.Equal(c.Sample.Fanouts, k.want) {
			t.Errorf("%v: %v, %v, must be %v", k.fanouts, c.Sample.Fanouts, err, k.want)
		}
	}
	for want, set := range map[string]func(p *Plan){
		"a number for each of 2 layers (got 3)":             func(p *Plan) { p.MiniBatch.Fanouts = []int{1, 2, 3} },
		"fanouts must be":                                   func(p *Plan) { p.MiniBatch.Fanouts = []int{-2} },
		"must be -1 (all) or":                               func(p *Plan) { p.MiniBatch.Fanouts = []int{0} },
		"batch_size must be":                                func(p *Plan) { p.MiniBatch.BatchSize = 0 },
		"norm must be none or layer":                        func(p *Plan) { p.Joint().Norm = "batch" },
		"model must be gcn, sage, sage-sum, sage-pool, gat": func(p *Plan) { p.Gradient().Model = "appnp" },
		"full_batch must be empty with method mini-batch":   func(p *Plan) { p.FullBatch.CorrectSmooth = 3 },
		"layer_wise must be empty with method mini-batch": func(p *Plan) {
			p.LayerWise.Encoder = Encoder{Kind: "mlp"}
		},
	} {
		p := Defaults(MiniBatch, "")
		set(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, must contain %q", err, want)
		}
	}
	p := Defaults(FullBatch, "")
	p.MiniBatch.Fanouts = []int{3}
	if err := p.Validate(); err == nil ||
		!strings.Contains(err.Error(), "mini_batch must be empty with method full-batch") {
		t.Errorf("fanouts with method full-batch: %v", err)
	}
}

// TestSums: a sum of 8 bits has no space for the rounding of more than 63 peers, one of 4 bits for more than 7.
func TestSums(t *testing.T) {
	p := Defaults(LayerWise, "")
	p.LayerWise.Encoder, p.Federation().Sums, p.Federation().SecureSums = Encoder{Kind: "pca", K: 2}, "int8", "off"
	g := &graph.Graph{X: graph.Features{Dense: mat.New(4, 4)},
		Labels: graph.Labels{Class: make([]int32, 4), Classes: 2}, Split: make([]graph.Split, 4)}
	var err error
	if g.Adj, err = graph.FromEdges(4, nil, nil, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	s := shard.Whole(g)
	for _, parts := range []int{63, 64} {
		s.Parts = parts
		const want = "sums must be int16 or float32 with more than 63 peers (got int8 with 64 peers)"
		if err := p.Check([]*shard.Shard{s}); (err == nil) != (parts == 63) || err != nil && err.Error() != want {
			t.Errorf("%d peers: %v", parts, err)
		}
	}
	p.Federation().Sums, p.LayerWise.Updates = "int16", "int8"
	if err := p.Check([]*shard.Shard{s}); err == nil ||
		!strings.HasPrefix(err.Error(), "updates must be int16 or float32") {
		t.Errorf("updates: %v", err)
	}
	for _, updates := range []string{"int16", "auto"} {
		p.LayerWise.Updates = updates
		if err := p.Check([]*shard.Shard{s}); err != nil {
			t.Errorf("%s: %v", updates, err)
		}
	}
	p.LayerWise.Updates = "int4"
	for _, parts := range []int{7, 8} {
		s.Parts = parts
		const want = "updates must be int8, int16 or float32 with more than 7 peers (got int4 with 8 peers)"
		if err := p.Check([]*shard.Shard{s}); (err == nil) != (parts == 7) || err != nil && err.Error() != want {
			t.Errorf("%d peers: %v", parts, err)
		}
	}
}

// TestUnread: a setting that the run does not read is refused by name, unless it has its default.
func TestUnread(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"order: fixed", "[1:1] order: unknown setting of class-means; it belongs to full-batch"},
		{"method: layer-wise\nfetch: nonsense", "[2:1] fetch: unknown setting of layer-wise; it belongs to full-batch"},
		{"method: full-batch\nalpha: 7", "alpha applies only to model appnp (got model gcn)"},
		{"method: layer-wise\nattention_dropout: 9", "attention_dropout applies only to model gat"},
		{"method: layer-wise\nmomentum: 0.9", "momentum applies only to solver sgd (got solver adam)"},
		{"method: layer-wise\nsums: int8\nencoder: raw", "sums applies only to encoder pca (got encoder raw)"},
		{"method: layer-wise\npca_passes: 2\nencoder: raw", "pca_passes applies only to encoder pca (got encoder raw)"},
		{"correct_alpha: 0.5\nmethod: full-batch\npeers: 1",
			"correct_alpha applies only with correct_smooth (got correct_smooth 0)"},
		{"method: full-batch\nlocal_steps: 4", "local_steps: unknown setting of full-batch; it belongs to layer-wise"},
		{"epsilon: 4\nmethod: layer-wise", "[1:1] epsilon: unknown setting of layer-wise; it belongs to class-means"},
		{"method: layer-wise\nmin_class: 3\nencoder: raw",
			"min_class applies only to encoder pca:K+classes (got encoder raw)"},
		{"method: mini-batch\nexchange: cover",
			"exchange: unknown setting of mini-batch; it belongs to class-means, layer-wise and full-batch"},
		{"method: full-batch\npeers: 1\nmodel: mlp\nhops: 2",
			"hops applies only to model gcn, sage, sage-sum, gin, appnp or sign (got model mlp)"},
	} {
		p, err := Read(sections(c.given), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.given, err, c.want)
		}
	}
	read(t, "method: full-batch\nfetch: auto\nalpha: 0\n", nil)
}

// TestAllFaultsAtOnce: one reading reports all faults.
func TestAllFaultsAtOnce(t *testing.T) {
	p, err := Read(sections("method: full-batch\nlayers: 0\nlr: -1\ndropout: 1\nfetch: often\nencoder: mlp\n"+
		"memory: -1\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(p.Validate())
	for _, want := range []string{"layers must be at least 1 and at most 1000 (got 0)",
		"fetch must be sar, sa, oneshot or auto (got \"often\")", "encoder must be raw", "memory must be at least 0"} {
		if strings.Count(said, want) != 1 {
			t.Errorf("%q is not once in\n%s", want, said)
		}
	}
	for _, method := range []string{LayerWise, FullBatch} {
		p, err := Read(sections("hops: 0\nmodel: gcn\nmethod: "+method), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "hops must be at least 1") {
			t.Errorf("method %s without hops: %v", method, err)
		}
	}
	_, err = Read([]byte("method: layer-wise\nlayer_wise:\n  layers: many\n  lr: [1]\n  encoder: pca:0\ncolour: red\n"),
		map[string]string{"dropout": "much"}, nil)
	said = fmt.Sprint(err)
	for _, want := range []string{`[3:11] a value must be an integer (got "many")`, "[4:7] a value must be a number",
		"[5:12] encoder must be raw, mlp, or pca:K", "[6:1]", "colour", `dropout must be a number (got "much")`} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}

// TestFormerNames: there was no version with other names, and none is accepted.
func TestFormerNames(t *testing.T) {
	for _, text := range []string{"carry: scores", "unit_sum: true", "teleport: 0.2", "silence: 3s",
		"peers:\n- name: north\n"} {
		if _, err := Read([]byte(text+"\n"), nil, nil); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	_, err := Read(nil, map[string]string{"carry": "scores", "seed": "0x", "label_epsilon": "4"}, nil)
	for _, want := range []string{"carry: unknown setting", "label_epsilon: unknown setting", "seed"} {
		if !strings.Contains(errorText(err), want) {
			t.Errorf("the error of names that are no settings must have %s (got %v)", want, err)
		}
	}
}

// leaves adds the fields of a configuration that are no structs, by path, with their values.
func leaves(at string, v reflect.Value, to map[string]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		leaves(at, v.Elem(), to)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Anonymous {
				leaves(at, v.Field(i), to)
			} else {
				leaves(at+"."+f.Name, v.Field(i), to)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				leaves(at+"[]", v.Index(i), to)
			}
			to[at] = fmt.Sprint(v.Len())
			return
		}
		to[at] += fmt.Sprint(v.Interface())
	default:
		to[at] += fmt.Sprint(v.Interface(), " ")
	}
}

// TestEveryFieldHasASetting: a field of a trainer's configuration that no setting changes is one that somebody forgot
// here.
func TestEveryFieldHasASetting(t *testing.T) {
	// Fields that data decide, that papers fix, and that belong to a trainer which the program does not offer.
	fixed := []string{"Lambdas", "Spec.Units", "Spec.SiteShares.Scale", "Spec.SiteShares.Temperature", "Task",
		"Features", "Adjacent", "LastHop", "Classes", "Spec.Task", "Spec.Features", "Spec.Classes", "Optimizer.Beta1",
		"Optimizer.Beta2", "Optimizer.Eps", "Spec.Layers[].Relations", "Rows.Columns", "Spec.Decoder.Width",
		"Spec.Decoder.Relations"}
	data := task{Features: 30, Classes: 4, Relations: 6}
	if c, err := Defaults("", "").closedFormConfig(task{Features: 30, Numbered: true, Classes: 4}); err != nil ||
		c.Adjacent != 30 {
		t.Errorf("nodes without features must have 30 columns (got %d): %v", c.Adjacent, err)
	}
	linked := data // of which edges are predicted
	linked.Kind, linked.Links = graph.Links, []string{"likes"}
	config := func(p Plan, data task) (reflect.Value, bool) {
		if p.Method == ClassMeans {
			c, err := p.closedFormConfig(data)
			return reflect.ValueOf(c), err == nil
		}
		if p.Method == LayerWise {
			c, err := p.layerwise(data)
			return reflect.ValueOf(c), err == nil
		}
		if p.Method == MiniBatch {
			c, err := p.sampledConfig(data)
			return reflect.ValueOf(c), err == nil
		}
		c, err := p.endToEndConfig(data)
		return reflect.ValueOf(c), err == nil
	}
	others := map[string][]string{"encoder": {"raw", "mlp", "pca:7", "pca:7+classes"},
		"hidden": {"48"}, "class_weights": {"0=2", "balanced"}, "link_holdout": {"0.1,0.2"},
		"task":      {"auto", "classification", "regression", "links", "links:likes"},
		"link_time": {"at:1:2", "at:2000-01-01:2001-01-01"}, "init": {strings.Repeat("5e", 32)}}
	reached := map[string]map[string]bool{}
	everyPlan(func(p Plan) {
		if p.Task.Links() {
			return // of plans that the others represent
		}
		if p.Method != FullBatch && !slices.Contains([]string{"", "gcn", "sage", "gat"}, p.Gradient().Model) {
			return // full-batch trains the others, too, and methods share the fields of layers
		}
		was, ok := config(p, data)
		if !ok {
			t.Fatalf("%+v", p)
		}
		mark := func(name string, changed bool) {
			of := was.Type().String()
			if strings.HasPrefix(name, ".Spec.") || strings.HasPrefix(name, ".Optimizer.") {
				of = "shared" // not every trainer trains every layer
			}
			if reached[of] == nil {
				reached[of] = map[string]bool{}
			}
			reached[of][name] = reached[of][name] || changed
		}
		before := map[string]string{}
		leaves("", was, before)
		for name := range before {
			mark(name, false)
		}
		for _, s := range Settings(p.Method) {
			for _, text := range slices.Concat(others[s.Name], s.Choices,
				[]string{"true", "false", "1", "2", "3", "0.5", "0.7", "2,3", "30s", "3s"}) {
				q := p
				if q.set(s, text) != nil {
					continue
				}
				switch s.Name {
				case "delta":
					q.ClassMeans.Epsilon = 4
				}
				data, from := data, before
				if s.Name == "positive" {
					data.Classes, from = 2, map[string]string{}
					one, _ := config(p, data)
					leaves("", one, from)
				}
				if strings.HasPrefix(s.declared(), "Links.") || s.Name == "task" {
					p := p
					if p.Task.Kind = "links"; s.Name != "task" {
						q.Task = p.Task
					}
					data, from = linked, map[string]string{}
					one, ok := config(p, data)
					if !ok {
						continue
					}
					leaves("", one, from)
				}
				now, ok := config(q, data)
				if !ok {
					continue
				}
				after := map[string]string{}
				leaves("", now, after)
				for name, value := range after {
					mark(name, value != from[name])
				}
			}
		}
	})
	for trainer, fields := range reached {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			// follows from classmeans.Config and the labels
			closed := strings.HasPrefix(name, ".Spec.Closed.") || strings.HasPrefix(name, ".Spec.Encoder.Classes.")
			closed = closed || strings.HasPrefix(name, ".Classes.") // one recipe (classColumns)
			// of other methods
			closed = closed || trainer == "minibatch.Config" && (name == ".Exchange" || name == ".Schedule.Total" ||
				name == ".Links.Near")
			if !fields[name] && !closed && !slices.Contains(fixed, strings.TrimPrefix(name, ".")) {
				t.Errorf("no setting changes %s of %s", name, trainer)
			}
		}
	}
}

// TestClassWeights: weights are those of the data's classes, by name or by number; others are refused, as are weights
// that nothing reads.
func TestClassWeights(t *testing.T) {
	named, numbered := task{Features: 3, Classes: 3, Names: []string{"a", "b=c", "d"}}, task{Features: 3, Classes: 3}
	several, numbers := named, named
	several.Kind, numbers.Kind = graph.Several, graph.Numbers
	for _, c := range []struct {
		text, fault string
		data        task
		weights     []float32
	}{
		{"class_weights: [d=3, b=c=0.5]\nmethod: full-batch\npeers: 1", "", named, []float32{1, 0.5, 3}},
		{"class_weights: [2=4]", "", numbered, []float32{1, 1, 4}},
		{"class_weights: [d=3]\nmethod: full-batch", "", several, []float32{1, 1, 3}},
		{"class_weights: [d=3]", "with method class-means if a node may have several classes", several, nil},
		{"class_weights: [d=3]\nmethod: mini-batch", "where nodes have numbers", numbers, nil},
		{"class_weights: [e=3]\nmethod: full-batch", `classes of the data, such as "a" (got "e")`, named, nil},
		{"class_weights: [3=3]\nmethod: full-batch", `classes 0 to 2 (got "3")`, numbered, nil},
		{"class_weights: [d=3, d=4]\nmethod: full-batch", `a class once (got "d" twice)`, named, nil},
		{"class_weights: [d=x]\nmethod: full-batch", `CLASS=WEIGHT (got "d=x")`, named, nil},
		{"class_weights: [d]\nmethod: full-batch", `CLASS=WEIGHT (got "d")`, named, nil},
		{"class_weights: [d=0]", "above 0", named, nil},
		{"class_weights: [d=2, balanced]\nmethod: full-batch", `must be CLASS=WEIGHT (got "balanced")`, named, nil},
	} {
		p, err := Read(sections(c.text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var weights []float32
		switch {
		case p.Method == ClassMeans:
			one, bad := p.closedFormConfig(c.data)
			weights, err = one.ClassWeights, bad
		case p.Method == LayerWise:
			one, bad := p.layerwise(c.data)
			weights, err = one.ClassWeights, bad
		case p.Method == MiniBatch:
			one, bad := p.sampledConfig(c.data)
			weights, err = one.ClassWeights, bad
		default:
			one, bad := p.endToEndConfig(c.data)
			weights, err = one.ClassWeights, bad
		}
		if ok := c.fault == "" && err == nil || c.fault != "" && err != nil && strings.Contains(err.Error(),
			c.fault); !ok || !slices.Equal(weights, c.weights) {
			t.Errorf("%q has weights %v, must be %v; its fault is %v, must be %q", c.text, weights, c.weights, err,
				c.fault)
		}
	}
	if err := read(t, "class_weights: [yes=3, no=1, perhaps=2]\nmethod: full-batch", nil).Validate(); err != nil {
		t.Errorf("a plan with weights, of no data, is refused: %v", err)
	}
}

// TestManyFeatures: relations share matrices if nodes have many features, and settings that differ from the defaults
// stay.
func TestManyFeatures(t *testing.T) {
	p := Defaults(FullBatch, "rgcn")
	for _, test := range []struct {
		features, bases int
		set             func(*Plan)
		decay           float32
	}{
		{999, 0, func(*Plan) {}, 0.02},
		{1000, 2, func(*Plan) {}, 0.1},
		{1000, 3, func(p *Plan) { p.Joint().Bases, p.Gradient().Decay = 3, 0.5 }, 0.5},
	} {
		q := p
		test.set(&q)
		c, err := q.endToEndConfig(task{Features: test.features, Classes: 4, Relations: 6})
		if err != nil {
			t.Fatal(err)
		}
		if l := c.Spec.Layers[0]; l.Bases != test.bases || c.Optimizer.Decay != test.decay {
			t.Errorf("%d features: %d bases and decay %g, must be %d and %g", test.features, l.Bases, c.Optimizer.Decay,
				test.bases, test.decay)
		}
	}
}

// TestWithoutFeatures: models of typed edges have other defaults if nodes have no features, and settings that differ
// from the defaults stay.
func TestWithoutFeatures(t *testing.T) {
	data := task{Features: 300, Classes: 4, Relations: 6}
	widths := func(p Plan) (hidden, rounds int, decay float32) {
		t.Helper()
		c, err := p.endToEndConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		return c.Spec.Layers[0].Out, c.Rounds, c.Optimizer.Decay
	}
	p := Defaults(FullBatch, "rgcn")
	if hidden, rounds, decay := widths(p); hidden != 64 || rounds != 200 || decay != 0.02 {
		t.Errorf("with features: %d columns, %d epochs, decay %g", hidden, rounds, decay)
	}
	data.Numbered = true
	if hidden, rounds, decay := widths(p); hidden != 16 || rounds != 50 || decay != 5e-4 {
		t.Errorf("without features: %d columns, %d epochs, decay %g", hidden, rounds, decay)
	}
	p.Gradient().Hidden, p.Gradient().Rounds = 24, 70
	if hidden, rounds, decay := widths(p); hidden != 24 || rounds != 70 || decay != 5e-4 {
		t.Errorf("without features, set: %d columns, %d epochs, decay %g", hidden, rounds, decay)
	}
}
