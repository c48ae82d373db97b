package heddle

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// TestPredictions: the likeliest class with its probability or, if a node may have several, all that are more likely
// than not.
func TestPredictions(t *testing.T) {
	logits := mat.New(2, 3)
	copy(logits.Data, []float32{0, float32(math.Log(2)), 0, -1, 0, 3})
	one := Predictions{Logits: logits}
	if class, p := one.Classes(0), one.Probabilities(0); !reflect.DeepEqual(class, []int{1}) ||
		math.Abs(p[1]-0.5) > 1e-6 {
		t.Errorf("class %v with probability %v, must be 1 with 0.5", class, p)
	}
	several := Predictions{Logits: logits}.Of(&nn.Model{Spec: nn.Spec{Task: "multi"}})
	if class, p := several.Classes(1), several.Probabilities(1); !reflect.DeepEqual(class, []int{2}) ||
		math.Abs(p[2]-1/(1+math.Exp(-3))) > 1e-6 {
		t.Errorf("classes %v with probabilities %v", class, p)
	}
	if class := several.Classes(0); !reflect.DeepEqual(class, []int{1}) {
		t.Errorf("classes %v, must be 1", class)
	}
}

// TestPredictWithoutRows: a model of learned rows, which a model file lacks, is refused if nodes have nothing else.
func TestPredictWithoutRows(t *testing.T) {
	l := ofSites(t, 2, "")
	for _, s := range l.Shards {
		x := mat.Sparse{Rows: s.Owned, Cols: int(s.Nodes), RowPtr: []int64{0}}
		for i := range s.Owned {
			x.Col, x.Val, x.RowPtr = append(x.Col, int32(s.Global[i])), append(x.Val, 1), append(x.RowPtr, int64(i+1))
		}
		s.X.Dense, s.X.Sparse = mat.Dense{}, &x
	}
	l.Plan = read(t, "method: full-batch\nmodel: sage\nencoder: embedding:8\nrounds: 5\ntransport: memory")
	l.Plan.Peers = 2
	r, err := l.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Model.Spec.Features != 1 || r.Figures == nil {
		t.Errorf("the model has %d features and figures %v, must have one column of zeros", r.Model.Spec.Features,
			r.Figures)
	}
	if _, err := Predict(r.Model, &graph.Graph{Adj: graph.CSR{NumDst: 3, NumSrc: 3, RowPtr: make([]int64, 4)}}); err ==
		nil || !strings.Contains(err.Error(), "predictions.csv") {
		t.Errorf("the error is %v, must name the run's predictions", err)
	}
}

// TestPredictWithoutLabels: a model that reads labels predicts a graph that has none, by each function alike, and
// warns. Labels of other classes are refused, and labels that lack a class are read.
func TestPredictWithoutLabels(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: 3, Classes: 4, Columns: 80, Train: 0.1, Val: 0.1},
		rng.New(3))
	for settings, reads := range map[string]string{
		"inductive: true\npeers: 4":                                    "training",
		"leave_one_out: true\nclass_target: labels":                    "training",
		"method: layer-wise\nrounds: 3":                                "training",
		"method: full-batch\nrounds: 3\nlabel_inputs: 0.5":             "training",
		"method: full-batch\nmodel: mlp\nrounds: 3\ncorrect_smooth: 5": "training", "method: full-batch\nrounds: 3": "",
	} {
		p := read(t, settings+"\ntransport: memory")
		r, err := Train(t.Context(), g, p)
		if err != nil {
			t.Fatalf("%q: %v", settings, err)
		}
		predict := func(labels graph.Labels, split []graph.Split) Predictions {
			one := *g
			one.Labels, one.Split = labels, split
			p, err := Predict(r.Model, &one)
			if err != nil {
				t.Fatalf("%q: %v", settings, err)
			}
			group := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
			defer group.Close()
			a, err := infer.Run(context.Background(), infer.Config{Exchange: "halo", Layerwise: true,
				Metric: "accuracy"}, r.Model, shard.Whole(&one), group, group)
			if err != nil {
				t.Fatalf("%q: %v", settings, err)
			}
			most := 1e-4
			if strings.HasPrefix(settings, "method: layer-wise") {
				most = 5e-4 // layers see logits of regressions, whose large weights cancel each other
			}
			for i, v := range p.Logits.Data {
				if math.Abs(float64(v-a.Logits.Data[i])) > most*max(1, math.Abs(float64(v))) {
					t.Fatalf("%q: logit %d is %v, of the peers together %v", settings, i, v, a.Logits.Data[i])
				}
			}
			return p
		}
		none := predict(graph.Labels{}, nil)
		for _, other := range []Predictions{predict(g.Labels, nil), predict(graph.Labels{}, g.Split)} {
			if !slices.Equal(other.Logits.Data, none.Logits.Data) || other.Warning != none.Warning {
				t.Errorf("%q: the predictions without labels or splits must be those without both", settings)
			}
		}
		if !strings.Contains(none.Warning, reads) || (none.Warning != "") != (reads != "") {
			t.Errorf("%q: the warning must name %q nodes (got %q)", settings, reads, none.Warning)
		}
		if all := predict(g.Labels, g.Split); all.Warning != "" ||
			slices.Equal(all.Logits.Data, none.Logits.Data) != (reads == "") {
			t.Errorf("%q: with labels there must be no warning and other predictions (got %q)", settings, all.Warning)
		}
		few := graph.Labels{Classes: 4, Class: slices.Clone(g.Labels.Class)}
		for i, k := range few.Class {
			if k == 3 {
				few.Class[i] = -1
			}
		}
		want := predict(few, g.Split)
		few.Classes = 3
		if got := predict(few, g.Split); !slices.Equal(got.Logits.Data, want.Logits.Data) {
			t.Errorf("%q: labels without the last class must be read as they are", settings)
		}
		many := *g
		many.Labels = graph.Labels{Classes: 9, Class: slices.Repeat([]int32{8}, g.N())}
		if _, err := Predict(r.Model, &many); errors.As(err, new(*InputError)) != (reads != "") {
			t.Errorf("%q: the error of labels of 9 classes is %v", settings, err)
		}
	}
}
