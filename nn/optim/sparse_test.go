package optim

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestSparse: rows with a gradient take Adam's steps, those without keep value and moments, also where they had one
// before.
func TestSparse(t *testing.T) {
	const rows, cols = 5, 3
	c := Config{Name: "adam", LR: 0.1, Decay: 0.5} // decay reaches no rows
	s, err := NewSparse(c, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	c.Decay = 0
	o, err := New(c, cols) // of row 1, which has a gradient at every step
	if err != nil {
		t.Fatal(err)
	}
	value, alone := mat.New(rows, cols), make([]float32, cols)
	for step := range 4 {
		grad, before := mat.New(rows, cols), value.Clone()
		for j := range cols {
			grad.Set(1, j, float32(rng.New(1).Fold(uint64(step)).Normal(uint64(j))))
			if step == 0 {
				grad.Set(3, j, 1)
			}
		}
		o.StepScaled(alone, slices.Clone(grad.Row(1)), 0.5, 0.1)
		s.Step(value, grad, 0.5, 0.1)
		for i := range rows {
			if moved := !slices.Equal(value.Row(i), before.Row(i)); moved != (i == 1 || i == 3 && step == 0) {
				t.Errorf("row %d moved in step %d: %t", i, step, moved)
			}
		}
	}
	if !slices.Equal(value.Row(1), alone) {
		t.Errorf("row 1 is %v, Adam's is %v", value.Row(1), alone)
	}
	steps, first, second := s.State()
	again, err := NewSparse(c, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(steps, first, second); err != nil || again.steps != 4 ||
		!slices.Equal(again.m.Data, first) || !slices.Equal(again.v.Data, second) {
		t.Errorf("restored %d steps (%v)", again.steps, err)
	}
	if again.Restore(steps, first[:3], second) == nil {
		t.Error("moments of another table must be refused")
	}
	if _, err := NewSparse(Config{Name: "sgd", LR: 0.1}, 1, 1); err == nil {
		t.Error("sgd must be refused")
	}
}
