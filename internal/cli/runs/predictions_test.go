package runs

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// TestPredictionFiles checks that both files have one row per node, and that spreadsheets take no cell for a formula.
func TestPredictionFiles(t *testing.T) {
	t.Parallel()
	logits := mat.New(2, 2)
	copy(logits.Data, []float32{0, 2, 1, -1})
	p := heddle.Predictions{Logits: logits}
	of := guessed{site: "north", ids: []string{"=1+1", "-7"}, split: []graph.Split{graph.Test, graph.None}, p: p,
		labels: graph.Labels{Classes: 2, Class: []int32{1, -1}}}
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
	write(func(f *os.File) error { return writeCSV(f, names, []guessed{of}) })
	const want = `id,class,probability,split,label,site,"p_a,b",p_@c
'=1+1,'@c,0.8808,test,'@c,north,0.1192,0.8808
-7,"a,b",0.8808,,,north,0.8808,0.1192
`
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the file must be\n%s(got\n%s)", want, got)
	}
	write(func(f *os.File) error { return writeParquet(f, names, []guessed{of}) })
	rows, err := parquet.ReadFile[nodePrediction](path)
	if err != nil {
		t.Fatal(err)
	}
	label, probability := "@c", p.Probabilities(0)
	first := nodePrediction{ID: "=1+1", Class: "@c", Probability: &probability[1], Split: "test", Label: &label, Site: "north", Probabilities: probability}
	if len(rows) != 2 || !reflect.DeepEqual(rows[0], first) || rows[1].Label != nil {
		t.Errorf("there must be 2 rows, the first %+v (got %+v)", first, rows)
	}
}

// TestPredictionsAsArrays: predictions.npz says of each node what predictions.csv says, of one class a node and of several.
func TestPredictionsAsArrays(t *testing.T) {
	t.Parallel()
	p, q := two(), two()
	p.labels = graph.Labels{Classes: 2, Class: []int32{1, -1}}
	p.p = heddle.Predictions{Logits: mat.View(2, 2, []float32{0, 2, 3, 1})}
	q.labels = p.labels
	q.p, q.site, q.global = p.p, "b", []int64{9, 4}
	var b bytes.Buffer
	if err := writeNPZ(&b, []string{"no", "yes"}, []guessed{p, q}); err != nil {
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
func two() guessed {
	return guessed{ids: []string{"x", "y"}, split: []graph.Split{graph.Train, graph.Test}}
}
