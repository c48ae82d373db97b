package heddle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/plan/contest"
	"github.com/heddle-gnn/heddle/traffic"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/tune"
)

// sections moves experimental settings of a text to their section.
func sections(text string) []byte {
	usual, experimental := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		name, _, _ := strings.Cut(line, ":")
		if s, ok := plan.Lookup(name); ok && s.Experimental {
			experimental += "\n  " + line
		} else {
			usual += line + "\n"
		}
	}
	if experimental != "" {
		usual += "experimental:" + experimental
	}
	return []byte(usual)
}

// read makes a plan that must be sound. Experimental settings may be anywhere in its text.
func read(t *testing.T, text string) Plan {
	t.Helper()
	p, err := ReadPlan(sections(text), nil, nil)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return *p
}

// contested is a plan of class-means, with settings of its own, and a graph over so many peers.
func contested(t *testing.T, peers int, given string) Local {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 1200}, rng.New(1))
	p := read(t, "method: class-means\npolicy: random\ntransport: memory\n"+given)
	p.Peers = peers
	shards, err := Split(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return Local{Plan: p, Shards: shards, OnEvent: func(Event) {}}
}

// few are three candidates.
func few(t *testing.T, p Plan) (all []plan.Candidate) {
	t.Helper()
	for _, c := range p.Candidates() {
		if slices.Contains([]string{"own-rows", "classes", "residual"}, c.Name) {
			all = append(all, c)
		}
	}
	if len(all) != 3 {
		t.Fatalf("%d candidates, must be 3", len(all))
	}
	return all
}

