package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/ports"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

func TestSurvivalSettings(t *testing.T) {
	t.Parallel()
	data := sites(t)
	for args, want := range map[string][]string{
		"--min-peers 2":                                        {"min_peers must be more than half of 4", "got 2"},
		"--min-peers 5":                                        {"min_peers must be at most", "4 (got 5)"},
		"--min-peers 3 --failed-rows guess":                    {"guess", "previous"},
		"--failed-rows drop":                                   {"failed_rows applies only with min_peers (got min_peers 0)"},
		"--straggler later":                                    {"later", "adapt"},
		"--straggler adapt --round-limit 5s":                   {"round_limit applies only with straggler drop (got straggler adapt)"},
		"--straggler adapt --preset frugal-pca":                {"adapt", "ridge"},
		"--straggler adapt --preset frugal":                    {"straggler applies only to encoder raw, pca or mlp (got encoder classes)"},
		"--min-peers 3 --preset frugal":                        {"min_peers must be 0 with encoder classes (got 3)", "would tell that peer's part of its sums"},
		"--straggler adapt --mode fullbatch":                   {"straggler applies only to mode retexo (got mode fullbatch)"},
		"--min-peers 3 --straggler drop":                       {"round_limit"},
		"--min-peers 3 --failure-wait 10ms":                    {"failure_wait must be at least 1s and at most 1h (got 10ms)"},
		"--min-peers 3 --mode fullbatch":                       {"min_peers applies only to mode retexo (got mode fullbatch)"},
		"--min-peers 3 --failed-rows previous --inductive":     {"failed_rows", "inductive"},
		"--min-peers 3 --straggler drop --round-limit -1s":     {"round_limit must be at least 100ms", "(got -1s)"},
		"--min-peers 3 --round-limit 5s --failed-rows missing": {"round_limit applies only", "missing"},
	} {
		refuse(t, 2, want, append([]string{"train", "--data", data, "--peers", "4", "--transport", "memory", "-q"}, strings.Fields(args)...)...)
	}

	// In one process no peer fails, and the model is that of a run that waits.
	dir := t.TempDir()
	for name, more := range map[string][]string{"waits": nil, "survives": {"--min-peers", "3"}} {
		must(t, slices.Concat([]string{"train", "--data", data, "--peers", "4", "--encoder", "raw", "--hidden", "8", "--rounds", "5", "--transport", "memory", "-q",
			"-o", filepath.Join(dir, name)}, more)...)
	}
	if a, b := figures(t, filepath.Join(dir, "waits", "result.json")), figures(t, filepath.Join(dir, "survives", "result.json")); *a.Loss[9] != *b.Loss[9] || *a.TestAccuracy != *b.TestAccuracy {
		t.Errorf("losses %v and %v, accuracies %v and %v", *a.Loss[9], *b.Loss[9], *a.TestAccuracy, *b.TestAccuracy)
	}
}

// flock is the peers of one run, a process each.
type flock struct {
	*crew
	plan  string
	mu    sync.Mutex
	lines []bytes.Buffer // standard error by rank
	procs []*exec.Cmd
	env   []string // more of it, of those that are started
}

// Write of a peer's standard error.
type tail struct {
	f    *flock
	rank int
}

func (w tail) Write(b []byte) (int, error) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	return w.f.lines[w.rank].Write(b)
}

func (f *flock) start(t *testing.T, r int, more ...string) {
	t.Helper()
	args := slices.DeleteFunc(f.join(r, f.plan, append([]string{"--json", f.json(r), "--rejoin", "1m"}, more...)...), func(s string) bool { return s == "-q" })
	p := process(t, args...)
	p.Stderr = tail{f, r}
	p.Env = append(p.Env, f.env...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	f.procs[r] = p
}

func (f *flock) json(r int) string { return filepath.Join(f.dir, fmt.Sprintf("result-%d.json", r)) }

func (f *flock) said(r int, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(f.lines[r].String(), text)
}

// until waits for peer r to say text.
func (f *flock) until(t *testing.T, r int, text string) {
	t.Helper()
	for begun := time.Now(); !f.said(r, text); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("peer %d has not said %q:\n%s", r, text, f.lines[r].String())
		}
	}
}

func (f *flock) kill(r int) {
	f.procs[r].Process.Kill()
	f.procs[r].Wait()
}

// accuracy returns the accuracy of the model at path over all test nodes of g.
func accuracy(t *testing.T, path string, g *graph.Graph) float64 {
	t.Helper()
	m, _, err := modelfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := m.Infer(g)
	if err != nil {
		t.Fatal(err)
	}
	return eval.Metric("accuracy").Exact(scores, g.Labels, g.InSplit(graph.Test))
}

