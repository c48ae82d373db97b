package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportExplains: what import prints is stored, inspect prints it again, and predict says which
// categories a model does not know.
func TestImportExplains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodes, edges := "id,since,ward,note,label\n", "source,target\n"
	for k := range 60 {
		id := string(rune('a'+k%26)) + string(rune('a'+k/26))
		nodes += id + ",2024-01-" + []string{"01", "15", "28"}[k%3] + "," + []string{"A", "B"}[k%2] + ",some words " +
			id + "," + []string{"no", "yes"}[k/30] + "\n"
		edges += id + ",aa\n"
	}
	write("nodes.csv", nodes+"aa,twice\nzz,yesterday,A,,no\n")
	write("edges.csv", edges+"aa,nobody\n")
	if exit, _, text := call(t.Context(), "import", "--nodes", at("nodes.csv"), "--edges", at("edges.csv"),
		"--label-column", "label", "-o", at("data")); exit != 2 ||
		!strings.Contains(text, "line 62") ||
		!strings.Contains(text, `line 63, column since: "yesterday" is not a date`) {
		t.Errorf("exit %d: %s", exit, text)
	}
	out := must(t, "import", "--nodes", at("nodes.csv"), "--edges", at("edges.csv"), "--label-column", "label",
		"--text", "note:8", "--on-error", "skip", "-o", at("data"))
	for _, want := range []string{"60 nodes", "nodes.csv: 60 rows, utf-8, delimiter comma; 2 rows skipped",
		"edges.csv: 60 rows, utf-8, delimiter comma; 1 row skipped", "column since  date, 5 features",
		"column ward   categorical with 2 values", "column note   text, 8 features",
		"nodes of each class: no 30, yes 30", "1 self-loop dropped"} {
		if !strings.Contains(out, want) {
			t.Errorf("import does not say %q:\n%s", want, out)
		}
	}
	_, facts, _ := strings.Cut(out, "\n")
	if again := must(t, "inspect", at("data")); !strings.Contains(again, facts) {
		t.Errorf("inspect says\n%s\nnot\n%s", again, facts)
	}
	if skipped := string(contents(t, at("data/skipped.csv"))); strings.Count(skipped, "\n") != 4 ||
		!strings.Contains(skipped, ",63,since,") || !strings.Contains(skipped, "nobody") {
		t.Errorf("skipped:\n%s", skipped)
	}
	must(t, "train", "--data", at("data"), "--policy", "random", "--peers", "2", "--transport", "memory", "-q", "--out",
		at("run"))
	write("new.csv", "id,since,ward,note\nx,2024-02-01,C,words\ny,2024-02-01,C,\nz,2024-02-01,A,\n")
	write("none.csv", "source,target\n")
	text := must(t, "predict", "--model", at("run/model.safetensors"), "--nodes", at("new.csv"), "--edges",
		at("none.csv"), "-o", at("out.csv"))
	if !strings.Contains(text,
		`warning: column ward: a category without its own feature in 2 cells, such as "C"`) {
		t.Errorf("predict says %s", text)
	}
	// Rows at fault stop a prediction, or are skipped: then so is the edge to such a row.
	write("new.csv", "id,since,ward,note\nx,2024-02-01,B,words\ny,tomorrow,B,\nz,2024-02-01,A,\nw\n")
	write("few.csv", "source,target\nx,y\nx,z\n")
	ask := []string{"predict", "--model", at("run/model.safetensors"), "--nodes", at("new.csv"), "--edges",
		at("few.csv"), "-o", at("out.csv")}
	refuse(t, 2, []string{"line 3, column since", "line 5"}, ask...)
	refuse(t, 2, []string{"--on-error skip", "standard output"},
		append(ask[:len(ask)-1:len(ask)-1], "-", "--on-error", "skip")...)
	text = must(t, append(ask, "--on-error", "skip")...)
	if !strings.Contains(text, "2 nodes") ||
		!strings.Contains(text, "skipped: 3 rows at fault, in "+at("skipped.csv")) {
		t.Errorf("predict says %s", text)
	}
	if skipped := string(contents(t, at("skipped.csv"))); strings.Count(skipped, "\n") != 4 ||
		!strings.Contains(skipped, "few.csv,2,target,") {
		t.Errorf("skipped:\n%s", skipped)
	}
	// A column of more categories than usual is dropped unless the user asks for it, by either name.
	for _, flag := range []string{"--categorical", "--onehot"} {
		out := must(t, "import", "--nodes", at("nodes.csv"), "--label-column", "label", flag, "note", "--on-error",
			"skip", "-o", at(flag))
		if !strings.Contains(out, "column note   categorical with 60 values") {
			t.Errorf("%s: %s", flag, out)
		}
	}
}

