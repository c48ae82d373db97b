package optim

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// golden holds steps of torch.optim; testdata/golden.py writes it.
type golden struct {
	Start []float32
	Grads [][]float32
	Rates []float32
	Cases map[string]struct {
		Config Config
		After  [][]float32
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) < 5 || len(g.Grads) < 5 {
		t.Fatalf("%d cases of %d steps", len(g.Cases), len(g.Grads))
	}
	return g
}

// Four units in the last place of the largest magnitude around: PyTorch fuses some products and
// rounds β as a double.
const tolerance = 4 * 0x1p-23

func TestStepsMatchTorch(t *testing.T) {
	g := readGolden(t)
	for name, c := range g.Cases {
		t.Run(name, func(t *testing.T) {
			o, err := New(c.Config, len(g.Start))
			if err != nil {
				t.Fatal(err)
			}
			w := slices.Clone(g.Start)
			worst := 0.0
			for s, grad := range g.Grads {
				o.Step(w, grad, g.Rates[s])
				for i := range w {
					scale := max(1, math.Abs(float64(c.After[s][i])))
					off := math.Abs(float64(w[i])-float64(c.After[s][i])) / scale
					worst = max(worst, off)
					if off > tolerance {
						t.Fatalf("step %d, value %d: %v, torch has %v", s, i, w[i], c.After[s][i])
					}
				}
			}
			t.Logf("largest difference %.2g", worst)
		})
	}
}

// The bits after the golden steps are the same on every processor and kernel set; a fused product
// would change them.
func TestStepsKeepBits(t *testing.T) {
	g := readGolden(t)
	want := map[string]uint32{"sgd": 0x3f48e8b2, "sgd momentum decay": 0xc6f2e0e2, "adam decay": 0x323aa28b,
		"adam betas": 0x3f3b9c10, "adamw": 0x816d6681}
	for name, sum := range want {
		c := g.Cases[name]
		o, err := New(c.Config, len(g.Start))
		if err != nil {
			t.Fatal(err)
		}
		w := slices.Clone(g.Start)
		for s, grad := range g.Grads {
			o.Step(w, grad, g.Rates[s])
		}
		var b []byte
		for _, v := range w {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		if got := crc32.ChecksumIEEE(b); got != sum {
			t.Errorf("%s: checksum %#x, want %#x", name, got, sum)
		}
	}
}

// Restoring the state in the middle gives the bits of a run that was not interrupted.
func TestRestoreContinues(t *testing.T) {
	g := readGolden(t)
	for name, c := range g.Cases {
		t.Run(name, func(t *testing.T) {
			a, _ := New(c.Config, len(g.Start))
			b, _ := New(c.Config, len(g.Start))
			w := slices.Clone(g.Start)
			for s := range 3 {
				a.Step(w, g.Grads[s], g.Rates[s])
			}
			v := slices.Clone(w)
			steps, moments := a.State()
			if steps != 3 {
				t.Fatalf("state says %d steps", steps)
			}
			if err := b.Restore(steps, moments); err != nil {
				t.Fatal(err)
			}
			for s := 3; s < len(g.Grads); s++ {
				a.Step(w, g.Grads[s], g.Rates[s])
				b.Step(v, g.Grads[s], g.Rates[s])
			}
			if !slices.Equal(v, w) {
				t.Fatalf("restored run ends at %v, the other at %v", v, w)
			}
		})
	}
}

func TestRestoreRefuses(t *testing.T) {
	o, _ := New(Config{Name: "adam", LR: 1}, 2)
	o.Step(make([]float32, 2), []float32{1, 2}, 1)
	for _, moments := range [][][]float32{nil, {{1, 2}}, {{1, 2}, {3}}} {
		if err := o.Restore(9, moments); err == nil {
			t.Errorf("restored from %v", moments)
		}
	}
	if err := o.Restore(-1, [][]float32{{1, 2}, {3, 4}}); err == nil {
		t.Error("restored to step −1")
	}
	if steps, m := o.State(); steps != 1 || m[0][0] == 1 {
		t.Errorf("a refused state was partly taken: %d %v", steps, m)
	}
}

func TestValidateReportsAll(t *testing.T) {
	nan := float32(math.NaN())
	err := Config{Name: "lion", LR: -1, Momentum: 1, Beta1: 2, Beta2: nan, Eps: -1,
		Decay: float32(math.Inf(1))}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{`"lion"`, "lr must be a finite number above 0 (got -1)",
		"momentum must be a number in [0, 1) (got 1)", "beta1 must be a number in [0, 1) (got 2)",
		"beta2 must be a number in [0, 1) (got NaN)", "eps must be a finite number of at least 0 (got -1)",
		"decay must be a finite number of at least 0 (got +Inf)"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q is not in %q", field, err)
		}
	}
	for _, c := range []Config{{Name: "sgd", LR: 1, Beta1: 0.9}, {Name: "adam", LR: 1, Momentum: 0.9}, {Name: "adam"},
		{LR: 1}} {
		if _, err := New(c, 1); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	err = Schedule{Kind: "step"}.Validate()
	if err == nil || !strings.Contains(err.Error(), "step") {
		t.Errorf("schedule: %v", err)
	}
	for _, s := range []Schedule{{Kind: "cosine"}, {Kind: "linear", Total: -1}} {
		if s.Validate() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	w, g := make([]float32, 100), make([]float32, 100)
	for _, c := range []Config{{Name: "sgd", LR: 1}, {Name: "sgd", LR: 1, Momentum: 0.9}, {Name: "adam", LR: 1},
		{Name: "adamw", LR: 1, Decay: 0.1}} {
		o, err := New(c, 100)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() { o.Step(w, g, 0.1) }); n != 0 {
			t.Errorf("%s: %v allocations a step", c.Name, n)
		}
	}
}

func TestStepRefusesOtherLengths(t *testing.T) {
	for _, c := range []Config{{Name: "sgd", LR: 1}, {Name: "adam", LR: 1}} {
		o, _ := New(c, 3)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s stepped over 3 values and 2 gradients", c.Name)
				}
			}()
			o.Step(make([]float32, 3), make([]float32, 2), 1)
		}()
	}
}