func (l Local) mustTune(t *testing.T, all []plan.Candidate) *Result {
	t.Helper()
	r, err := l.contest(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// choice returns the attempt that was chosen, of which there is one.
func choice(t *testing.T, r *Result) Attempt {
	t.Helper()
	i := slices.IndexFunc(r.Tried, func(a Attempt) bool { return a.Chosen })
	if i < 0 || slices.ContainsFunc(r.Tried[i+1:], func(a Attempt) bool { return a.Chosen }) {
		t.Fatalf("%+v: one must be chosen", r.Tried)
	}
	return r.Tried[i]
}

// outcomes is what must be the same whatever way a contest takes.
func outcomes(r *Result) (text string) {
	for _, a := range r.Tried {
		text += fmt.Sprintf("%s %v ± %v, %d of %d bytes, %q, %t\n", a.Name, a.Val, a.Error, a.Sent, a.Limit, a.Ended, a.Chosen)
	}
	return text
}

func parametersOf(r *Result) (digests []uint32) {
	for _, l := range append(slices.Clone(r.Model.Layers), r.Model.Encoder.Layer) {
		if l != nil {
			for _, p := range l.Params() {
				digests = append(digests, train.Digest(p.Value.Data))
			}
		}
	}
	if p := r.Model.Encoder.Proj; p != nil {
		digests = append(digests, train.Digest(p.W.Value.Data))
	}
	return digests
}

// TestTuneIsDeterministic: every transport gives the same contest and the same model, which is the one that the chosen
// plan gives by itself.
func TestTuneIsDeterministic(t *testing.T) {
	for _, peers := range []int{1, 2, 4} {
		l := contested(t, peers, "")
		memory := l.mustTune(t, few(t, l.Plan))
		l.Plan.Transport = "libp2p"
		network := l.mustTune(t, few(t, l.Plan))
		if a, b := outcomes(memory), outcomes(network); a != b {
			t.Errorf("%d peers: over the network\n%sin memory\n%s", peers, b, a)
		}
		a := choice(t, memory)
		if a.Val != memory.Validated() || a.Name == "" || (a.Sent > 0) != (peers > 1) {
			t.Errorf("%d peers: chosen %+v, but the model has validation %v", peers, a, memory.Validated())
		}
		text, err := a.Plan.MarshalYAML()
		if err != nil {
			t.Fatal(err)
		}
		alone, err := Local{Plan: read(t, string(text)), Shards: l.Shards}.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*Result{"over the network": network, "by itself": alone} {
			if !slices.Equal(parametersOf(r), parametersOf(memory)) || r.Test != memory.Test {
				t.Errorf("%d peers: the model of %s is another one %s", peers, a.Name, name)
			}
		}
	}
}

// TestTuneResumes: after an interruption in any candidate, no finished one is trained again, and the contest comes to the
// same end.
func TestTuneResumes(t *testing.T) {
	whole := contested(t, 2, "")
	all := few(t, whole.Plan)
	want := whole.mustTune(t, all)
	for _, c := range []struct {
		in   string
		stop func(Event) bool
	}{
		{in: "classes", stop: func(e Event) bool { return e.Kind == train.CandidateBegin }},
		{in: "residual", stop: func(e Event) bool { return e.Kind == train.RoundEnd && e.Round == 1 }},
		{in: "residual", stop: func(e Event) bool { return e.Kind == train.CandidateEnd }},
	} {
		l := whole
		l.State = t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		now := ""
		l.OnEvent = func(e Event) {
			if e.Kind == train.CandidateBegin {
				now = e.Candidate
			}
			if now == c.in && c.stop(e) {
				cancel()
			}
		}
		l.contest(ctx, all) // after the end of the last candidate there is no error
		if left, err := l.Interrupted(); !left || err != nil {
			t.Errorf("%s: interrupted %t, %v", c.in, left, err)
		}
		began := []string{}
		l.OnEvent = func(e Event) {
			if e.Kind == train.CandidateBegin {
				began = append(began, e.Candidate)
			}
		}
		again := l.mustTune(t, all)
		if slices.Contains(began, "labels") {
			t.Errorf("interrupted in %s, after which %q were trained", c.in, began)
		}
		if !slices.Equal(parametersOf(again), parametersOf(want)) || choice(t, again).Name != choice(t, want).Name || again.Val != want.Val {
			t.Errorf("interrupted in %s: chosen\n%swithout an interruption\n%s", c.in, outcomes(again), outcomes(want))
		}
	}
	l := whole
	l.State = t.TempDir()
	l.mustTune(t, all)
	all[0].Plan.Seed++
	var fault *InputError
	if _, err := l.contest(t.Context(), all); !errors.As(err, &fault) ||
		!strings.Contains(err.Error(), "another plan or of other data: remove "+l.State) {
		t.Errorf("%v, must say that the outcome is of another plan", err)
	}
}

// TestTuneKeepsItsBudget counts the bytes of contests with all candidates.
func TestTuneKeepsItsBudget(t *testing.T) {
	before := 0
	for _, budget := range []string{"0.7", "5", "30"} {
		l := contested(t, 4, "budget: "+budget)
		r := l.mustTune(t, l.Plan.Candidates()) // those of few features, too
		tried, sent := 0, int64(0)
		for _, a := range r.Tried {
			if sent += a.Sent; a.Sent > 0 {
				tried++
			} else if !strings.HasPrefix(a.Ended, "over the budget") && !strings.HasPrefix(a.Ended, "the same as") &&
				!strings.HasPrefix(a.Ended, "not worth its bytes: its 512 random features") {
				t.Errorf("%s MB: %s is %q", budget, a.Name, a.Ended)
			}
			if a.Sent > a.Limit {
				t.Errorf("%s sent %d bytes, at most %d", a.Name, a.Sent, a.Limit)
			}
		}
		if float64(sent) > float64(l.Plan.Budget)*1e6 || tried <= before {
			t.Errorf("%s MB: %d candidates sent %d bytes", budget, tried, sent)
		}
		before = tried
	}
	l := contested(t, 4, "budget: 0.001")
	var fault *InputError
	if _, err := l.Train(t.Context()); !errors.As(err, &fault) || !strings.Contains(err.Error(), "over the budget") {
		t.Errorf("%v, must say that no plan fits", err)
	}
}

// TestLimits: no run without a failure sends more than its limit, and the limit of one that no patience ends is near.
func TestLimits(t *testing.T) {
	for given, most := range map[string]float64{
		"single: true":                         1.9, // sums cross in place of rows
		"single: true\nexchange: halo":         1.8,
		"single: true\nclass_target: residual": 3, // validation ends the rounds early
		"single: true\nclass_target: labels\ninductive: true\nmetric: macro-f1":                              4,
		"method: layer-wise\nrounds: 6\nencoder: raw\nhidden: 16":                                            6, // sparse rows are taken for dense
		"method: layer-wise\nmodel: sage\nrounds: 6\nencoder: mlp\nlayer_output: logits\nhidden: 16":         1.5,
		"method: layer-wise\nmodel: gat\nrounds: 6\nencoder: pca:16\nhidden: 16\nrows: bf16\nexchange: halo": 1.5,
		"method: layer-wise\nmodel: gin\nrounds: 6\nhops: 2\neval_every: 2\nencoder: pca:16\nhidden: 16":     1.5,
		"method: layer-wise\nrounds: 6\nencoder: pca:16\nhidden: 16\ninductive: true\nresidual: true":        1.5,
		"method: layer-wise\nrounds: 6\nencoder: pca:16\nhidden: 16\nupdates: int8\nsums: int16":             1.5,
		"method: layer-wise\nrounds: 6\nencoder: pca:16\nhidden: 16\nneighbours: 3":                          1.5,
		"method: layer-wise\nmodel: sage\nrounds: 6\nencoder: pca:16+classes\nhidden: 16\nlocal_steps: 5":    3,
		"method: layer-wise\nrounds: 6\nencoder: pca:16\nhidden: 256\nlayer_output: logits\nupdates: int8":   1.5,
	} {
		for _, peers := range []int{1, 3} {
			l := contested(t, peers, "")
			l.Plan = read(t, given+"\ntransport: memory")
			r, err := l.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			size := contest.Extent(l.Plan, l.Shards[0], nil)
			for _, s := range l.Shards[1:] {
				size = size.Plus(contest.Extent(l.Plan, s, nil))
			}
			limit, err := limitOf(l.Plan, l.Shards[0], size)
			sent := r.Total()
			if err != nil || sent.Total() > limit || float64(limit) > most*float64(sent.Total())+1 {
				t.Errorf("%d peers, %q: sent %d bytes (%+v), at most %d: %v", peers, given, sent.Total(), sent.Counts, limit, err)
			}
		}
	}
}

// limitOf is contest.Limit, and what layer-wise training sends at most.
func limitOf(p Plan, own *shard.Shard, e tune.Extent) (int64, error) {
	if p.InClosedForm() {
		return contest.Limit(p, own, e)
	}
	c, err := p.Layerwise(own)
	if err != nil {
		return 0, err
	}
	labelled := int64(e.Counts(own.Labels.Kind(), p.Seed).Labelled)
	l, err := traffic.Layerwise(c, traffic.Members{Peers: int(e.Peers), Nodes: e.Nodes, Train: labelled, Secure: p.Secure(int(e.Peers))})
	return l.Bytes(e.Peers, e.Halo), err
}

// TestTuneWithoutChoice: where no candidate can be trained the error says why.
func TestTuneWithoutChoice(t *testing.T) {
	l := contested(t, 2, "")
	all := few(t, l.Plan)
	for i := range all {
		all[i].Fault = errors.New("not today")
	}
	if _, err := l.contest(t.Context(), all); err == nil || !strings.Contains(err.Error(), "residual: not today") {
		t.Errorf("%v, must say that none was trained", err)
	}
}

// TestNoTestFigureBeforeTheChoice: events of candidates have validation figures only; the result has the test figure of
// the choice.
func TestNoTestFigureBeforeTheChoice(t *testing.T) {
	l := contested(t, 2, "")
	stages := 0
	l.OnEvent = func(e Event) {
		if e.Kind == train.StageEnd {
			stages++
			if !math.IsNaN(e.Test) || !math.IsNaN(e.TestLoss) || math.IsNaN(e.Val) {
				t.Errorf("stage %q ends with test %v, test loss %v, validation %v", e.StageName, e.Test, e.TestLoss, e.Val)
			}
		}
	}
	if r := l.mustTune(t, few(t, l.Plan)); stages < 2 || math.IsNaN(r.Test) || math.IsNaN(r.Stages[0].Test) {
		t.Errorf("after %d stages test %v, stages %+v", stages, r.Test, r.Stages)
	}
}

// TestTuneEndsWithItsContext: no candidate begins after the context has ended.
func TestTuneEndsWithItsContext(t *testing.T) {
	l := contested(t, 2, "")
	ctx, cancel := context.WithCancel(t.Context())
	after := 0
	l.OnEvent = func(e Event) {
		if ctx.Err() != nil && e.Kind != train.Trace {
			after++
		}
		if e.Kind == train.RoundEnd {
			cancel()
		}
	}
	if _, err := l.contest(ctx, few(t, l.Plan)); !errors.Is(err, context.Canceled) || after > 2 {
		t.Errorf("%v, and %d events after the end", err, after)
	}
}

// TestAutoWithoutFeatures: nodes without features are told by their neighbours, and the model by which it is done knows
// them again.
func TestAutoWithoutFeatures(t *testing.T) {
	l := contested(t, 2, "rows: float32")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 1200}, rng.New(1))
	g.X = graph.Features{}
	r, err := Train(t.Context(), g, l.Plan)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Predict(r.Model, g)
	if err != nil {
		t.Fatal(err)
	}
	test, _, err := p.Score(r.Metric, g)
	if share := 1.0 / float64(g.Labels.Classes); err != nil || r.Test < 3*share || math.Abs(test-r.Test) > 0.01 {
		t.Errorf("test %.3f, and %.3f by the model's own predictions (%v); %.3f is chance", r.Test, test, err, share)
	}
	other := *g
	other.X = graph.Features{Dense: mat.New(g.N(), g.N())}
	var fault *InputError
	if _, err := Predict(r.Model, &other); !errors.As(err, &fault) || !strings.Contains(err.Error(), "must have no features") {
		t.Errorf("%v, must say that nodes have no features", err)
	}
}

