package fullbatch

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// ownRows are the learned rows of nodes without features. Each worker has the rows of its own nodes and trains them by
// itself, unlike parameters, which all workers have and sum. Other workers read a boundary node's row like any layer's
// row, and send its gradient back. The methods do nothing for nil.
type ownRows struct {
	of    []int32   // [Owned] row of each node in the table (−1 = the node has features)
	table mat.Dense // rows×D
	grad  mat.Dense
	best  mat.Dense
	opt   *optim.SparseAdam
}

// newOwnRows returns the learned rows of owned nodes of s: of all nodes if their features are only numbers, else of
// nodes without features. The rows are normally distributed with variance 1/D, seeded by the global IDs. It returns nil
// if the encoder has no such rows.
func newOwnRows(c Config, s *shard.Shard, key rng.Key) (*ownRows, error) {
	if c.Spec.Encoder.Kind != "embedding" {
		return nil, nil
	}
	d, numbers := c.Spec.Encoder.Hidden, c.Spec.Reads(s.X).Cols() != s.X.Cols()
	o, n := &ownRows{of: make([]int32, s.Owned)}, 0
	for i := range o.of {
		o.of[i] = -1
		if numbers || bare(s, i) {
			o.of[i] = int32(n)
			n++
		}
	}
	o.table, o.grad = mat.New(n, d), mat.New(n, d)
	key = key.FoldString("rows of nodes")
	for i, k := range o.of {
		if k < 0 {
			continue
		}
		at := key.Fold(uint64(s.Global[i]))
		for j := range o.table.Row(int(k)) {
			o.table.Set(int(k), j, float32(at.Normal(uint64(j))/math.Sqrt(float64(d))))
		}
	}
	o.best = o.table.Clone()
	var err error
	o.opt, err = optim.NewSparse(c.Optimizer, n, d)
	return o, err
}

// bare reports whether the features of owned node i give no more than its type: there are none, or one column that is
// 1, which the readers of tables add.
func bare(s *shard.Shard, i int) bool {
	if s.Types.Count() == 0 {
		return false
	}
	lo, hi := s.Types.Columns(int(s.Types.Of[i]), s.X.Cols())
	if hi-lo != 1 {
		return hi == lo
	}
	if s.X.Sparse == nil {
		return s.X.Dense.At(i, lo) == 1
	}
	_, val := s.X.Sparse.Row(i)
	return len(val) == 1 && val[0] == 1
}

// addTo adds the rows of some owned nodes to h, which has a row for each.
func (o *ownRows) addTo(h mat.Dense, nodes []int32) {
	if o == nil {
		return
	}
	for i, node := range nodes {
		if k := o.of[node]; k >= 0 {
			kernels.Add(o.table.Row(int(k)), h.Row(i))
		}
	}
}

// learn adds the gradient d of the rows that addTo added.
func (o *ownRows) learn(d mat.Dense, nodes []int32) {
	if o == nil {
		return
	}
	for i, node := range nodes {
		if k := o.of[node]; k >= 0 {
			kernels.Add(d.Row(i), o.grad.Row(int(k)))
		}
	}
}

// zeroGrad clears the last step's gradient.
func (o *ownRows) zeroGrad() {
	if o != nil {
		clear(o.grad.Data)
	}
}

// stepRows makes an optimiser step with the gradient times scale.
func (o *ownRows) stepRows(scale, lr float32) {
	if o != nil {
		o.opt.Step(o.table, o.grad, scale, lr)
	}
}

// keepBest copies the rows of the epoch with the best validation so far.
func (o *ownRows) keepBest() {
	if o != nil {
		o.best.CopyFrom(o.table)
	}
}

// takeBest restores the rows of the best epoch.
func (o *ownRows) takeBest() {
	if o != nil {
		o.table.CopyFrom(o.best)
	}
}

// Keep implements train.Kept: no other worker gets the rows.
func (o *ownRows) Keep(c *train.Checkpoint) error {
	steps, first, second := o.opt.State()
	c.I64["rows/steps"] = []int64{steps}
	for name, x := range map[string][]float32{"rows/table": o.table.Data, "rows/best": o.best.Data, "rows/first": first,
		"rows/second": second} {
		c.F32[name] = x
	}
	return nil
}

// TakeUp implements train.Kept.
func (o *ownRows) TakeUp(c *train.Checkpoint) error {
	if n := len(o.table.Data); len(c.I64["rows/steps"]) != 1 || len(c.F32["rows/table"]) != n ||
		len(c.F32["rows/best"]) != n {
		return fmt.Errorf("a checkpoint must have the rows of %d nodes (got %d numbers)", o.table.Rows,
			len(c.F32["rows/table"]))
	}
	copy(o.table.Data, c.F32["rows/table"])
	copy(o.best.Data, c.F32["rows/best"])
	return o.opt.Restore(c.I64["rows/steps"][0], c.F32["rows/first"], c.F32["rows/second"])
}
