package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// people writes tables of 60 patients whose names begin with prefix, and edges between them.
func people(t *testing.T, dir, prefix string) (nodes, edges string) {
	t.Helper()
	n, e := "id,age,note,outcome\n", "source,target\n"
	for i := range 60 {
		n += fmt.Sprintf("%s%d,%d,room %d,%s\n", prefix, i, 40+i%2*20+i%7, i%3, []string{"ill", "well"}[i%2])
		e += fmt.Sprintf("%s%d,%[1]s%[3]d\n", prefix, i, (i+2)%60)
	}
	nodes, edges = filepath.Join(dir, prefix+"n.csv"), filepath.Join(dir, prefix+"e.csv")
	for path, text := range map[string]string{nodes: n, edges: e} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return nodes, edges
}

// TestPredictKnown: a figure does not count nodes that trained the model, and known nodes are only neighbours.
func TestPredictKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	old, oldEdges := people(t, dir, "p")
	young, youngEdges := people(t, dir, "q")
	must(t, "import", "--nodes", old, "--edges", oldEdges, "--label-column", "outcome", "-o", in("data"))
	must(t, "train", "--data", in("data"), "--peers", "3", "--method", "full-batch", "--rounds", "10", "-q",
		"-o", in("run"))
	lines := strings.Split(string(contents(t, in("run/predictions.csv"))), "\n")
	for i := range 60 {
		if !strings.HasPrefix(lines[i+1], fmt.Sprintf("p%d,", i)) {
			t.Fatalf("line %d is %q: nodes must be in the order of the table", i+2, lines[i+1])
		}
	}
	model := in("run/model.safetensors")
	cross := in("cross.csv")
	if err := os.WriteFile(cross, []byte("source,target\np1,q1\nq2,p3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const used = " nodes trained or chose the model and are not in the figure"
	text := must(t, "predict", "--model", model, "--nodes", old, "--edges", oldEdges, "-o", in("old.csv"),
		"--report", in("p.html"))
	if !strings.Contains(text, "(12 nodes)\n48"+used) ||
		!strings.Contains(string(contents(t, in("p.html"))), "48"+used) {
		t.Errorf("of the training table predict wrote %q", text)
	}
	if n := len(regexp.MustCompile(`(?m)^p\d+,\w+,[\d.]+,train,`).FindAll(contents(t, in("old.csv")), -1)); n != 36 {
		t.Errorf("%d nodes are marked as training nodes, want 36", n)
	}
	text = must(t, "predict", "--model", model, "--nodes", young, "--known", old, "--edges", oldEdges,
		"--edges", youngEdges,
		"--edges", cross, "-o", in("young.csv"))
	if got := string(contents(t, in("young.csv"))); strings.Count(got, "\n") != 61 || strings.Contains(got, "\np") ||
		!strings.Contains(text, "young.csv: 60 nodes\nlabelled accuracy") || strings.Contains(text, used) {
		t.Errorf("of new nodes beside known ones predict wrote %q", text)
	}
	const labels = "the model reads the labels of"
	must(t, "train", "--data", in("data"), "--class-target", "labels", "-q", "-o", in("means"))
	means := in("means/model.safetensors")
	for _, c := range []struct {
		nodes, edges string
		warned       bool
	}{{young, youngEdges, false}, {old, oldEdges, true}} {
		text = must(t, "predict", "--model", means, "--nodes", c.nodes, "--edges", c.edges, "-o", in("m.csv"))
		if strings.Contains(text, labels) != c.warned {
			t.Errorf("of %s predict wrote %q; it must have %q only of nodes of the run", c.nodes, text, labels)
		}
	}
	must(t, "predict", "--model", model, "--nodes", young, "--nodes", old, "--edges", oldEdges, "--edges", youngEdges,
		"--edges", cross, "-o", in("both.csv"))
	one, both := string(contents(t, in("young.csv"))), string(contents(t, in("both.csv")))
	if strings.Count(both, "\n") != 121 || !strings.HasPrefix(both, one) {
		t.Error("new nodes must have the same predictions whether or not known ones are written")
	}
	moved := in("moved.safetensors")
	if err := os.WriteFile(moved, contents(t, model), 0o600); err != nil {
		t.Fatal(err)
	}
	text = must(t, "predict", "--model", moved, "--nodes", old, "--edges", oldEdges, "-o", in("moved.csv"))
	if !strings.Contains(text, "it is not known which nodes trained the model") {
		t.Errorf("of a model without its run predict wrote %q", text)
	}
	refuse(t, 2, []string{"--like gives the columns the roles that they have in the model: omit --id-column, " +
		"--label-column"},
		"import", "--like", model, "--nodes", old, "--label-column", "outcome", "--id-column", "id", "-o", in("again"))
}

// TestFewLinks: graphs without links to hold out, or without pairs to set them against, are refused at once.
func TestFewLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ edges, want string }{
		"path":     {"0 1\n1 2\n", "there must be links to learn from and to validate by (got 4 and 0)"},
		"complete": {"", "there must be links and pairs that are none: each two of the 14 nodes are joined"},
	} {
		list, data := filepath.Join(dir, name+".el"), filepath.Join(dir, name)
		for i := 0; c.edges == "" || name == "complete" && i < 14; i++ {
			for j := range i {
				c.edges += fmt.Sprintln(i, j)
			}
		}
		if err := os.WriteFile(list, []byte(c.edges), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, "import", "--edges", list, "-o", data)
		for _, how := range [][]string{{"--method", "full-batch", "--peers", "1"}, {"--peers", "2"}} {
			args := append([]string{"train", "--data", data, "--task", "links", "--rounds", "2", "--transport",
				"memory", "-q"}, how...)
			refuse(t, 2, []string{c.want}, append(args, "-o", filepath.Join(dir, "run"))...)
		}
	}
}