// TestAutoNeedsLabels: where nothing validates, or most classes have too few training nodes, the error names ways out.
func TestAutoNeedsLabels(t *testing.T) {
	l := contested(t, 2, "")
	for labelled, says := range map[int]string{1: "fewer than 5 training nodes (min_class): label more nodes, set min_class lower", 5: "(got 0)"} { // of each class
		g := dataset.Sites(dataset.SitesConfig{Nodes: 300}, rng.New(1))
		training := make([]int, g.Labels.Classes)
		for i, class := range g.Labels.Class {
			g.Split[i] = graph.Test
			if training[class] < labelled {
				g.Split[i] = graph.Train
				training[class]++
			}
		}
		_, err := Train(t.Context(), g, l.Plan)
		var fault *InputError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), says) {
			t.Errorf("%d labels a class: %v, must say %q", labelled, err, says)
		}
		one := Defaults(Plan{Single: true})
		one.Peers, one.Transport, one.Policy, one.MinClass = 2, "memory", "random", min(labelled, one.MinClass)
		if _, err := Train(t.Context(), g, one); err != nil {
			t.Errorf("%d labels a class, one closed form: %v", labelled, err)
		}
	}
}

// TestCandidatesThatAreTheSame: what comes to the same with the labels at hand is trained once.
func TestCandidatesThatAreTheSame(t *testing.T) {
	l := contested(t, 2, "")
	all := few(t, l.Plan)[:2]
	twice := plan.Candidate{Name: "twice", Plan: all[1].Plan}
	twice.Plan.ClassTarget = "labels" // 3 % of the nodes are in training: auto comes to that
	for _, a := range l.mustTune(t, append(all, twice)).Tried {
		if same := strings.HasPrefix(a.Ended, "the same as classes"); same != (a.Name == "twice") || same && a.Sent > 0 {
			t.Errorf("%s: %+v", a.Name, a)
		}
	}
}

