package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/svg"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// sample is the run of two sites, of which training knows all.
func sample(t *testing.T) cli.RunPage {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 80, Sites: 2, Classes: 3, Columns: 80, Train: 0.3, Val: 0.2},
		rng.New(1))
	g.Name = `<cora> & "friends"`
	shards, err := partition.Partition(g, partition.ByColumn{}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := heddle.Defaults(plan.LayerWise, "")
	o := &heddle.Result{Plan: p, Metric: "accuracy", Val: 0.8, Test: 0.812, Seconds: 200, Rounds: 100}
	o.Figures = &figures.Figures{Metric: "accuracy", Majority: 1, Temperature: 0.4, Test: set(0.812), Val: set(0.8),
		Threshold: &figures.Threshold{Goal: "f1", Probability: 0.31}}
	for k := range shards {
		o.Figures.Sites = append(o.Figures.Sites,
			figures.SiteFigures{Name: fmt.Sprint("peer ", k), Test: set(0.8), Val: set(0.7)})
		o.Peers = append(o.Peers, heddle.Traffic{Name: fmt.Sprint("peer ", k),
			Counts: comm.Counts{Halo: 3e6, Reduce: 2e6, Control: 1e4}, Wire: 6e6})
	}
	for k := range 2 {
		st := train.StageResult{Stage: k, Name: train.StageName(k), Ended: true, BestRound: 47, Val: 0.8,
			Test: math.NaN()}
		for r := range 500 {
			p := train.Point{Round: r, Loss: 2 * math.Exp(-float64(r)/20), Val: math.NaN()}
			if r%5 == 0 || r == 47 {
				p.Val = 0.8 - 0.5*math.Exp(-float64(r)/10)
			}
			st.Curve = append(st.Curve, p)
		}
		o.Stages, o.Ends = append(o.Stages, st), k
	}
	return cli.RunPage{Result: o, Plan: p, Shards: shards, Names: []string{"north", "a hospital with a very long name"},
		Settings: "model: gcn\n", Command: "heddle train --seed 1"}
}

// set are figures of 40 nodes.
func set(metric figures.Value) figures.Set {
	none := figures.Value(math.NaN())
	return figures.Set{Rows: 40, Metric: metric, Low: metric - 0.1, High: metric + 0.1, Baseline: 0.5, Accuracy: metric,
		MicroF1: metric, MacroF1: 0.7, AUC: none, AP: none, ECE: 0.123, Calibrated: 0.021,
		Confusion: [][]int64{{9, 1, 0}, {0, 20, 0}, {4, 3, 3}}, Classes: []figures.Class{{Name: "well", Labelled: 10,
			Predicted: 13, Precision: 0.69, Recall: 0.9, F1: 0.78},
			{Name: "ill & waiting for a bed", Labelled: 20, Predicted: 24, Precision: 0.83, Recall: 1, F1: 0.91},
			{Name: "gone", Labelled: 10, Predicted: 3, Precision: 1, Recall: 0.3, F1: none}}}
}

