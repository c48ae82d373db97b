package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/rng"
)

// care writes tables of patients, drugs and prescriptions: a patient's outcome follows from the drugs that they take,
// and only the drugs' table has it.
func care(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	key := rng.New(3)
	var patients, drugs, takes strings.Builder
	patients.WriteString("id,age,outcome,admitted\n")
	drugs.WriteString("id,weight,strong\n")
	takes.WriteString("patient,drug,dose\n")
	for d := range 20 {
		fmt.Fprintf(&drugs, "%d,%d,%s\n", d, 10+d%3, []string{"yes", "no"}[d%2])
	}
	for p := range uint64(120) {
		side := p % 2
		fmt.Fprintf(&patients, "%d,%d,%s,2024-%02d-01\n", p, 20+key.Uint64(p)%60, []string{"ill", "well"}[side], 1+p/10)
		for k := range uint64(3) {
			fmt.Fprintf(&takes, "%d,%d,%d\n", p, 2*(key.Fold(1).Uint64(3*p+k)%10)+side, 1+k)
		}
	}
	for name, b := range map[string]*strings.Builder{"patients.csv": &patients, "drugs.csv": &drugs,
		"takes.csv": &takes} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSeveralTables: typed tables become a data set. A partition of it trains in full batch over three peers to the
// losses of one peer, and the model predicts for tables of the same types.
func TestSeveralTables(t *testing.T) {
	t.Parallel()
	dir := care(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	tables := []string{"--nodes", "patient=" + at("patients.csv"), "--nodes", "drug=" + at("drugs.csv"), "--edges",
		"patient-takes-drug=" + at("takes.csv")}
	said := must(t, append([]string{"import", "--label-column", "patient.outcome", "--edge-columns", "dose",
		"--split-time", "admitted:2024-07-01:2024-10-01", "--out", at("data")}, tables...)...)
	contains(t, said, "140 nodes of 2 types", "of 2 relations with their reverses", "type drug: 20 nodes, 4 features",
		"edge column patient-takes-drug.dose")
	contains(t, must(t, "inspect", at("data")), "2 types (nodes of each): drug (20, features 4)",
		"features of edges: 1", "60 training, 30 validation, 30 test nodes")
	must(t, "partition", "--data", at("data"), "--parts", "3", "--out", at("parts"))
	must(t, append([]string{"import", "--label-column", "patient.outcome", "--edge-columns", "dose", "--split-time",
		"admitted:2024-07-01:2024-10-01", "--out", at("stored.graph")}, tables...)...)
	must(t, "partition", "--data", at("stored.graph"), "--parts", "3", "--out", at("stored"))
	for k := range 3 {
		part := fmt.Sprintf("part-%d", k)
		contains(t, must(t, "inspect", at("stored/"+part)), "2 types", "features of edges: 1")
	}
	must(t, "partition", "--data", at("stored.graph"), "--parts", "3", "--policy", "multilevel", "--cap", "types=1.2",
		"--out", at("capped"))
	refuse(t, 2, []string{"is read into memory"}, "partition", "--data", at("stored.graph"), "--parts", "3", "--memory",
		"1GiB", "--out", at("no"))
	contains(t, must(t, "inspect", at("stored.graph")), "2 types (nodes of each): drug (20, features 4)")
	contains(t, must(t, "inspect", at("parts/part-0")), "2 types", "features of edges: 1")

	one := ""
	for _, model := range []string{"rsage", "rgat", "gatv2", "gine", "rgcn"} {
		args := []string{"--model", model, "--encoder", "raw"}
		one = at(model + "-1")
		three := at(model + "-3")
		mustTrain(t, one, slices.Concat([]string{"--data", at("data"), "--method", "full-batch", "--peers", "1"},
			args)...)
		mustTrain(t, three, slices.Concat([]string{"--shards", at("parts"), "--method", "full-batch", "--transport",
			"memory"}, args)...)
		a, b := figures(t, filepath.Join(one, "result.json")), figures(t, filepath.Join(three, "result.json"))
		if model == "rgcn" && *a.Test < 0.95 {
			t.Errorf("%s: test accuracy is %v: the drugs say it all", model, *a.Test)
		}
		sameLosses(t, model, a.Loss, b.Loss)
	}
	mustTrain(t, at("from-stored"), "--shards", at("stored"), "--method", "full-batch", "--transport", "memory",
		"--model", "rgcn", "--encoder", "raw")
	sameLosses(t, "stored graph", figures(t, filepath.Join(one, "result.json")).Loss,
		figures(t, at("from-stored/result.json")).Loss)
	refuse(t, 2, []string{"heddle import --like", "--data"}, "predict", "--model",
		filepath.Join(one, "model.safetensors"), "--nodes", at("patients.csv"), "--out", at("no.csv"))
	if exit, _, stderr := call(t.Context(), "train", "--data", at("data"), "--method", "full-batch", "--peers", "1",
		"--model", "sage", "--rounds", "2", "--out", at("sage")); exit != 0 ||
		!strings.Contains(stderr,
			"the 1 columns of the edges of patients are not read: method full-batch with model ") {
		t.Errorf("exit %d: %s", exit, stderr)
	}
	model := filepath.Join(one, "model.safetensors")
	contains(t, must(t, append([]string{"import", "--like", model, "--out", at("again")}, tables...)...),
		"140 nodes of 2 types")
	must(t, "predict", "--model", model, "--data", at("again"), "--out", at("predictions.csv"))
	must(t, append([]string{"import", "--out", at("other")}, tables...)...)
	refuse(t, 2, []string{"as in the model", `"patient.outcome"`, "heddle import --like"}, "predict", "--model", model,
		"--data", at("other"), "--out", at("no.csv"))
	for _, path := range []string{at("predictions.csv"), filepath.Join(one, "predictions.csv")} {
		text := string(contents(t, path))
		contains(t, text, "patient/17,")
		if n := strings.Count(text, "\n"); n != 121 || strings.Contains(text, "drug/") {
			t.Errorf("%s has %d lines, must have one for each of 120 patients, and none for a drug", path, n)
		}
	}
}

// TestNumbersOfOneType: a regression on several types predicts for the nodes of the type that has the numbers.
func TestNumbersOfOneType(t *testing.T) {
	t.Parallel()
	dir := care(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "import", "--nodes", "patient="+at("patients.csv"), "--nodes", "drug="+at("drugs.csv"), "--edges",
		"patient-takes-drug="+at("takes.csv"), "--label-column", "patient.age", "--regression", "--ignore", "admitted",
		"--out", at("data"))
	mustTrain(t, at("run"), "--data", at("data"), "--method", "full-batch", "--peers", "1", "--model", "rgcn",
		"--encoder", "raw")
	contains(t, must(t, "predict", "--model", at("run/model.safetensors"), "--data", at("data"), "--out",
		at("again.csv")), "120 nodes")
	contains(t, must(t, "predict", "--model", at("run/model.safetensors"), "--data", at("data"), "--out",
		at("again.npz")), "140 nodes")
	for _, path := range []string{at("again.csv"), at("run/predictions.csv")} {
		text := string(contents(t, path))
		contains(t, text, "patient/17,")
		if n := strings.Count(text, "\n"); n != 121 || strings.Contains(text, "drug/") {
			t.Errorf("%s has %d lines, must have one for each of 120 patients, and none for a drug", path, n)
		}
	}
}

// sameLosses compares the losses of one peer with those of three.
func sameLosses[T ~float64](t *testing.T, what string, one, three []*T) {
	t.Helper()
	for i := range one {
		if d := *one[i] - *three[i]; d > 1e-4**one[i] || -d > 1e-4**one[i] {
			t.Errorf("%s: epoch %d: loss %v, of one peer %v", what, i, *three[i], *one[i])
		}
	}
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q must be in\n%s", w, text)
		}
	}
}