func TestSchedule(t *testing.T) {
	near := func(got float32, want float64) bool { return math.Abs(float64(got)-want) < 1e-7 }
	for _, c := range []struct {
		s    Schedule
		step int
		want float64
	}{
		{Schedule{}, 0, 1},
		{Schedule{}, 1 << 30, 1},
		{Schedule{Kind: "constant"}, 4, 1},
		{Schedule{Kind: "linear", Total: 10}, 0, 1},
		{Schedule{Kind: "linear", Total: 10}, 9, 0.1},
		{Schedule{Kind: "linear", Total: 10}, 10, 0},
		{Schedule{Kind: "cosine", Total: 9}, 3, 0.75},
		{Schedule{Kind: "cosine", Total: 9}, 6, 0.25},
		{Schedule{Kind: "cosine", Total: 9}, 12, 0},
	} {
		if got := c.s.At(c.step); !near(got, c.want) {
			t.Errorf("%+v at %d: %v, want %v", c.s, c.step, got, c.want)
		}
	}
	for x := 0.0; x <= math.Pi/2; x += 1e-3 {
		if math.Abs(cosine(x)-math.Cos(x)) > 4e-16 {
			t.Fatalf("cosine(%v) is %v, want %v", x, cosine(x), math.Cos(x))
		}
	}
	for _, kind := range []string{"linear", "cosine"} {
		s, last := Schedule{Kind: kind, Total: 1000}, float32(2)
		for step := range 1001 {
			f := s.At(step)
			if f > last || f < 0 || f > 1 {
				t.Fatalf("%s rises from %v to %v at step %d", kind, last, f, step)
			}
			last = f
		}
	}
}