// Lists of edges are described, and their repeated edges merged, too.
func TestImportList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "a.wel")
	if err := os.WriteFile(list, []byte("0 1 2\n1 0 3\n0 1 4\n2 2 1\n3 1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := must(t, "import", "--edges", list, "--weight-column", "3", "--merge", "sum", "-o",
		filepath.Join(dir, "data"))
	if !strings.Contains(out, "edges: 5 listed, 2 kept, 1 repeated (sum), 1 in both directions, 1 self-loop dropped; "+
		"1 isolated node\n") {
		t.Errorf("%s", out)
	}
	refuse(t, 2, []string{"merge must be", "product"}, "import", "--edges", list, "--merge", "product", "-o",
		filepath.Join(dir, "b"))
	refuse(t, 2, []string{"--merge"}, "import", "--edges", list, "--merge", "sum", "-o", filepath.Join(dir, "b.graph"))
}

// A signal ends an import, and nothing is left.
func TestImportStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := filepath.Join(dir, "nodes.csv")
	// a fault on line 3, if it were read on
	if err := os.WriteFile(table, []byte("id,v\n"+strings.Repeat("a,1\n", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	exit, _, text := call(ctx, "import", "--nodes", table, "--encoding", "utf-8", "-o", filepath.Join(dir, "data"))
	if exit == 0 || !strings.Contains(text, "stopped; nothing was written") {
		t.Errorf("exit %d: %s", exit, text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestImportNamesNoFields: errors about flags name tables and columns, not the library's fields.
func TestImportNamesNoFields(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodes := filepath.Join(dir, "nodes.csv")
	if err := os.WriteFile(nodes, []byte("id,age,sick\na,1,yes\nb,2,no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--source-column x --target-column x": "sources and targets of edges must be in two columns (got both in x)",
		"--keep-loops":                        "--keep-loops and --feature-column must be given with --dgl",
		"--ogb-split time":                    "--ogb-split must be given with --ogb (got time)",
		"--multi":                             "several labels in a cell must have a label column (got none)",
		"--regression":                        "regression must have a label column",
		"--train 2": "that for training above 0, their sum at most 1 " +
			"(got train 2, val 0, test 0)",
		"--text age":          "text must be COLUMN:WIDTH",
		"--age age":           "age must be COLUMN:DATE",
		"--numeric none":      `no column "none" (numeric columns, --numeric)`,
		"--label-column none": `no column "none" (the labels, --label-column)`,
		"--label-column sick --split-time none:1:2": `no column "none" (the split by time, --split-time)`,
		"--label-column sick --categorical sick": "column sick must have one role (got another, too: categorical " +
			"columns, --categorical)",
	} {
		refuse(t, 2, []string{want}, append([]string{"import", "--nodes", nodes, "--out", filepath.Join(dir, "out")},
			strings.Fields(args)...)...)
	}
	refuse(t, 2, []string{"--label-column must be given with --nodes or --dgl (got sick)"}, "import", "--edges", nodes,
		"--label-column", "sick", "--out", filepath.Join(dir, "out"))
}
