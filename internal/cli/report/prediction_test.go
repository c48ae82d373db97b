package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// guess are predictions of three classes for 50 nodes of one of two sites, ten of them with a label of class 1 or 0.
func guess(t *testing.T) Prediction {
	t.Helper()
	r := sample(t)
	left, err := disclosure.Of(r.Plan, r.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	card := modelfile.Card{Dataset: "last year's patients", Metric: "accuracy", Test: 0.81, Temperature: 0.5,
		Classes: []string{"well", "ill", "<unknown>"}}
	p := Prediction{Data: "this year's patients", File: "model.safetensors", Model: "gcn", Card: card,
		KnownAs: "test nodes", Score: 0.8, Labels: graph.Labels{Classes: 3, Class: make([]int32, 50)},
		Date: time.Unix(0, 0), Notes: []string{"A note."}}
	logits := mat.New(50, 3)
	for i := range 50 {
		logits.Set(i, i%2, 0.3*float32(1+i%4))
		p.Labels.Class[i] = -1
	}
	for i := range int32(10) {
		p.Known, p.Labels.Class[i] = append(p.Known, i), i%2
	}
	p.Labels.Class[8], p.Labels.Class[9] = 1, 0
	p.Predictions = heddle.Predictions{Logits: logits}.By(card)
	p.Together = &Together{Site: "north", Neighbours: 12, Edges: 34, Left: left,
		Inference: &heddle.Inference{Metric: "accuracy", Test: 0.79, Tested: 90}}
	p.Together.Sent.Counts = comm.Counts{Halo: 4000, Control: 300}
	return p
}

func predicted(t *testing.T, p Prediction) string {
	t.Helper()
	var b strings.Builder
	if err := WritePrediction(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page of predictions counts classes, and reports how often they prove right and what left the site; without
// labels, or without others, it lacks these parts.
func TestWritePrediction(t *testing.T) {
	p := guess(t)
	html := predicted(t, p)
	for _, want := range []string{"north named a class for each of its 50 nodes by a model (gcn) that was trained on " +
		"last year&#39;s patients, with the rows of 12 neighbours",
		"It names the right class of 80.0 % of 10 test nodes. When it was trained, the test accuracy was 81.00 %.",
		`<th scope="row">ill</th><td>25</td><td>50.00 %</td>`, `<th scope="row">&lt;unknown&gt;</th><td>0</td>`,
		"test accuracy of all sites (90 nodes)", "79.00 %", "What left each site", "4.30 kB",
		"<strong>Note:</strong> A note.", "1 nodes of class well are called ill, of 2 mistakes",
		"calibration error of the probabilities"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page must have %q", want)
		}
	}
	p.Known, p.Score, p.Together = nil, math.NaN(), nil
	p.Card.Threshold, p.Card.Goal = new(float64), "f1"
	html = predicted(t, p)
	for _, missing := range []string{"What left each site", "Confusion", "calibration error", "with a label",
		"Bytes and messages", "which was chosen on validation nodes"} {
		if strings.Contains(html, missing) {
			t.Errorf("without labels and others the page must not have %q", missing)
		}
	}
	for i := range p.Predictions.Logits.Rows {
		p.Predictions.Logits.Set(i, 2, 9)
	}
	if html = predicted(t, p); !strings.Contains(html,
		"the model names one class only, &lt;unknown&gt;, for all 50 nodes") {
		t.Error("one class for all must be a warning")
	}
}
