package main

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/npy"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
)

// TestPredictionsAreThoseOfTheMetric: with every method and every model that it trains, the lines of predictions.csv give the same
// test and validation accuracy as the run reports.
func TestPredictionsAreThoseOfTheMetric(t *testing.T) {
	t.Parallel()
	var flags [][]string
	for _, method := range choices(t, "method") {
		for _, model := range choices(t, "model") {
			of := []string{"--method", method, "--model", model, "--rounds", "3", "--hidden", "16"}
			switch method {
			case plan.ClassMeans: // has no convolution
				continue
			case plan.FullBatch:
				flags = append(flags, append(slices.Clone(of), "--peers", "1"))
			}
			flags = append(flags, of)
		}
	}
	for _, more := range []string{"--method class-means", "--method class-means --inductive", "--method class-means --class-rounds 1 --leave-one-out true",
		"--method layer-wise --rounds 5 --inductive", "--method layer-wise --rounds 5 --keep-last",
		"--method layer-wise --rounds 5 --encoder mlp --hidden 8", "--method full-batch --rounds 5 --inductive", "--method layer-wise --rounds 5 --local-steps 3"} {
		flags = append(flags, strings.Fields(more))
	}
	for _, of := range flags {
		t.Run(strings.Join(of, " "), func(t *testing.T) {
			t.Parallel()
			out, data := filepath.Join(t.TempDir(), "out"), sites
			if slices.ContainsFunc(of, func(flag string) bool { return slices.Contains([]string{"rgcn", "rsage", "rgat"}, flag) }) {
				data = typedSites
			}
			args := append([]string{"train", "--data", data(t), "--transport", "memory", "--out", out}, of...)
			if exit, _, text := call(t.Context(), args...); exit == 2 && strings.Contains(text, "model must be") && !slices.Contains(of, "gcn") {
				return // the method trains other models
			} else if exit != 0 {
				t.Fatalf("exit %d: %s", exit, text)
			}
			result := figures(t, filepath.Join(out, "result.json"))
			right, all := map[string]float64{}, map[string]float64{}
			for _, line := range lines(t, filepath.Join(out, "predictions.csv")) {
				if line["label"] == "" {
					continue
				}
				if all[line["split"]]++; line["label"] == line["class"] {
					right[line["split"]]++
				}
			}
			for split, reported := range map[string]*float64{"test": result.Test, "val": result.Val} {
				if all[split] == 0 || right[split]/all[split] != *reported {
					t.Errorf("%v of %v %s nodes are right, must be the reported %v of them", right[split], all[split], split, *reported)
				}
			}
		})
	}
}

// choices returns what a setting may be.
func choices(t *testing.T, name string) []string {
	setting, ok := plan.Lookup(name)
	if !ok || setting.Choices == nil {
		t.Fatalf("the plan must list the choices of %s", name)
	}
	return setting.Choices
}

// lines returns the lines of a CSV file by column.
func lines(t *testing.T, path string) (all []map[string]string) {
	rows, err := csv.NewReader(bytes.NewReader(contents(t, path))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		line := map[string]string{}
		for k, name := range rows[0] {
			line[name] = row[k]
		}
		all = append(all, line)
	}
	return all
}

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
	if got := string(contents(t, path)); got != want {
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
