package train

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
)

func valid() Config {
	return Config{Seed: 1, Rounds: 10, EvalEvery: 1, Metric: "accuracy", Exchange: "auto"}
}

// TestFaultsAreReportedTogether: one look at the error is enough to mend the configuration.
func TestFaultsAreReportedTogether(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	err := Config{Rounds: 0, Patience: -1, EvalEvery: 0, Checkpoint: -2, Metric: "beauty", Exchange: "gossip",
		Rows: comm.Coding{Values: "int2"}}.Validate()
	for _, want := range []string{
		"rounds must be at least 1 (got 0)", "patience must be at least 0 (got -1)",
		"eval_every must be at least 1 (got 0)", "checkpoint_every must be at least 0 (got -2)", "beauty",
		`exchange must be one of ["halo" "cover" "auto"] (got "gossip")`, "int2",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

// TestFingerprintCoversEveryField: whatever decides the result changes the fingerprint; how often checkpoints are
// written does not.
func TestFingerprintCoversEveryField(t *testing.T) {
	base := valid()
	seen := map[[32]byte]string{Fingerprint(base): "the base"}
	for name, set := range map[string]func(*Config){
		"seed": func(c *Config) { c.Seed++ }, "spec": func(c *Config) { c.Spec.Layers = []nn.LayerSpec{{Conv: "gcn"}} },
		"rounds": func(c *Config) { c.Rounds++ }, "patience": func(c *Config) { c.Patience++ },
		"eval_every": func(c *Config) { c.EvalEvery++ }, "metric": func(c *Config) { c.Metric = "auc" },
		"optimizer": func(c *Config) { c.Optimizer.LR = 1 }, "schedule": func(c *Config) { c.Schedule.Kind = "cosine" },
		"balanced": func(c *Config) { c.Balanced = true }, "inductive": func(c *Config) { c.Inductive = true },
		"rows": func(c *Config) { c.Rows.Values = "int8" }, "exchange": func(c *Config) { c.Exchange = "halo" },
		"init": func(c *Config) { c.Init = "5e" }, "positive": func(c *Config) { c.Positive = 1 },
		"class_weights": func(c *Config) { c.ClassWeights = []float32{1, 2} },
	} {
		c := base
		set(&c)
		f := Fingerprint(c)
		if other, ok := seen[f]; ok {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[f] = name
	}
	if n := reflect.TypeFor[Config]().NumField(); len(seen) != n { // all but Checkpoint, and the base
		t.Errorf("%d fields are tried, of %d: add the new one", len(seen)-1, n-1)
	}
	base.Checkpoint = 7
	if seen[Fingerprint(base)] != "the base" {
		t.Error("the interval of checkpoints changes the fingerprint")
	}
}

// TestEventsAsJSON freezes the lines that other programs read.
func TestEventsAsJSON(t *testing.T) {
	sent := comm.Counts{Halo: 1, Reduce: 2, Control: 3}
	for _, c := range []struct {
		event Event
		want  string
	}{
		{Event{Kind: RoundEnd, Stage: 1, StageName: "layer 1", Round: 3, Done: 4, Total: 10, Metric: "auc", Loss: 0.5,
			Val: math.NaN(), ValLoss: math.NaN(), Sent: sent},
			`"round","stage":1,"stage_name":"layer 1","round":3,"done":4,"total":10,"metric":"auc","loss":0.5,"val":null,"val_loss":null,"sent":{"halo":1,"reduce":2,"control":3}`},
		{Event{Kind: StageEnd, StageName: "all layers", Round: 10, Metric: "auc", BestRound: 7, Val: 0.75, ValLoss: 1,
			Test: 0.5, TestLoss: math.Inf(1), Sent: sent},
			`"stage","stage":0,"stage_name":"all layers","round":10,"metric":"auc","best_round":7,"val":0.75,"val_loss":1,"test":0.5,"test_loss":null,"sent":{"halo":1,"reduce":2,"control":3}`},
		{Event{Kind: Resync, Peer: 0, Other: 2, Differed: true, Distance: 1e-7},
			`"resync","stage":0,"stage_name":"","round":0,"peer":0,"other":2,"differed":true,"distance":1e-7`},
		{Event{Kind: HaloPlan, Layer: "conv1", Rows: 5, Width: 8, Refetched: 2, Kept: 96, Text: "why"},
			`"halo_plan","stage":0,"stage_name":"","round":0,"layer":"conv1","rows":5,"width":8,"refetched":2,"kept":96,"text":"why"`},
		{Event{Kind: Saved, Peer: 2}, `"saved","stage":0,"stage_name":"","round":0,"peer":2`},
		{Event{Kind: Warning, Text: `a "quoted" word`},
			`"warning","stage":0,"stage_name":"","round":0,"text":"a \"quoted\" word"`},
	} {
		got, err := json.Marshal(c.event)
		if want := `{"kind":` + c.want + `}`; err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}

func TestImprove(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name      string
		at        Position
		metric    eval.Metric
		val, loss float64
		better    bool
	}{
		{"the first", Position{BestRound: -1}, "accuracy", 0, 9, true},
		{"a higher metric", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "accuracy", 0.6, 9, true},
		{"a lower metric", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "accuracy", 0.4, 0.1, false},
		{"the same with a lower loss", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "accuracy", 0.5, 0.9, true},
		{"the same with the same loss", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "accuracy", 0.5, 1, false},
		{"a smaller error", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "mae", 0.4, 9, true},
		{"a larger error", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "rmse", 0.6, 0.1, false},
		{"no labels", Position{BestRound: 2, Best: 0.5, BestLoss: 1}, "accuracy", nan, nan, true},
	} {
		got := c.at
		if better := got.Improve(c.metric, 7, c.val, c.loss); better != c.better {
			t.Errorf("%s: better is %t", c.name, better)
		}
		want := c.at
		if c.better {
			want.BestRound = 7
		}
		if c.better && c.val == c.val {
			want.Best, want.BestLoss = c.val, c.loss
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// TestEndWithBest: the stage that validates best is the model's, of equal ones the first; without validation nodes it
// is the last one.
func TestEndWithBest(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		vals []float64
		want int
		text string
	}{
		{[]float64{0.5, 0.6, 0.7}, 3, ""},
		{[]float64{0.5, 0.7, 0.6}, 2,
			"layer 3 validates no better than layer 2 (auc 0.6000 and 0.7000): the model ends with layer 2"},
		{[]float64{0.7, 0.7, 0.7}, 1, "the model ends with layer 1"},
		{[]float64{nan, nan, nan}, 3, ""},
		{nil, 9, ""},
	} {
		r := Result{Ends: 9}
		for i, v := range c.vals {
			r.Record(Event{Kind: StageEnd, Stage: i + 1, StageName: StageName(i + 1), Val: v})
		}
		text := r.EndWithBest("auc")
		if r.Ends != c.want || !strings.HasSuffix(text, c.text) || (text == "") != (c.text == "") ||
			c.vals != nil && r.Final().Stage != c.want {
			t.Errorf("%v: ends with %d, said %q", c.vals, r.Ends, text)
		}
	}
	if last := measured().Final(); last.Stage != 0 {
		t.Errorf("%+v, want stage 0, which Ends names", last)
	}
	unfinished := measured()
	unfinished.Ends = 3
	if last := unfinished.Final(); last.Stage != 2 {
		t.Errorf("%+v, want the last one so far", last)
	}
}

// measured is a run of an encoder that is solved, a stage of three rounds that ended, and one of two that did not.
func measured() (r Result) {
	point := func(stage, round int) Event {
		return Event{Kind: RoundEnd, Stage: stage, StageName: StageName(stage), Round: round,
			Loss: float64(10*stage + round), Val: 0.5, ValLoss: 2, Sent: comm.Counts{Halo: int64(round)}}
	}
	end := func(stage int) Event {
		return Event{Kind: StageEnd, Stage: stage, StageName: StageName(stage), BestRound: 1, Val: 0.25, ValLoss: 3,
			Test: 0.75, TestLoss: 4, Sent: comm.Counts{Reduce: int64(stage)}}
	}
	for _, e := range []Event{end(0), point(1, 0), point(1, 1), point(1, 2), end(1), point(2, 0), point(2, 1)} {
		r.Record(e)
	}
	return r
}

// TestResultOfAResumedRun: what a checkpoint keeps is what was measured before its position, nothing less and nothing
// more.
func TestResultOfAResumedRun(t *testing.T) {
	whole := measured()
	rounds, stages := whole.Encode()
	for _, c := range []struct {
		at     Position
		points []string
		ended  int
	}{
		{Position{Stage: 2, Round: 2}, []string{"1.0", "1.1", "1.2", "2.0", "2.1"}, 2},
		{Position{Stage: 2, Round: 1}, []string{"1.0", "1.1", "1.2", "2.0"}, 2},
		{Position{Stage: 2}, []string{"1.0", "1.1", "1.2"}, 2},
		{Position{Stage: 1, Round: 2}, []string{"1.0", "1.1"}, 1},
		{Position{Stage: 1}, nil, 1},
		{Position{}, nil, 0},
	} {
		var r Result
		if err := r.Restore(rounds, stages, c.at, StageName); err != nil {
			t.Fatal(err)
		}
		if cut := whole.Until(c.at); !reflect.DeepEqual(r, cut) {
			t.Errorf("%+v: restored %+v, cut %+v", c.at, r, cut)
		}
		var points []string
		ended := 0
		for _, s := range r.Stages {
			if s.Ended {
				ended++
			}
			for _, p := range s.Curve {
				points = append(points, fmt.Sprintf("%d.%d", p.Stage, p.Round))
			}
		}
		if !reflect.DeepEqual(points, c.points) || ended != c.ended {
			t.Errorf("%+v: rounds %q and %d stages, want %q and %d", c.at, points, ended, c.points, c.ended)
		}
	}
	var r Result
	if err := r.Restore(rounds[1:], stages, Position{}, StageName); err == nil {
		t.Error("a row that is too short was taken")
	}
	if err := r.Restore(rounds, stages[1:], Position{}, StageName); err == nil {
		t.Error("a row that is too short was taken")
	}
}

// TestSeqOrdersPositions: the newest checkpoint has the largest number.
func TestSeqOrdersPositions(t *testing.T) {
	last := uint64(0)
	for _, p := range []Position{{}, {Round: 1}, {Round: 1 << 20}, {Stage: 1}, {Stage: 1, Round: 3}, {Stage: 2}} {
		if p.Seq() <= last {
			t.Errorf("%+v has number %d, the one before %d", p, p.Seq(), last)
		}
		last = p.Seq()
	}
}

// TestEventsPage: the reference page of events has a row for each kind, with the fields that the kind writes.
func TestEventsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(cells[0], "| `") {
			rows[strings.Trim(cells[0], "| `")] = strings.TrimSuffix(strings.TrimSpace(cells[2]), " |")
		}
	}
	kinds := []EventKind{RoundEnd, StageEnd, Resync, HaloPlan, Saved, Restored, Connection, Waiting, Trace,
		Note, Warning}
	for _, k := range kinds {
		var names []string
		for _, f := range (Event{Kind: k}).fields()[3:] {
			names = append(names, "`"+f.name+"`")
		}
		if got, want := rows[string(k)], strings.Join(names, ", "); got != want {
			t.Errorf("docs/reference/events.md: %s has the fields %s, want %s", k, got, want)
		}
	}
	if len(rows) != len(kinds) {
		t.Errorf("docs/reference/events.md: %d kinds, want %d", len(rows), len(kinds))
	}
}
