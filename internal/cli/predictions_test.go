package cli

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// TestPredictionFiles checks that the file has one row per node, and that spreadsheets take no cell for a formula.
func TestPredictionFiles(t *testing.T) {
	t.Parallel()
	logits := mat.New(2, 2)
	copy(logits.Data, []float32{0, 2, 1, -1})
	p := heddle.Predictions{Logits: logits}
	of := NodePredictions{Site: "north", IDs: []string{"=1+1", "-7"}, Split: []graph.Split{graph.Test, graph.None},
		Predictions: p, Labels: graph.Labels{Classes: 2, Class: []int32{1, -1}}}
	names := []string{"a,b", "@c"}
	path := filepath.Join(t.TempDir(), "p")
	write := func(fill func(*os.File) error) {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := fill(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(func(f *os.File) error { return WriteCSV(f, names, []NodePredictions{of}) })
	const want = `id,class,probability,split,label,site,"p_a,b",p_@c
'=1+1,'@c,0.8808,test,'@c,north,0.1192,0.8808
-7,"a,b",0.8808,,,north,0.8808,0.1192
`
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the file must be\n%s(got\n%s)", want, got)
	}
}

// TestPredictionsAsArrays: predictions.npz says of each node what predictions.csv says, of one class a node and of
// several.
func TestPredictionsAsArrays(t *testing.T) {
	t.Parallel()
	p, q := two(), two()
	p.Labels = graph.Labels{Classes: 2, Class: []int32{1, -1}}
	p.Predictions = heddle.Predictions{Logits: mat.View(2, 2, []float32{0, 2, 3, 1})}
	q.Labels = p.Labels
	q.Predictions, q.Site, q.Global = p.Predictions, "b", []int64{9, 4}
	var b bytes.Buffer
	if err := WriteNPZ(&b, []string{"no", "yes"}, []NodePredictions{p, q}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := npy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for name, want := range map[string][]int64{"node": {0, 1, 4, 9}, "class": {1, 0, 0, 1}, "label": {1, -1, -1, 1}} {
		if got, _, err := npy.Read[int64](a, name, 4); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, must be %v (%v)", name, got, want, err)
		}
	}
	logits, _, err := npy.Read[float32](a, "logits", 4, 2)
	if err != nil || !slices.Equal(logits, []float32{0, 2, 3, 1, 3, 1, 0, 2}) {
		t.Errorf("logits are %v, %v", logits, err)
	}
	probability, _, err := npy.Read[float32](a, "probability", 4, 2)
	if err != nil || math.Abs(float64(probability[1])-1/(1+math.Exp(-2))) > 1e-6 {
		t.Errorf("probabilities are %v, %v", probability, err)
	}
	for _, name := range []string{"id", "split", "site", "classes"} {
		if !a.Has(name) {
			t.Errorf("array %s is missing", name)
		}
	}
}

// two are predictions for two nodes.
func two() NodePredictions {
	return NodePredictions{IDs: []string{"x", "y"}, Split: []graph.Split{graph.Train, graph.Test}}
}
