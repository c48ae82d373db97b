package report

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/mat"
)

// TestParquet: predictions and hidden rows have one row a node.
func TestParquet(t *testing.T) {
	t.Parallel()
	p := heddle.Predictions{Logits: mat.View(2, 2, []float32{0, 2, 1, -1})}
	of := cli.NodePredictions{Site: "north", IDs: []string{"=1+1", "Jürgen 😀"},
		Split: []graph.Split{graph.Test, graph.None}, Predictions: p,
		Labels: graph.Labels{Classes: 2, Class: []int32{1, -1}}}
	var b bytes.Buffer
	if err := (Pages{}).WriteParquet(&b, []string{"a,b", "@c"}, []cli.NodePredictions{of}); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[cli.PredictionRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	label, probability := "@c", p.Probabilities(0)
	first := cli.PredictionRow{ID: "=1+1", Class: "@c", Probability: &probability[1], Split: "test", Label: &label,
		Site: "north", Probabilities: probability}
	if len(rows) != 2 || !reflect.DeepEqual(rows[0], first) || rows[1].Label != nil {
		t.Errorf("there must be 2 rows, the first %+v (got %+v)", first, rows)
	}
	b.Reset()
	if err := (Pages{}).WriteHidden(&b,
		[]cli.HiddenRows{{IDs: of.IDs, X: mat.View(2, 2, []float32{1, -2.5, 3, 4})}}); err != nil {
		t.Fatal(err)
	}
	got, err := parquet.Read[embeddedNode](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(got) != 2 || got[1].ID != "Jürgen 😀" || got[1].Embedding[1] != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}
