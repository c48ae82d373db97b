package heddle

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
)

// TestPredictions: the likeliest class with its probability, or of several classes all that are more likely than not.
func TestPredictions(t *testing.T) {
	logits := mat.New(2, 3)
	copy(logits.Data, []float32{0, float32(math.Log(2)), 0, -1, 0, 3})
	one := Predictions{Logits: logits}
	if class, p := one.Classes(0), one.Probabilities(0); !reflect.DeepEqual(class, []int{1}) || math.Abs(p[1]-0.5) > 1e-6 {
		t.Errorf("class %v with probability %v, must be 1 with 0.5", class, p)
	}
	several := Predictions{Logits: logits, kind: target.Several}
	if class, p := several.Classes(1), several.Probabilities(1); !reflect.DeepEqual(class, []int{2}) || math.Abs(p[2]-1/(1+math.Exp(-3))) > 1e-6 {
		t.Errorf("classes %v with probabilities %v", class, p)
	}
	if class := several.Classes(0); !reflect.DeepEqual(class, []int{1}) {
		t.Errorf("classes %v, must be 1", class)
	}
}

// TestPredictWithoutRows: a model of learned rows, which a model file lacks, is refused where nodes have nothing else.
func TestPredictWithoutRows(t *testing.T) {
	l := contested(t, 2, "")
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
		t.Errorf("the model has %d features and figures %v, must have one column of zeros", r.Model.Spec.Features, r.Figures)
	}
	if _, err := Predict(r.Model, &graph.Graph{Adj: graph.CSR{NumDst: 3, NumSrc: 3, RowPtr: make([]int64, 4)}}); err == nil || !strings.Contains(err.Error(), "predictions.csv") {
		t.Errorf("the error is %v, must name the run's predictions", err)
	}
}
