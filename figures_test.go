package heddle

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train/figures"
)

// TestFiguresOfARun: with every method the confusion matrix follows from the sites' own predictions, its accuracy is
// the reported one, and calibrated probabilities of closed forms fit better.
func TestFiguresOfARun(t *testing.T) {
	for _, settings := range []string{"", "method: layer-wise\nmodel: gcn\nrounds: 20\nlr: 0.003",
		"method: full-batch\nmodel: gcn\nrounds: 20", "method: full-batch\npeers: 1\nmodel: sage\nrounds: 20"} {
		l := ofSites(t, 3, "")
		l.Plan = read(t, settings+"\ntransport: memory\npolicy: random")
		if l.Plan.Peers == 1 {
			l.Shards = ofSites(t, 1, "").Shards
		}
		r, err := l.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := r.Figures
		if f == nil || float64(f.Test.Metric) != r.Test || float64(f.Val.Metric) != r.Val {
			t.Fatalf("%q: figures %+v of a run with %v and %v", settings, f, r.Val, r.Test)
		}
		want, sites := make([][]int64, 7), 0
		for k := range want {
			want[k] = make([]int64, 7)
		}
		for rank, s := range l.Shards {
			nodes := s.NodesIn(graph.Test)
			for _, i := range nodes {
				want[s.Labels.Class[i]][r.Own[rank].Classes(int(i))[0]]++
			}
			if got := f.Sites[rank].Test; got.Rows != int64(len(nodes)) {
				t.Errorf("%q, site %d: %d test nodes, must be %d", settings, rank, got.Rows, len(nodes))
			}
			sites++
		}
		if !slices.EqualFunc(f.Test.Confusion, want, slices.Equal) || len(f.Sites) != sites {
			t.Errorf("%q: confusion matrix %v, must be %v", settings, f.Test.Confusion, want)
		}
		if f.Test.Low > f.Test.Metric || f.Test.High < f.Test.Metric || f.Test.Baseline > 0.3 {
			t.Errorf("%q: %v of %v to %v, baseline %v", settings, f.Test.Metric, f.Test.Low, f.Test.High,
				f.Test.Baseline)
		}
		if l.Plan.Method == plan.ClassMeans && !(f.Test.Calibrated < 0.8*f.Test.ECE) {
			t.Errorf("%q: calibration error %v, then %v", settings, f.Test.ECE, f.Test.Calibrated)
		}
		if r.Card.Temperature != f.Temperature || f.Temperature == 0 {
			t.Errorf("%q: temperature %v, in the card %v", settings, f.Temperature, r.Card.Temperature)
		}
		if sent := r.Total(); sent.Total() < f.Sent.Total() || f.Sent.Total() < sent.Total()-20_000 {
			t.Errorf("%q: %d bytes were sent, %d before the figures", settings, sent.Total(), f.Sent.Total())
		}
	}
}

// TestFiguresOfAMeeting: all sites have the same figures except for their own nodes, write the same model file, and
// have the figures again when they restart after the end.
func TestFiguresOfAMeeting(t *testing.T) {
	p := read(t, "policy: random\ntransport: memory")
	p.Peers = 3
	shards, err := Split(dataset.Sites(dataset.SitesConfig{Nodes: 900}, rng.New(1)), p)
	if err != nil {
		t.Fatal(err)
	}
	j := newJoined(t, Local{Plan: p, Shards: shards})
	results, errs := j.join(t.Context())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var files []string
	for r, one := range results {
		if one.Figures == nil || len(one.Figures.Sites) != 1 || one.Figures.Sites[0].Name != one.Members[r] ||
			!slices.EqualFunc(one.Figures.Test.Confusion, results[0].Figures.Test.Confusion, slices.Equal) {
			t.Fatalf("site %d: figures %+v", r, one.Figures)
		}
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := one.Save(path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(b))
		if _, card, err := modelfile.Read(path); err != nil || card.Temperature != one.Figures.Temperature ||
			card.Temperature >= 1 {
			t.Errorf("site %d: temperature %v in the file (%v)", r, card.Temperature, err)
		}
	}
	if files[0] != files[1] || files[0] != files[2] {
		t.Error("the sites must write the same model file")
	}
	again, errs := j.join(t.Context())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, one := range again {
		if f := one.Figures; f == nil || f.Temperature != results[r].Figures.Temperature ||
			f.Test.Rows != results[r].Figures.Test.Rows {
			t.Errorf("site %d, again: figures %+v", r, f)
		}
	}
}

