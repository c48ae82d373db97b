package checkpoint

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
)

// A run that stops after every step and goes on from its state ends with the bits of one that does
// not stop.
func TestResumeGivesTheSameBits(t *testing.T) {
	const n, steps = 50, 8
	key := rng.New(1)
	grad := func(step int, w []float32) []float32 {
		g := make([]float32, n)
		for i := range g {
			g[i] = w[i] + float32(key.Fold(uint64(step)).Normal(uint64(i)))
		}
		return g
	}
	for _, cfg := range []optim.Config{
		{Name: "sgd", LR: 0.1},
		{Name: "sgd", LR: 0.1, Momentum: 0.9, Decay: 0.01},
		{Name: "adam", LR: 0.1, Decay: 0.01},
		{Name: "adamw", LR: 0.1, Decay: 0.01},
	} {
		optimiser := func() *optim.Optimizer {
			o, err := optim.New(cfg, n)
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		whole, o := make([]float32, n), optimiser()
		for step := range steps {
			o.Step(whole, grad(step, whole), cfg.LR)
		}
		s := &Store{Dir: t.TempDir()}
		w := make([]float32, n)
		for step := range steps {
			o := optimiser()
			if step > 0 {
				st, _, err := latest(s)
				if err != nil || st == nil {
					t.Fatal(err)
				}
				w = st.F32["params"]
				var moments [][]float32
				for i := range len(st.F32) - 1 {
					moments = append(moments, st.F32["moment"+strconv.Itoa(i)])
				}
				if err := o.Restore(st.I64["steps"][0], moments); err != nil {
					t.Fatal(err)
				}
			}
			o.Step(w, grad(step, w), cfg.LR)
			count, moments := o.State()
			st := &State{Fingerprints: run, F32: map[string][]float32{"params": w},
				I64: map[string][]int64{"steps": {count}}}
			for i, m := range moments {
				st.F32["moment"+strconv.Itoa(i)] = m
			}
			if err := s.Save(uint64(step), st); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(w, whole) {
			t.Errorf("%+v: the resumed run ends with other bits", cfg)
		}
	}
}

const saverDir = "HEDDLE_TEST_SAVER_DIR"

// TestSaverProcess is the child of TestKilledWhileSaving: a process that saves states until it is
// killed.
func TestSaverProcess(t *testing.T) {
	dir := os.Getenv(saverDir)
	if dir == "" {
		t.Skip("runs only as a child of TestKilledWhileSaving")
	}
	s := &Store{Dir: dir}
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	seq := uint64(0)
	if len(all) > 0 {
		seq = all[0] + 1
	}
	for ; ; seq++ {
		x := make([]float32, 1<<18)
		for i := range x {
			x[i] = float32(seq)
		}
		if err := s.Save(seq, &State{Fingerprints: run, F32: map[string][]float32{"x": x}}); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("saved %d\n", seq)
	}
}

// Whenever a process dies, the state that it last reported as saved, or the one that it was saving, is there whole.
func TestKilledWhileSaving(t *testing.T) {
	dir := t.TempDir()
	for kill := range 6 {
		child := exec.Command(os.Args[0], "-test.run=^TestSaverProcess$")
		child.Env = append(os.Environ(), saverDir+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		said, lines := uint64(0), bufio.NewScanner(out)
		for n := 0; n <= kill && lines.Scan(); n++ {
			if _, err := fmt.Sscanf(lines.Text(), "saved %d", &said); err != nil {
				t.Errorf("the child says %q", lines.Text())
			}
		}
		child.Process.Kill()
		for lines.Scan() { // what it printed before the kill
			if text := lines.Text(); strings.HasPrefix(text, "saved ") {
				fmt.Sscanf(text, "saved %d", &said)
			}
		}
		child.Wait()
		st, damaged, err := latest(&Store{Dir: dir})
		if err != nil || st == nil {
			t.Fatal(st, err)
		}
		if st.Seq != said && st.Seq != said+1 || damaged > 0 {
			t.Errorf("latest is %d, %d are damaged; the child saved %d", st.Seq, damaged, said)
		}
		if x := st.F32["x"]; len(x) != 1<<18 || x[0] != float32(st.Seq) || x[len(x)-1] != float32(st.Seq) {
			t.Errorf("state %d holds %d values from %v to %v", st.Seq, len(x), x[0], x[len(x)-1])
		}
	}
}
