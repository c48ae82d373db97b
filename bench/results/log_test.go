package results

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/plan"
)

// quick is an experiment on Cora that takes little time.
func quick() experiment {
	e := base("quick", plan.LayerWise, "gcn")
	e.Data, e.LayerWise.Encoder, e.Gradient().Layers, e.Gradient().Rounds, e.RowNorm = "cora", pca(16), 1, 60, "l2"
	return e
}

// A run that is in the log is not made again; a line that a killed program left behind is passed
// over, and so is a run of another plan.
func TestFinishedRunsAreKept(t *testing.T) {
	root := filepath.Dir(testenv.DataDir(t, "cora"))
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	e := quick()
	first, err := openBook(path, root, 1)
	if err != nil {
		t.Fatal(err)
	}
	made, err := first.run(t.Context(), e, 2)
	if err := errors.Join(err, first.close()); err != nil {
		t.Fatal(err)
	}
	if made.runs[0].Halo == 0 || made.runs[0].Reduce == 0 || made.runs[0].Test < 0.5 {
		t.Errorf("bytes of the run: %+v", made.runs[0])
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, `{"data":"cora","te`...), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // nothing can be trained
	for range 2 {
		again, err := openBook(path, root, 1)
		if err != nil {
			t.Fatal(err)
		}
		read, err := again.run(over, e, 2)
		if err != nil || read.test() != made.test() || read.megabytes() != made.megabytes() {
			t.Errorf("a finished run must be read (got %v, %s for %s)", err, read.test(), made.test())
		}
		other := e
		other.Gradient().Hidden = 8
		if _, err := again.run(over, other, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("another plan must be trained (got %v)", err)
		}
		if err := again.add(record{Data: "other", Val: measure(math.NaN())}); err != nil {
			t.Fatal(err)
		}
		if err := again.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A log of a program that did not know a setting has the runs with its default.
func TestLogsOfOtherPrograms(t *testing.T) {
	e := experiment{Data: "cora", Plan: heddle.Defaults("", "")}
	ask, was := e.asked(3), e.asked(3)
	delete(was.Plan, "shrink")
	if !was.answers(ask) {
		t.Error("a setting that was unknown must have its default")
	}
	ask.Plan["shrink"] = "2"
	if was.answers(ask) {
		t.Error("a run without a setting must not stand for one with another value")
	}
	ask = e.asked(3)
	was.Plan["gone"] = "1"
	if was.answers(ask) {
		t.Error("a run with a setting that was removed must not stand for one without it")
	}
	if e.asked(4).answers(ask) {
		t.Error("a run with another seed must not be taken")
	}
}

// A plan that does not fit the data is refused once, and the reason is kept.
func TestRefused(t *testing.T) {
	b, err := openBook("", filepath.Dir(testenv.DataDir(t, "cora")), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := base("unsound", plan.LayerWise, "gcn")
	e.Data, e.Gradient().Heads = "cora", 4
	for range 2 {
		var reason refusal
		if _, err = b.run(t.Context(), e, 1); !errors.As(err, &reason) {
			t.Fatalf("heads must be refused with model gcn (got %v)", err)
		}
	}
	if len(b.done) != 1 || b.done[0].Refused == "" {
		t.Errorf("the reason must be kept once (got %+v)", b.done)
	}
}
