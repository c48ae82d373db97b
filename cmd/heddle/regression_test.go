package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/rng"
)

// priceTables writes tables of n nodes at two sites, whose price follows from one of their columns and one of their
// neighbours' columns, and imports them.
func priceTables(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	key := rng.New(8)
	room := func(i int) float64 { return key.Normal(uint64(i)) }
	var nodes, edges strings.Builder
	nodes.WriteString("id,rooms,noise,price,town\n")
	edges.WriteString("source,target\n")
	for i := range n {
		j := int(key.Fold(1).Uint64(uint64(i)) % uint64(n))
		fmt.Fprintf(&edges, "h%d,h%d\n", i, (i+1)%n)
		fmt.Fprintf(&edges, "h%d,h%d\n", i, j)
		price := strconv.FormatFloat(2e5+3e4*(room(i)+room((i+1)%n)+0.1*key.Fold(2).Normal(uint64(i))), 'f', 2, 64)
		if i%20 == 3 {
			price = ""
		}
		fmt.Fprintf(&nodes, "h%d,%.5f,%.5f,%s,%s\n", i, room(i), key.Fold(3).Normal(uint64(i)), price,
			[]string{"A", "B"}[i%2])
	}
	for name, text := range map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := must(t, "import", "--nodes", filepath.Join(dir, "nodes.csv"), "--edges", filepath.Join(dir, "edges.csv"),
		"--label-column", "price", "--regression", "--site-column", "town", "-o", filepath.Join(dir, "data"))
	for _, want := range []string{"1 targets", "target price: 380 numbers from", "20 without one"} {
		if !strings.Contains(out, want) {
			t.Errorf("import does not say %q:\n%s", want, out)
		}
	}
	return dir
}

// TestRegressionFromTables: a numeric column is imported as a target, trained, measured next to the mean, and written
// by the schema and into predictions. It is predicted again from the model file for tables and data.
func TestRegressionFromTables(t *testing.T) {
	t.Parallel()
	dir := priceTables(t, 400)
	at := func(name string) string { return filepath.Join(dir, name) }
	schema := resultSchema(t)
	if out := must(t, "inspect", at("data")); !strings.Contains(out, "1 targets (numbers)") {
		t.Error(out)
	}
	for _, flags := range []string{"--method layer-wise --model sage --encoder raw --rounds 30", "--method class-means",
		"--method full-batch --peers 1 --model sage --rounds 30",
		"--method full-batch --model sage --rounds 30 --seeds 2 --metric mae"} {
		out := must(t, append([]string{"train", "--data", at("data"), "--transport", "memory", "--out", at("run")},
			strings.Fields(flags)...)...)
		if !strings.Contains(out, "(always the mean of the training nodes)") || !strings.Contains(out, "price: R² 0.") {
			t.Errorf("%s: %s", flags, out)
		}
		object := bySchema(t, schema, at("run/result.json"))
		for _, field := range unknown(object, schema, schema, "result") {
			t.Errorf("%s: the schema must know %s", flags, field)
		}
		result := figures(t, at("run/result.json"))
		target := result.Figures.Test.Targets[0]
		off, n := 0.0, 0
		for _, line := range lines(t, at("run/predictions.csv")) {
			if line["split"] == "test" {
				off, n = off+math.Abs(number64(t, line["prediction"])-number64(t, line["target"])), n+1
			}
		}
		if n == 0 || math.Abs(off/float64(n)/float64(target.MAE)-1) > 1e-3 || target.MAE > 0.75*target.BaselineMAE ||
			target.Name != "price" {
			t.Errorf("%s: MAE of %d predictions is %v, figures %+v", flags, n, off/float64(n), target)
		}
		if result.Data.Task != "regression" || result.Data.Classes != 0 || result.Data.Targets != 1 {
			t.Errorf("%s: data %+v", flags, result.Data)
		}
		if page := string(contents(t, at("run/report.html"))); !strings.Contains(page, "How far predictions are off") ||
			strings.Contains(page, "Confusion") {
			t.Errorf("%s: the report has no errors, or a confusion matrix", flags)
		}
	}
	for _, of := range [][]string{{"--data", at("data")}, {"--nodes", at("nodes.csv"), "--edges", at("edges.csv")}} {
		text := must(t, append([]string{"predict", "--model", at("run/model.safetensors"), "-o", at("out.csv")},
			of...)...)
		if !strings.Contains(text, " mae: ") {
			t.Errorf("%v: %s", of, text)
		}
		if all := lines(t, at("out.csv")); len(all) != 400 || !(number64(t, all[0]["prediction"]) > 5e4) {
			t.Errorf("%v: %d lines, %v", of, len(all), all[0])
		}
	}
	must(t, "predict", "--model", at("run/model.safetensors"), "--data", at("data"), "-o", at("out.parquet"))
	if out := must(t, "inspect", at("run/model.safetensors")); !strings.Contains(out, "1 targets (regression)") ||
		!strings.Contains(out, "targets: price") {
		t.Error(out)
	}
}

func number64(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestRegressionRefuses: the error of what needs classes names the setting, and a cell that is not a number is named by
// line and column.
func TestRegressionRefuses(t *testing.T) {
	t.Parallel()
	dir := priceTables(t, 400)
	data := filepath.Join(dir, "data")
	for flags, want := range map[string]string{
		"--method full-batch --peers 1 --class-weights balanced": "class_weights must be empty where nodes have " +
			"numbers (got balanced)",
		"--class-weights balanced": "class_weights must be empty where nodes have numbers (got balanced)",
		"--threshold f1":           "threshold must be empty (got f1)",
		"--epsilon 4 --peers 3":    "epsilon must be 0 where nodes have numbers",
		"--class-target labels":    "class_target must be auto or residual where nodes have numbers",
		"--method full-batch --peers 1 --metric auc": "metric must be r2, mae or rmse where nodes have numbers " +
			"(got auc)",
		"--method full-batch --peers 1 --label-inputs 0.5": "encoder.labels must be in [0, 1), and 0 unless",
		"--method full-batch --peers 1 --correct-smooth 3": "correct_smooth needs one class a node " +
			"(got task regression)",
	} {
		refuse(t, 2, []string{want}, append([]string{"train", "--data", data, "--out", filepath.Join(dir, "run")},
			strings.Fields(flags)...)...)
	}
	compare := []string{"compare", "--data", data, "--peers", "2", "--seeds", "1", "--transport", "memory", "--out",
		filepath.Join(dir, "compared")}
	refuse(t, 2, []string{"comparing needs a metric that grows with quality, such as r2 or accuracy (got mae)"},
		append(compare, "--method", "layer-wise", "--metric", "mae")...)
	if text := must(t, compare...); !strings.Contains(text, "with a numeric target") ||
		!strings.Contains(text, "test r2") || !strings.Contains(text, "each site alone") {
		t.Errorf("a comparison of numbers printed\n%s", text)
	}
	table := filepath.Join(dir, "odd.csv")
	f, err := os.Create(table)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	if err := w.WriteAll([][]string{{"id", "x", "price"}, {"a", "1", "3"}, {"b", "2", "cheap"},
		{"c", "3", "4"}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"line 3, column price", `target must be a number (got "cheap")`}, "import", "--nodes", table,
		"--label-column", "price", "--regression", "-o", filepath.Join(dir, "odd"))
	refuse(t, 2, []string{"must hold classes (got 3 labels, each once): give --regression for numbers"}, "import",
		"--nodes", table, "--label-column", "price", "-o", filepath.Join(dir, "odd"))
}