// TestBarredCandidates: a candidate that any site rules out is passed over at all of them.
func TestBarredCandidates(t *testing.T) {
	l := contested(t, 2, "")
	all := l.Plan.Candidates()
	if len(all)+1 >= tune.MaxSteps {
		t.Fatalf("%d candidates, must be fewer than %d", len(all), tune.MaxSteps-1)
	}
	all[1].Fault = errors.New("its policy")
	barred := make([]int64, len(all))
	barred[1], barred[2] = 1, 2
	c, err := contest.New(l.Plan, all, tune.Extent{Peers: 3, Halo: 9, Labels: []int64{9, 9, 9, 0, 0, 0, 27, 0, 50}, Barred: barred}, l.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "its policy", "another site does not allow it", ""} {
		if got := c.Verdicts[i]; got.Ended != want || (got.Limit > 0) != (want == "") {
			t.Errorf("%s: %+v, must be %q", all[i].Name, got, want)
		}
	}
	wide := slices.IndexFunc(all, func(c plan.Candidate) bool { return c.Many })
	if got, must := c.Verdicts[wide].Ended, "its 512 random features take 5120 training nodes (there are 27)"; !strings.Contains(got, must) {
		t.Errorf("%s: %q, must say %q", all[wide].Name, got, must)
	}
}

// TestRowsOfOneTarget: rows of one target alone are sent, but where no row crosses: there plans of both are tried.
func TestRowsOfOneTarget(t *testing.T) {
	l := contested(t, 2, "")
	var all []plan.Candidate
	for _, c := range l.Plan.Candidates() {
		if slices.Contains([]string{"own-rows", "own-residual", "residual", "labels"}, c.Name) {
			c.Target = c.Plan.ClassTarget // as of nodes of many features
			all = append(all, c)
		}
	}
	for halo, want := range map[int64][]string{9: {"own-rows", "own-residual", "labels"}, 0: {"own-rows", "own-residual", "residual", "labels"}} {
		size := tune.Extent{Peers: 3, Halo: halo, Labels: []int64{9, 9, 9, 0, 0, 0, 27, 0, 50}, Barred: make([]int64, len(all))}
		c, err := contest.New(l.Plan, all, size, l.Shards[0])
		if err != nil {
			t.Fatal(err)
		}
		var tried []string
		for i, ok := c.Next(); ok; i, ok = c.Next() {
			tried = append(tried, all[i].Name)
			c.End(i, tune.Verdict{Val: 0.8})
		}
		slices.Sort(tried)
		slices.Sort(want)
		if !slices.Equal(tried, want) {
			t.Errorf("%d rows cross: plans %v must be tried (got %v)", halo, want, tried)
		}
	}
}
