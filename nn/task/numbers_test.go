package task

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

var numberLosses = map[string]Loss{"mse": {}, "huber": {Kind: "huber", Delta: 0.7}, "quantile": {Kind: "quantile", Quantile: 0.9}}

// drawnNumbers returns predictions and targets of n nodes, every seventh of which has none.
func drawnNumbers(n, c int) (f mat.Dense, labels graph.Labels) {
	f, labels = mat.New(n, c), graph.Labels{Classes: c}
	for i := range n * c {
		f.Data[i] = float32(rng.New(1).Normal(uint64(i)))
		v := float32(rng.New(2).Normal(uint64(i)))
		if i/c%7 == 3 {
			v = float32(math.NaN())
		}
		labels.Values = append(labels.Values, v)
	}
	return f, labels
}

// TestNumbersGradient: gradients are those of finite differences; a node without a target has none.
func TestNumbersGradient(t *testing.T) {
	f, labels := drawnNumbers(40, 3)
	for name, l := range numberLosses {
		grad := mat.New(f.Rows, f.Cols)
		_, count := l.Of(grad, f, labels, nil)
		if count != 34 {
			t.Errorf("%s: %v rows with a target, must be 34", name, count)
		}
		for i := range f.Data {
			const h = 1.0 / 1024
			at := f.Data[i]
			var ends [2]float64
			for k, x := range []float32{at - h, at + h} {
				f.Data[i] = x
				ends[k], _ = l.Of(mat.Dense{}, f, labels, nil)
			}
			f.Data[i] = at
			want := (ends[1] - ends[0]) / (2 * h)
			e := math.Abs(float64(at - labels.Values[i]))
			if kink := name == "quantile" && e < 2*h; !kink && math.Abs(float64(grad.Data[i])-want) > 1e-3 {
				t.Errorf("%s: slope %v at %d, differences have %v", name, grad.Data[i], i, want)
			}
			if i/f.Cols%7 == 3 && grad.Data[i] != 0 {
				t.Errorf("%s: node %d has no target, and a gradient of %v", name, i/f.Cols, grad.Data[i])
			}
		}
	}
}

// TestNumbersMatchSklearn compares sums and gradients with scikit-learn; testdata/golden.py writes the values.
func TestNumbersMatchSklearn(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Columns             int
		Predictions, Values []float32
		Cases               map[string]struct {
			Loss float64 // mean
			Grad []float64
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	f := mat.View(len(golden.Predictions)/golden.Columns, golden.Columns, golden.Predictions)
	labels := graph.Labels{Classes: golden.Columns, Values: golden.Values}
	if len(golden.Cases) != len(numberLosses) {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for name, want := range golden.Cases {
		grad := mat.New(f.Rows, f.Cols)
		loss, count := numberLosses[name].Of(grad, f, labels, nil)
		if math.Abs(loss/count-want.Loss) > 1e-6 {
			t.Errorf("%s: %v, scikit-learn has %v", name, loss/count, want.Loss)
		}
		for i, g := range want.Grad {
			if got := float64(grad.Data[i]) / count; math.Abs(got-g) > 1e-7 {
				t.Errorf("%s: slope %v at %d, scikit-learn has %v", name, got, i, g)
			}
		}
	}
}

// TestLossFaults: a loss of numbers says what is wrong with it, and is refused for classes.
func TestLossFaults(t *testing.T) {
	for _, bad := range []Loss{{Kind: "hinge"}, {Kind: "huber"}, {Kind: "huber", Delta: math.NaN()}, {Kind: "quantile", Quantile: 1}} {
		if bad.Validate(target.Numbers) == nil {
			t.Errorf("%+v must be refused", bad)
		}
	}
	for _, l := range numberLosses {
		if err := l.Validate(target.Numbers); err != nil {
			t.Error(err)
		}
		if err := l.Validate(target.Single); (err == nil) != (l.Kind == "") {
			t.Errorf("%+v of classes: %v", l, err)
		}
	}
}
