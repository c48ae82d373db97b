package optim

import (
	"fmt"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// SparseAdam is Adam over the rows of a table. A step changes only the rows that have a gradient, and their
// moments (PyTorch's SparseAdam). It has no decay, which would reach rows that a step does not read.
type SparseAdam struct {
	cfg   Config
	steps int64
	m, v  mat.Dense // rows×cols, Adam's first and second moments
}

// NewSparse returns the optimiser of a table of rows×cols that cfg describes, whose name must be adam or adamw.
func NewSparse(cfg Config, rows, cols int) (*SparseAdam, error) {
	if cfg.Name != "adam" && cfg.Name != "adamw" {
		return nil, fmt.Errorf("name must be adam or adamw for a table of rows (got %q)", cfg.Name)
	}
	o, err := New(cfg, 0)
	if err != nil {
		return nil, err
	}
	return &SparseAdam{cfg: o.cfg, m: mat.New(rows, cols), v: mat.New(rows, cols)}, nil
}

// Step makes one step with the learning rate lr by scale·grad over the rows of value that have a gradient other than 0.
// It leaves nothing of use in grad.
func (s *SparseAdam) Step(value, grad mat.Dense, scale, lr float32) {
	s.steps++
	correct1, correct2 := correction(s.cfg.Beta1, s.steps), correction(s.cfg.Beta2, s.steps)
	for i := range value.Rows {
		g := grad.Row(i)
		if zero(g) {
			continue
		}
		kernels.AdamStep(value.Row(i), g, s.m.Row(i), s.v.Row(i), scale, lr, s.cfg.Beta1, s.cfg.Beta2, s.cfg.Eps,
			correct1, correct2, 0, 0)
	}
}

func zero(row []float32) bool {
	for _, x := range row {
		if x != 0 {
			return false
		}
	}
	return true
}

// State returns the number of steps made and the moments, which alias the optimiser's own.
func (s *SparseAdam) State() (steps int64, first, second []float32) {
	return s.steps, s.m.Data, s.v.Data
}

// Restore sets what State returned, copying the moments. The error names the length that differs; then nothing changed.
func (s *SparseAdam) Restore(steps int64, first, second []float32) error {
	if n := len(s.m.Data); steps < 0 || len(first) != n || len(second) != n {
		return fmt.Errorf("the moments of a table must have %d values each and at least 0 steps "+
			"(got %d, %d and %d)", n, len(first), len(second), steps)
	}
	s.steps = steps
	copy(s.m.Data, first)
	copy(s.v.Data, second)
	return nil
}
