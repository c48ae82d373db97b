package nn

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

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
	grad := mat.New(f.Rows, f.Cols)
	if _, count := Loss(grad, f, labels, nil); count != 34 {
		t.Errorf("%v rows with a target, must be 34", count)
	}
	for i := range f.Data {
		const h = 1.0 / 1024
		at := f.Data[i]
		var ends [2]float64
		for k, x := range []float32{at - h, at + h} {
			f.Data[i] = x
			ends[k], _ = Loss(mat.Dense{}, f, labels, nil)
		}
		f.Data[i] = at
		if want := (ends[1] - ends[0]) / (2 * h); math.Abs(float64(grad.Data[i])-want) > 1e-3 {
			t.Errorf("slope %v at %d, differences have %v", grad.Data[i], i, want)
		}
		if i/f.Cols%7 == 3 && grad.Data[i] != 0 {
			t.Errorf("node %d has no target, and a gradient of %v", i/f.Cols, grad.Data[i])
		}
	}
}

// TestNumbersMatchSklearn compares sums and gradients with scikit-learn; testdata/loss_golden.py writes the values.
func TestNumbersMatchSklearn(t *testing.T) {
	b, err := os.ReadFile("testdata/loss_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Columns             int
		Predictions, Values []float32
		Loss                float64 // mean
		Grad                []float64
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	f := mat.View(len(golden.Predictions)/golden.Columns, golden.Columns, golden.Predictions)
	labels := graph.Labels{Classes: golden.Columns, Values: golden.Values}
	grad := mat.New(f.Rows, f.Cols)
	loss, count := Loss(grad, f, labels, nil)
	if math.Abs(loss/count-golden.Loss) > 1e-6 {
		t.Errorf("%v, scikit-learn has %v", loss/count, golden.Loss)
	}
	for i, g := range golden.Grad {
		if got := float64(grad.Data[i]) / count; math.Abs(got-g) > 1e-7 {
			t.Errorf("slope %v at %d, scikit-learn has %v", got, i, g)
		}
	}
}