// TestDirectedTables: with messages along the edges of a table, one way or both ways apart, three peers have the losses
// of one.
func TestDirectedTables(t *testing.T) {
	t.Parallel()
	dir := care(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	var edges strings.Builder
	edges.WriteString("source,target\n")
	for k := range uint64(300) {
		fmt.Fprintf(&edges, "%d,%d\n", rng.New(1).Uint64(k)%120, rng.New(2).Uint64(k)%120)
	}
	if err := os.WriteFile(at("refers.csv"), []byte(edges.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for way, model := range map[string]string{"in": "sage", "out": "gcn", "both": "rgcn"} {
		said := must(t, "import", "--nodes", at("patients.csv"), "--edges", at("refers.csv"), "--label-column",
			"outcome", "--directed", way, "-o", at(way))
		contains(t, said, map[string]string{"in": "directed edges, ", "out": "directed edges, ",
			"both": "of 2 relations with their reverses"}[way])
		args := []string{"--data", at(way), "--model", model, "--encoder", "raw"}
		mustTrain(t, at(way+"-1"), append(args, "--method", "full-batch", "--peers", "1")...)
		mustTrain(t, at(way+"-3"), append(args, "--method", "full-batch", "--transport", "memory", "--peers", "3",
			"--policy", "random")...)
		a, b := figures(t, filepath.Join(at(way+"-1"), "result.json")),
			figures(t, filepath.Join(at(way+"-3"), "result.json"))
		sameLosses(t, way, a.Loss, b.Loss)
	}
}

// TestSeveralTablesRefused: each refusal names what to do.
func TestSeveralTablesRefused(t *testing.T) {
	t.Parallel()
	dir := care(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	patients, drugs, takes := "patient="+at("patients.csv"), "drug="+at("drugs.csv"), "patient-takes-drug="+
		at("takes.csv")
	for want, args := range map[string][]string{
		"each must have its type":                 {"--nodes", patients, "--nodes", at("drugs.csv")},
		"require --nodes TYPE=FILE for each type": {"--edges", takes},
		"rows of a stored graph cannot be skipped": {"--nodes", patients, "--nodes", drugs, "--edges", takes,
			"--on-error", "skip", "--out", at("x.graph")},
		"here each table is a relation": {"--nodes", patients, "--nodes", drugs, "--edges", takes,
			"--relation-column", "dose"},
		"direction must be in, out or both": {"--nodes", patients, "--nodes", drugs, "--edges", takes,
			"--directed", "up"},
		"--embed names types of nodes": {"--nodes", at("patients.csv"), "--embed", "drug"},
		"stored graphs have no columns of edges": {"--edges", at("takes.csv"), "--edge-columns", "dose", "--out",
			at("y.graph")},
		"split by time must be COLUMN:T1:T2": {"--nodes", patients, "--label-column", "outcome", "--split-time",
			"admitted"},
		"--directed must be in with --dgl": {"--dgl", at("none.json"), "--directed", "out"},
		"date column born must be in a table": {"--nodes", patients, "--date", "born", "--age",
			"seen:2026-01-01"},
		"in the table of one type, whose nodes hav": {"--nodes", patients, "--nodes", drugs, "--label-column", "id"},
	} {
		if !strings.Contains(strings.Join(args, " "), "--out") {
			args = append(args, "--out", at("out"))
		}
		refuse(t, 2, []string{want}, append([]string{"import"}, args...)...)
	}
}
