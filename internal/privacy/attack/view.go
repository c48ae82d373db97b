package attack

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// View is what a reader has of a site's rows by one plan with encoder classes, and what it is given.
type View struct {
	Form    *closed.Form
	Encoder *nn.Encoder
	Raw     graph.Features // the site's: the truth
	Nodes   []int32
	Global  []int64     // of each node of its site
	Rows    []mat.Dense // by round: the rows before any hop, as they came
	Step    [][]float64 // by round and column
	Soft    []mat.Dense // by round: weight of each boundary node in each class (nil = nothing is left out)
	Prior   mat.Dense   // C×F: how often a node of each class has a column
	Class   []int32     // of each node
	Factor  []float64   // of each boundary node's rows in aggregates (nil = 1)

	last mat.Dense // of all nodes, in the last round (empty = nothing is left out)
}

// Sent returns the rows of round r before any hop, of features x.
func (a *View) Sent(r int, x graph.Features) mat.Dense {
	var p mat.Dense
	if a.Soft != nil {
		p = a.Soft[r]
	}
	_, z := a.Form.Source(r, x, p)
	for i, f := range a.Factor {
		for k, v := range z.Row(i) {
			z.Set(i, k, float32(f*float64(v)))
		}
	}
	return z
}

// Know computes what every member of a run over shards knows besides the rows: soft labels and priors.
func (a *View) Know(shards []*shard.Shard) error {
	err := a.softLabels(shards)
	if err == nil {
		a.priors(shards)
	}
	return err
}

// softLabels computes what the nodes count in each round.
func (a *View) softLabels(shards []*shard.Shard) error {
	spec := a.Form.Spec
	if !spec.LeaveOut {
		return nil
	}
	all, err := shard.Merge(shards, 1)
	if err != nil {
		return err
	}
	x := a.Encoder.Input(all.X)
	train, others := spec.Present(all.Split, all.Labels)
	y, view := all.Labels.Rows(train), closed.WholeGraph(&all.Adj, x, spec)
	nodes := make([]int32, len(a.Nodes))
	for i, v := range a.Nodes {
		nodes[i] = int32(a.Global[v])
	}
	for r := range spec.Rounds {
		logits := spec.Prior(x.Rows(), a.Form.Counts[0].Value.Row(0))
		if r > 0 {
			if logits, _, err = a.Form.UpTo(r).Walk(view, all.Labels, all.Split, len(train) > 0); err != nil {
				return err
			}
		}
		a.last = spec.Targets(r, train, others, y, logits)
		a.Soft = append(a.Soft, a.last.Select(nodes))
	}
	return nil
}

// priors estimates from the model how often a node of each class has a column: its class means are over all nodes,
// weighed by the soft labels of the last round. The training nodes and the frequency over all nodes are added with a
// small weight, and replace them if the model has no soft labels.
func (a *View) priors(shards []*shard.Shard) {
	classes := shards[0].Labels.Classes
	f := a.Raw.Cols()
	sum, count := make([]float64, classes*f), make([]float64, classes)
	all, n := make([]float64, f), 0.0
	weigh := func(s *shard.Shard, i, c int) float64 {
		if !a.last.Empty() && !a.Form.Spec.Residual {
			return float64(a.last.At(int(s.Global[i]), c))
		}
		if s.Split[i] == graph.Train && int(s.Labels.Class[i]) == c {
			return 1
		}
		return 0
	}
	for _, s := range shards {
		n += float64(s.Owned)
		for i := range s.Owned {
			col, _ := NonZeros(s.X, int32(i))
			for c := range classes {
				w := weigh(s, i, c)
				count[c] += w
				for _, j := range col {
					sum[c*f+int(j)] += w
				}
			}
			for _, j := range col {
				all[j]++
			}
		}
	}
	const weight = 5 // nodes that the frequency over all nodes counts as
	a.Prior = mat.New(classes, f)
	for c := range classes {
		for j := range f {
			p := (sum[c*f+j] + weight*all[j]/n) / (count[c] + weight)
			a.Prior.Set(c, j, float32(min(max(p, 1e-6), 0.999)))
		}
	}
}

// Bag returns the problem of finding the k values of node i, or nil if its row reveals nothing.
func (a *View) Bag(i, k int) *Bag {
	f := a.Raw.Cols()
	b := &Bag{K: k, Prior: make([]float64, f)}
	for j := range f {
		p := float64(a.Prior.At(int(a.Class[i]), j))
		b.Prior[j] = math.Log(p / (1 - p))
	}
	type column struct {
		round, at int
		step      float64
	}
	factor := 1.0
	if a.Factor != nil {
		factor = a.Factor[i]
	}
	var columns []column
	silent := true
	for r, z := range a.Rows {
		for c, s := range a.Step[r] {
			if s == 0 {
				continue
			}
			v, step := float64(z.At(i, c))+factor*a.lead(i, r, c), s+factor*a.grid(k)
			silent = silent && z.At(i, c) == 0
			columns = append(columns, column{r, c, step})
			b.Target = append(b.Target, v/step)
		}
	}
	if silent || len(columns) == 0 {
		return nil
	}
	b.Atom = make([]float64, f*len(columns))
	value := a.Value(k)
	for t, at := range columns {
		part, scale := a.own(i, at.round, at.at)
		for j := range f {
			u := (1 + part) * value * float64(a.Form.Means[at.round].Value.At(j, at.at))
			if part > 0 {
				inverse := float64(a.Form.Inverse.Value.Data[j])
				u += part * scale * inverse * value * (float64(a.Form.Centre.Value.Data[j]) - value)
			}
			b.Atom[j*len(columns)+t] = factor * u / at.step
		}
	}
	return b
}

// grid returns the sender's rounding of a column, of a row of k values: components are not coarse.
func (a *View) grid(k int) float64 {
	if a.Raw.Sparse == nil {
		return 0
	}
	return a.Form.Spec.Grid(a.Raw.Cols(), k)
}

// Value returns the value of each of a bag's k columns, as the encoder sees them.
func (a *View) Value(k int) float64 {
	row := mat.New(1, k)
	for j := range k {
		row.Data[j] = 1
	}
	return float64(a.Encoder.Input(graph.Features{Dense: row}).Dense.Data[0])
}

// own returns the fraction of a row's own part that was taken out of a mean (closed.Form.LeaveOwn), and the mean's
// scale.
func (a *View) own(i, r, c int) (part, scale float64) {
	if a.Soft == nil || a.Form.Spec.Residual {
		return 0, 1
	}
	return a.Form.OwnPart(r, c, a.Soft[r].At(i, c)), float64(a.Form.Counts[r].Value.At(1, c))
}

// lead returns by how much less the column is for a training node.
func (a *View) lead(i, r, c int) float64 {
	if a.Soft == nil || r == 0 {
		return 0
	}
	return float64(a.Form.Lead(r, c, a.Soft[r].At(i, c)))
}

// Steps returns the grid of each column of a message: its largest magnitude is 127 steps of int8, 7 of int4.
func Steps(format string, z mat.Dense) []float64 {
	step := make([]float64, z.Cols)
	for i := range z.Rows {
		for c, v := range z.Row(i) {
			step[c] = max(step[c], math.Abs(float64(v))/levels[format])
		}
	}
	return step
}