// TestThresholdOfARun: the threshold that validation chose for its goal makes the predictions and the metric, and is in
// the model's card.
func TestThresholdOfARun(t *testing.T) {
	l := ofSites(t, 2, "")
	for _, s := range l.Shards {
		s.Labels.Classes, s.Labels.Names = 2, nil
		for i, k := range s.Labels.Class {
			s.Labels.Class[i] = map[bool]int32{true: 1, false: 0}[k == 3]
		}
	}
	l.Plan = read(t, "metric: macro-f1\nthreshold: f1\ntransport: memory")
	r, err := l.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := r.Figures
	if f.Threshold == nil || !f.Threshold.Reached || r.Card.Goal != "f1" || *r.Card.Threshold != f.Threshold.LogOdds {
		t.Fatalf("threshold %+v, in the card %+v", f.Threshold, r.Card)
	}
	var n [2][2]int64
	for rank, s := range l.Shards {
		for _, i := range s.NodesIn(graph.Test) {
			said := r.Own[rank].Classes(int(i))[0]
			n[s.Labels.Class[i]][said]++
			if p := r.Own[rank].Probabilities(int(i))[1]; (said == 1) != (p >= f.Threshold.Probability) &&
				math.Abs(p-f.Threshold.Probability) > 1e-9 {
				t.Errorf("class %d at probability %v, threshold %v", said, p, f.Threshold.Probability)
			}
		}
	}
	if got := f.Test.Confusion; got[0][0] != n[0][0] || got[0][1] != n[0][1] || got[1][0] != n[1][0] ||
		got[1][1] != n[1][1] {
		t.Errorf("confusion %v, of the predictions %v", got, n)
	}
	if float64(f.Test.MacroF1) != r.Test {
		t.Errorf("the run reports %v, the threshold gives %v", r.Test, f.Test.MacroF1)
	}
	plain := l
	plain.Plan.Threshold = ""
	without, err := plain.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := f.Val.Classes[1].F1, without.Figures.Val.Classes[1].F1; !(a > b) {
		t.Errorf("F1 of validation nodes %v with a threshold, %v without", a, b)
	}
	l.Plan.Threshold = "recall@precision=2"
	if _, err := l.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "threshold must be f1") {
		t.Errorf("%v, must say that the threshold is at fault", err)
	}
}

// TestThresholdsOfSeveral: if nodes have several classes, each class's threshold makes the predictions, figures and
// model card alike, with one peer and with three.
func TestThresholdsOfSeveral(t *testing.T) {
	var first *figures.Figures
	for _, peers := range []int{1, 3} {
		l := ofSites(t, peers, "")
		for _, s := range l.Shards {
			several := graph.Labels{Classes: s.Labels.Classes}
			for i, k := range s.Labels.Class {
				for c := range int32(several.Classes) {
					several.Bits = append(several.Bits,
						map[bool]uint8{true: 1}[k == c || (s.Global[i]+int64(c))%9 == 0])
				}
			}
			s.Labels = several
		}
		l.Plan = read(t, "method: full-batch\nmodel: sage\nencoder: raw\nrounds: 10\nthreshold: f1\ntransport: memory")
		l.Plan.Peers = peers
		r, err := l.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := r.Figures
		if len(f.Thresholds) != l.Shards[0].Labels.Classes || f.Threshold != nil || r.Card.Goal != "f1" ||
			!reflect.DeepEqual([]float64(f.Cuts()), r.Card.Thresholds) {
			t.Fatalf("thresholds are %+v, those of the card %v for %q", f.Thresholds, r.Card.Thresholds, r.Card.Goal)
		}
		if n := len(f.Temperatures); n != len(f.Thresholds) || !reflect.DeepEqual(f.Temperatures, r.Card.Temperatures) {
			t.Errorf("temperatures are %v, those of the card %v", f.Temperatures, r.Card.Temperatures)
		}
		predicted := make([]int64, len(f.Thresholds))
		for rank, s := range l.Shards {
			for _, i := range s.NodesIn(graph.Test) {
				for _, k := range r.Own[rank].Classes(int(i)) {
					predicted[k]++
				}
				for k, p := range r.Own[rank].Probabilities(int(i)) {
					logit := float64(r.Own[rank].Logits.At(int(i), k))
					if want := 1 / (1 + math.Exp(-logit/f.Temperatures[k])); math.Abs(p-want) > 1e-12 {
						t.Errorf("the probability of class %d is %v, must be %v", k, p, want)
					}
				}
			}
		}
		for k, c := range f.Test.Classes {
			if c.Predicted != predicted[k] {
				t.Errorf("class %d is predicted %d times, the figures have %d", k, predicted[k], c.Predicted)
			}
		}
		if float64(f.Test.MicroF1) != r.Test {
			t.Errorf("the run's metric is %v, must be %v", r.Test, f.Test.MicroF1)
		}
		if first != nil && !reflect.DeepEqual(f.Thresholds, first.Thresholds) {
			t.Errorf("thresholds of %d peers are %+v, those of one %+v", peers, f.Thresholds, first.Thresholds)
		}
		first = f
		l.Plan.Metric = "accuracy"
		if _, err := l.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "metric must be micro-f1") {
			t.Errorf("the error is %v, must name the metric", err)
		}
	}
}