// written returns the page of r.
func written(t *testing.T, r cli.RunPage) string {
	t.Helper()
	var b strings.Builder
	if err := (Pages{}).WriteRun(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	html := written(t, sample(t))
	if n := strings.Count(html, "<svg"); n != 4 {
		t.Errorf("charts must be of sites, loss, accuracy and bytes (got %d)", n)
	}
	for _, want := range []string{"&lt;cora&gt; &amp;", "81.20 %",
		"2 sites (north and a hospital with a very long name), simulated on one machine",
		"names the right class of 81.2 % (95 % interval 71.2 to 91.2 %) of 40 test nodes",
		"Naming class ill &amp; waiting for a bed for every node would give 50.0 %",
		"4 nodes of class gone are called well, of 8 mistakes", "0.15)", "calibration error after", "12.30 %",
		"divided by 0.4,", "which was fitted on validation nodes.</p>",
		"chose for f1, and that is only as near as they come", "3 minutes", "3.00 MB",
		"80.00 %", "none", "heddle train --seed 1",
		"a hospital with a v…", "the model ends here", "chosen round", "What left each site", "rows"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	// The namespaces in <svg> are names and not fetched; any other address would be.
	for _, bad := range []string{"<script", "src=", "<link", "@import", "url(", "peer 0", "#-", "NaN",
		"font-family:Liberation"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	charts := strings.Split(html, "<svg")[1:]
	for _, chart := range charts {
		body, _, _ := strings.Cut(chart, "</svg>")
		var title struct {
			Text string `xml:"title"`
		}
		if err := xml.Unmarshal([]byte("<svg"+body+"</svg>"), &title); err != nil || title.Text == "" {
			t.Errorf("a chart must be XML with a title: %q, %v", title.Text, err)
		}
		if strings.Contains(strings.ReplaceAll(body, "fill:none", ""), "#") {
			t.Errorf("all colours of a chart must come from the style sheet:\n%.300s", body)
		}
	}
}

// TestRanks: the page of a run of links has their ranks, of all, by relation and by site.
func TestRanks(t *testing.T) {
	r := sample(t)
	of := func(mrr float64) *eval.Ranks {
		return &eval.Ranks{Links: 40, MRR: mrr, Hits: map[int]float64{1: 0.21, 3: 0.32, 10: 0.43, 50: 0.54}, AUC: 0.91}
	}
	r.Result.Figures, r.Result.Metric, r.Result.Plan.Task.Kind, r.Result.Test = nil, "mrr", "links", 0.512
	r.Result.Links = &eval.RankedLinks{Val: of(0.45), Test: of(0.512),
		Relations: []eval.RankedLinks{{Name: "takes", Val: of(0.4), Test: of(0.611)}, {Name: "sees"}},
		Sites: []eval.RankedLinks{{Name: "peer 0", Val: of(0.4), Test: of(0.477)},
			{Name: "peer 1", Val: of(0.3), Test: of(0.533)}}}
	html := written(t, r)
	for _, must := range []string{"Where held-out links rank", "MRR 0.512 among random pairs", "takes", "0.6110",
		"sees", "0.4770", "a hospital with a very long name", "0.5330", "all together", "0.5400", "0.9100"} {
		if !strings.Contains(html, must) {
			t.Errorf("the page has no %q", must)
		}
	}
	if strings.Contains(html, "class by class") || strings.Contains(html, "NaN") {
		t.Error("the page has classes or NaN, must have ranks alone")
	}
}

// A page has its parts, and one bar is no chart.
func TestPage(t *testing.T) {
	var b strings.Builder
	p := Page{Title: "<cora>", Lead: []string{"Joining paid: +14.4 points."}, Settings: "model: gcn\n",
		Command: "heddle compare --config settings.yaml", Sections: []Section{
			{Charts: Bars("Ways", "accuracy", []Bar{{"alone", 0.7, 0.65, 0.75}, {"together", 0.8, 0.78, 0.82}}),
				Tables: []cli.Table{{Head: []string{"way", "accuracy"},
					Rows: [][]string{{"each site alone", "70.1"}}}}},
			{Title: "Site by site", Charts: Bars("Sites", "accuracy", []Bar{{"north alone", 0.7, 0.65, 0.75}}),
				Tables: []cli.Table{{Head: []string{"site", "alone"}, Rows: [][]string{{"north", "68.2"}}}}},
			{Title: "What the figures mean", Notes: []string{"5 runs."}}}}
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, want := range []string{"&lt;cora&gt;", "Joining paid: &#43;14.4 points.", "each site alone", "68.2",
		"5 runs.", "model: gcn", "heddle compare --config"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if n := strings.Count(html, "<svg"); n != 1 {
		t.Errorf("one chart is of the ways, and one bar is no chart (got %d)", n)
	}
}

// A curve has no more points than can be seen, but the chosen round among them.
func TestCharts(t *testing.T) {
	curve := make([]train.Point, 10_000)
	for k := range curve {
		curve[k] = train.Point{Round: k, Loss: float64(k)}
	}
	xy := curvePoints(curve, 4321, func(q train.Point) float64 { return q.Loss })
	if len(xy) > points+2 || !slices.Contains(xy, svg.Point{X: 4321, Y: 4321}) || xy[len(xy)-1].X != 9999 {
		t.Errorf("%d points of a curve must be at most %d, with the chosen and the last round", len(xy), points+2)
	}
}

// TestChosenAfterTheLastRound: the state after the last round has a ring, too, at its own figure; and metrics have
// names.
func TestChosenAfterTheLastRound(t *testing.T) {
	r := sample(t)
	r.Result.Stages = r.Result.Stages[1:]
	s := &r.Result.Stages[0]
	s.BestRound, s.Val = 500, 0.9
	r.Result.Metric = "auc"
	html := written(t, r)
	for _, want := range []string{"validation AUC by round: layer 1 from 0.3 to 0.9<", "chosen round",
		"Its AUC is 81.2 %"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if n := strings.Count(html, "A ring marks"); n != 2 {
		t.Errorf("both charts must mark the chosen round (got %d)", n)
	}
}

func TestWriteWithoutCurves(t *testing.T) {
	r := sample(t)
	for i := range r.Result.Stages {
		r.Result.Stages[i].Curve = nil
	}
	r.Shards = []*shard.Shard{shard.Whole(r.Shards[0].Alone())}
	r.Result.Peers, r.Result.Figures = []heddle.Traffic{{Name: "alone"}}, nil
	r.Result.Test = math.NaN()
	html := written(t, r)
	for _, want := range []string{"in one place", "nothing was sent", "There are no test nodes"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(html, "<svg") || strings.Contains(html, "What left") {
		t.Error("one site has no charts of sites, and nothing leaves it")
	}
}

// TestRounds: rounds of class means are a table of what was sent, instead of curves.
func TestRounds(t *testing.T) {
	r := sample(t)
	layout := closed.Layout{Rounds: 3, Alone: 1, Hops: 4, LogitHops: 2, Residual: true, Directions: 2, AllHops: true}
	model, err := nn.New(nn.Spec{Task: "single", Features: 10, Classes: 3, LayerOutput: nn.Hidden, Closed: &layout,
		Encoder: nn.EncoderSpec{Kind: "closed", Out: 3}}, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	r.Result.Model, r.Result.Ends = model.UpTo(2), 0
	r.Result.Stages = []train.StageResult{{Ended: true, BestRound: 1, Val: 0.75,
		Curve: []train.Point{{Val: 0.7}, {Round: 1, Val: 0.75}, {Round: 2, Val: 0.74}}}}
	const sent = "<td class=\"long\">of each boundary node 4 numbers over 4 hops and 2 numbers over 2 hops</td>"
	html := written(t, r)
	for _, must := range []string{`<th scope="row">1</th><td>none</td><td>70.00 %</td><td></td>`,
		`<th scope="row">2</th>` + sent + `<td>75.00 %</td><td>&#43;5.00 points</td><td>this is the model</td>`,
		sent + "<td>74.00 %</td><td>-1.00 points</td><td></td>"} {
		if !strings.Contains(html, must) {
			t.Errorf("the page has no %q", must)
		}
	}
	layout.Unconnected = true
	r.Result.Model.Spec.Closed = &layout
	if html = written(t, r); strings.Contains(html, "boundary node") || strings.Contains(html, "accuracy by round") {
		t.Error("no row is sent if no edge leads to another site, and rounds of class means have no curves")
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 9999: "10.0 kB", 999_499: "999 kB",
		999_500: "1.00 MB", 1_782_000_000: "1.78 GB"} {
		if got := cli.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, must be %s", n, got, want)
		}
	}
}

// two gives r figures of two classes, with 40 cases, 10 of them ill.
func two(r *cli.RunPage) *figures.Figures {
	f := r.Result.Figures
	f.Positive, f.Majority, f.Test.Low, f.Metric = 1, 0, 0.71, "accuracy"
	f.Test.Classes = []figures.Class{{Name: "well", Labelled: 30, Predicted: 28, Precision: 25. / 28, Recall: 25. / 30},
		{Name: "ill", Labelled: 10, Predicted: 12, Precision: 7. / 12, Recall: 0.7}}
	f.Test.Confusion = [][]int64{{25, 5}, {3, 7}}
	f.Threshold = &figures.Threshold{Class: "ill", Goal: "recall@precision=0.5", Probability: 0.31, Reached: true}
	return f
}

// TestInUse: a person who acts on predictions reads how many of 100 are found and right, from which threshold on, on
// which nodes, by which column, and what not to do.
func TestInUse(t *testing.T) {
	r := sample(t)
	f := two(&r)
	f.By = "sex"
	f.Groups = []figures.Group{{Name: "f", Rows: 25, Right: 20, Positives: 6, Alarms: 8, Found: 5},
		{Name: "m", Rows: 15, Right: 12, Positives: 4, Alarms: 4, Found: 2}}
	html := written(t, r)
	for _, want := range []string{"Using the model",
		"measured on 40 test nodes at all sites, which training did not use",
		"alarm for class ill if its probability is 31.0 % or more, a threshold that the validation nodes chose for " +
			"recall@precision=0.5. Of 100 cases 30 get one.",
		"Of 100 cases of class ill it finds 70 (40 to 89). Of 100 alarms 58 (32 to 81) are right",
		"Use it to choose the cases that a person looks at first",
		"Do not use it to decide about a case without a person",
		`<th scope="row">f</th><td>25</td><td>80 (61 to 91)</td>`,
		`<td>6</td><td>83 (44 to 97)</td><td>8</td><td>62 (31 to 86)`,
		"Test nodes by sex, at all sites: f 83.3 %; m 50.0 %"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(html, "What to try") {
		t.Error("a model that beats its baseline has nothing to try")
	}
	r.Result.Metric, r.Result.Card.Positive = "auc", "ill"
	if html = written(t, r); strings.Count(html, "test AUC of class ill") < 3 ||
		strings.Contains(html, "validation AUC<") {
		t.Error("an AUC must name its class")
	}
	f.Untrained, f.Test.Classes[1].Labelled = []string{"ill"}, 9
	html = written(t, r)
	for _, want := range []string{"Only 9 cases of class ill were measured", "It cannot find class ill"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestTries: a model that does not beat its baseline has a box with settings that it did not use, as flags, or as lines
// of the plan if other sites have to agree.
func TestTries(t *testing.T) {
	r := sample(t)
	f := two(&r)
	f.Threshold, f.Test.Baseline = nil, 0.75
	html := written(t, r)
	for _, want := range []string{"Do not use it: its accuracy is not shown to be better than the 75.00 % of a guess",
		"What to try", "<code>--metric auc</code>", "<code>--threshold f1</code>",
		"<code>--class-weights balanced</code>", "<code>--method class-means</code>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	r.Shards, r.Result.Plan.ClassWeights = r.Shards[:1], []string{"balanced"}
	if html = written(t, r); !strings.Contains(html, "<code>threshold: f1</code>") ||
		strings.Contains(html, "<code>class_weights") {
		t.Error("at one of several sites what to try are lines of the plan, without what it has")
	}
}

// TestLeastSpan: a tenth of a point of noise does not fill a chart.
func TestLeastSpan(t *testing.T) {
	s := train.StageResult{Name: "layer 1"}
	for k := range 20 {
		s.Curve = append(s.Curve, train.Point{Round: k, Val: 0.8 + 0.001*float64(k%2)})
	}
	charts := curves(train.Result{Stages: []train.StageResult{s}}, "accuracy")
	line := string(charts[len(charts)-1].SVG)
	_, line, _ = strings.Cut(line, `<polyline points="`)
	line, _, _ = strings.Cut(line, `"`)
	low, high := math.Inf(1), math.Inf(-1)
	for _, at := range strings.Fields(line) {
		var x, y float64
		if _, err := fmt.Sscanf(at, "%f,%f", &x, &y); err != nil {
			t.Fatal(err)
		}
		low, high = min(low, y), max(high, y)
	}
	if span := high - low; !(span > 0 && span < height/20) {
		t.Errorf("noise of a tenth of a point spans %.1f of %d points", span, height)
	}
}
