package main

import (
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestModelFilePage rebuilds models of every convolution, encoder and form of class means in NumPy, with a program
// written from docs/reference/model-file.md, and compares its predictions with those of peer
// predict. HEDDLE_PYTHON names the interpreter.
func TestModelFilePage(t *testing.T) {
	python := cmp.Or(os.Getenv("HEDDLE_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skipf("SKIPPED: %s with numpy is not installed (%v); HEDDLE_PYTHON names another interpreter", python, err)
	}
	if testing.Short() {
		t.Skip("SKIPPED: some seconds long")
	}
	const script = "../../docs/reference/model_file.py"
	contents(t, script) // the test's result is cached only as long as the script stays
	data := map[string]string{"sites": sites(t), "typed": typedSites(t)}
	plans := slices.Clone(frozenPlans)
	for _, more := range []struct{ data, args string }{
		{"sites", "gatv2 --heads 4"}, {"sites", "gine"}, {"typed", "rgcn --blocks 2 --layers 3 --hidden 8"}, {"typed", "rsage"}, {"typed", "rgat --heads 4 --bases 2"},
	} {
		p := plans[0]
		p.name, p.data = "fullbatch "+more.args, more.data
		p.args = append([]string{"--peers", "3", "--mode", "fullbatch", "--encoder", "raw", "--model"}, strings.Fields(more.args)...)
		plans = append(plans, p)
	}
	for _, more := range []string{"", "--epsilon 4", "--class-target labels --leave-one-out true", "--leave-one-out true --class-rounds 2", "--encoder classes+pca:4"} {
		p := plans[0]
		p.name, p.data = "frugal "+more, "sites"
		p.args = append([]string{"--peers", "3", "--preset", "frugal"}, strings.Fields(more)...)
		plans = append(plans, p)
	}
	for _, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			out := t.TempDir()
			args := []string{"train", "-o", out, "--data", data[p.data], "--transport", "memory"}
			switch {
			case slices.Contains(p.args, "frugal"): // the class means that quick would replace
				args = slices.Concat(args, []string{"-q"}, p.args)
			case slices.Contains(p.args, "frugal-pca"):
				args = slices.DeleteFunc(slices.Concat(args, quick, p.args), func(a string) bool { return slices.Contains(ofRounds, a) })
			default:
				args = slices.Concat(args, quick, p.args)
			}
			model, predicted := filepath.Join(out, "model.safetensors"), filepath.Join(out, "p.csv")
			for _, args := range [][]string{args, {"predict", "--model", model, "--data", data[p.data], "-o", predicted}} {
				if text, err := process(t, args...).CombinedOutput(); err != nil {
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

// samePredictions compares tables of ID, class and probability. Classes may differ where two are
// about as likely.
func samePredictions(t *testing.T, rebuilt, predicted string) {
	t.Helper()
	got, err1 := csv.NewReader(strings.NewReader(rebuilt)).ReadAll()
	want, err2 := csv.NewReader(strings.NewReader(predicted)).ReadAll()
	if err1 != nil || err2 != nil || len(got) != len(want) {
		t.Fatalf("%d rows (%v), peer predict has %d (%v)", len(got), err1, len(want), err2)
	}
	unlike := 0
	for i := 1; i < len(got); i++ {
		p, err1 := strconv.ParseFloat(got[i][2], 64)
		q, err2 := strconv.ParseFloat(want[i][2], 64)
		if err1 != nil || err2 != nil || got[i][0] != want[i][0] || math.Abs(p-q) > 0.002 {
			t.Fatalf("row %d is %q, peer predict has %q", i, got[i], want[i])
		}
		if got[i][1] != want[i][1] {
			unlike++
		}
	}
	if unlike > len(got)/100 {
		t.Errorf("%d of %d classes differ from those of peer predict", unlike, len(got)-1)
	}
}
