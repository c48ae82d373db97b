package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// TestModelFilePage rebuilds models of every convolution, encoder and form of class means in NumPy, with a program
// written from docs/reference/model-file.md, and compares its predictions with those of peer
// predict. HEDDLE_PYTHON names the interpreter.
func TestModelFilePage(t *testing.T) {
	t.Parallel()
	python := cmp.Or(os.Getenv("HEDDLE_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skipf("SKIPPED: %s with numpy is not installed (%v); HEDDLE_PYTHON names another interpreter", python, err)
	}
	if testing.Short() {
		t.Skip("SKIPPED: some seconds long")
	}
	const script = "../../docs/reference/model_file.py"
	contents(t, script) // the test's result is cached only as long as the script stays
	data := map[string]string{"sites": sites(t), "typed": typedSites(t), "bare": bareSites(t),
		"several": severalSites(t), "few": fewSites(t), "prices": filepath.Join(priceTables(t, 400), "data")}
	plans := slices.Clone(frozenPlans)
	for _, more := range []struct{ name, data, args string }{
		{"fullbatch", "typed", "--method full-batch --encoder raw --model rgcn --layers 3 --hidden 8"},
		{"standalone", "several", "--method full-batch --peers 1 --model sage --encoder raw --threshold f1"},
		{"frugal", "sites", "--epsilon 4"},
		{"frugal", "sites", "--class-target labels --leave-one-out true"},
		{"frugal", "few", "--coarse-rows"},
		{"frugal", "few", "--coarse-rows=false"},
	} {
		p := plans[0]
		p.name, p.data, p.peers, p.args = more.name+" "+more.data+" "+more.args, more.data, []int{2},
			strings.Fields(more.args)
		switch more.name {
		case "frugal":
			p.args = append([]string{"--method", "class-means"}, p.args...)
		case "standalone":
			p.peers = []int{1}
		}
		plans = append(plans, p)
	}
	for _, p := range plans {
		if slices.Contains(p.args, "links") || slices.Contains(p.args, "embedding:8") {
			continue // the page does not describe them
		}
		t.Run(p.name, func(t *testing.T) {
			out := t.TempDir()
			args := []string{"train", "-o", out, "--data", data[p.data], "--transport", "memory", "--peers",
				fmt.Sprint(slices.Max(p.peers))}
			switch {
			case inClosedForm(p.args): // the class means that quick would replace
				args = slices.Concat(args, []string{"-q"}, p.args)
			default:
				args = slices.Concat(args, quick, p.args)
			}
			model, predicted := filepath.Join(out, "model.safetensors"), filepath.Join(out, "p.csv")
			for _, args := range [][]string{args,
				{"predict", "--model", model, "--data", data[p.data], "-o", predicted}} {
				if text, err := process(t, withoutEncoder(args)...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
			}
			rebuilt, err := exec.Command(python, script, model, data[p.data]).Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, err.(*exec.ExitError).Stderr)
			}
			samePredictions(t, string(rebuilt), string(contents(t, predicted)))
		})
	}
}

// bareSites writes a generated data set of nodes without features and returns its directory.
func bareSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bare")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 2, Classes: 3, Columns: 40, Train: 0.2, Val: 0.2},
		rng.New(3))
	g.X = graph.Features{}
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fewSites writes a generated data set in which every third node has three values, and returns its directory.
func fewSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "few")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 2, Classes: 3, Columns: 40, Train: 0.2, Val: 0.2},
		rng.New(3))
	for i := 0; i < g.N(); i += 3 {
		_, val := g.X.Sparse.Row(i)
		clear(val[3:])
	}
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}

// severalSites writes a generated data set of nodes with several classes, of which one is scarce, and returns its
// directory.
func severalSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "several")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 2, Classes: 3, Columns: 40, Train: 0.3, Val: 0.4},
		rng.New(3))
	several := graph.Labels{Classes: 3}
	for i, k := range g.Labels.Class {
		one := []uint8{0, uint8(i % 2), map[bool]uint8{true: 1}[i%50 == 0]}
		one[k/2] = 1
		several.Bits = append(several.Bits, one...)
	}
	g.Labels = several
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}

// samePredictions compares tables of ID and numbers, or of ID, class and probability. Classes may differ where two are
// about as likely.
func samePredictions(t *testing.T, rebuilt, predicted string) {
	t.Helper()
	got, err1 := csv.NewReader(strings.NewReader(rebuilt)).ReadAll()
	want, err2 := csv.NewReader(strings.NewReader(predicted)).ReadAll()
	if err1 != nil || err2 != nil || len(got) != len(want) {
		t.Fatalf("%d rows (%v), heddle predict has %d (%v)", len(got), err1, len(want), err2)
	}
	if want[0][1] == "prediction" {
		for i := 1; i < len(got); i++ {
			if p, q := number64(t, got[i][1]), number64(t, want[i][1]); got[i][0] != want[i][0] ||
				math.Abs(p-q) > 1e-4*math.Abs(q) {
				t.Fatalf("row %d is %q, heddle predict has %q", i, got[i], want[i])
			}
		}
		return
	}
	unlike := 0
	for i := 1; i < len(got); i++ {
		if got[i][0] != want[i][0] {
			t.Fatalf("row %d is %q, heddle predict has %q", i, got[i], want[i])
		}
		if got[i][1] != want[i][1] {
			unlike++
		}
		a, b := strings.Split(got[i][2], ";"), strings.Split(want[i][2], ";") // of several classes one each
		if len(a) != len(b) {
			continue
		}
		for k := range a {
			if a[k] == b[k] {
				continue // none, perhaps
			}
			if p, q := number64(t, a[k]), number64(t, b[k]); math.Abs(p-q) > 0.002 {
				t.Fatalf("row %d is %q, heddle predict has %q", i, got[i], want[i])
			}
		}
	}
	if unlike > len(got)/100 {
		t.Errorf("%d of %d classes differ from those of heddle predict", unlike, len(got)-1)
	}
}