// TestSurvive kills one of four peers over QUIC. The others continue without it to a model as good
// as that of an undisturbed run. If it returns while they train or in their grace period, it
// fetches their state, and all four end with the same model.
func TestSurvive(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	t.Parallel()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 4000, Sites: 4, Classes: 4, Columns: 60, Train: 0.4, Val: 0.1}, rng.New(3))
	data := filepath.Join(t.TempDir(), "data")
	if err := dataset.Write(data, g); err != nil {
		t.Fatal(err)
	}
	settings := []string{"--rounds", "100", "--hidden", "16", "--encoder", "raw", "--lr", "0.01"}
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, slices.Concat([]string{"train", "--data", data, "--peers", "4", "--policy", "by-column", "--transport", "memory", "-q", "-o", whole}, settings)...)

	var port int
	if _, err := fmt.Sscan(fmt.Sprint(ports.Free(t, 8)), &port); err != nil {
		t.Fatal(err)
	}
	undisturbed := accuracy(t, filepath.Join(whole, "model.safetensors"), g)
	for i, test := range []struct {
		name   string
		victim int
		rows   string
		back   bool // before the end
	}{{"coordinator back after the end", 0, "drop", false}, {"back", 2, "previous", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := &flock{crew: &crew{dir: t.TempDir()}, lines: make([]bytes.Buffer, 4), procs: make([]*exec.Cmd, 4)}
			f.parts = filepath.Join(f.dir, "parts")
			must(t, "partition", "--data", data, "--parts", "4", "--policy", "by-column", "-o", f.parts)
			for r := range 4 {
				f.members = append(f.members, fmt.Sprintf("site-%d=%s", r, strings.TrimSpace(must(t, "init", "--identity", f.key(r)))))
			}
			f.plan = f.crew.plan(t, f.members, slices.Concat(settings, []string{"--port", fmt.Sprint(port + 4*i), "--peer-timeout", "1s", "--min-peers", "3", "--failure-wait", "1s", "--grace-period", "1m", "--failed-rows", test.rows})...)
			for r := range 4 {
				f.start(t, r, "--link", "latency=20ms") // 40 ms a round: time to be killed in, and to come back
			}
			other := (test.victim + 1) % 4
			f.until(t, other, "stage done") // in the second layer's rounds, or about to be
			f.kill(test.victim)
			f.until(t, other, "number=2")
			if test.back {
				f.start(t, test.victim, "--link", "latency=20ms")
				f.until(t, other, "number=3")
			} else {
				for r := range 4 {
					if r != test.victim {
						f.until(t, r, "staying for failed peers")
						if _, err := os.Stat(filepath.Join(f.dir, fmt.Sprintf("out-%d", r), "model.safetensors")); err != nil {
							t.Errorf("peer %d stays, and has not written its model: %v", r, err)
						}
					}
				}
				f.start(t, test.victim)
			}
			var want []byte
			for r, p := range f.procs {
				if err := p.Wait(); err != nil {
					t.Fatalf("peer %d: %v\n%s", r, err, f.lines[r].String())
				}
				model := filepath.Join(f.dir, fmt.Sprintf("out-%d", r), "model.safetensors")
				m, _, err := modelfile.Read(model)
				if err != nil {
					t.Fatal(err)
				}
				var bits []byte
				for _, p := range m.Params() {
					bits = fmt.Appendf(bits, "%x", p.Value.Data)
				}
				if want == nil {
					want = bits
				}
				if !bytes.Equal(bits, want) {
					t.Errorf("peer %d made another model", r)
				}
				got := accuracy(t, model, g)
				t.Logf("peer %d: test accuracy over all nodes %.4f, undisturbed %.4f", r, got, undisturbed)
				if got < undisturbed-0.03 { // TestWorthOfTheLost measures it: a fifth of a point in the mean, half a point either way
					t.Errorf("peer %d: accuracy %.4f, undisturbed %.4f", r, got, undisturbed)
				}
				gs := figures(t, f.json(r)).Generations
				lost := fmt.Sprintf("site-%d", test.victim)
				if r != test.victim && (len(gs) < 2 || len(gs[0].Lost) != 0 || !slices.Equal(gs[1].Lost, []string{lost})) || len(gs[len(gs)-1].Lost) != 0 {
					t.Errorf("peer %d: generations %+v, must be one without %s", r, gs, lost)
				}
				if len(figures(t, f.json(r)).Loss) != 200 {
					t.Errorf("peer %d: %d rounds in the report, must be 200", r, len(figures(t, f.json(r)).Loss))
				}
			}
		})
	}
}

// TestTooLate: a peer that returns when the others have left is told where the model is.
func TestTooLate(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3)
	plan := c.plan(t, c.members, "--port", fmt.Sprint(ports.Free(t, 6)), "--min-peers", "2")
	refuse(t, 1, []string{"waiting for", "site-1", "model.safetensors"}, c.join(0, plan, "--wait", "300ms")...)
}
