package retexo

import (
	"context"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/rows"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/linear"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// costs returns what the closed forms of a run take: the components of encoder pca, and the layer of solver ridge.
func (t *Trainer) costs() (all []linear.Cost) {
	spec := t.config.Spec
	if spec.Encoder.Kind == "pca" {
		all = append(all, linear.ComponentsCost(spec.Features, spec.Encoder.Components(spec.Classes), t.config.PCAPasses))
	}
	if t.config.Solver == "ridge" {
		for _, l := range t.model.Layers {
			all = append(all, linear.RidgeCost(columns(l), spec.Classes, len(t.config.Lambdas)))
		}
	}
	return all
}

// columns returns how many columns the design of a layer has whose maps are those of a closed form.
func columns(l *nn.Layer) int {
	d := 1
	self, nbr, _ := l.Maps()
	for _, one := range []*rows.Linear{self, nbr} {
		if one != nil {
			d += one.W.Value.Rows
		}
	}
	return d
}

// manyRowBytes is how many bytes of rows a peer sends without a word.
const manyRowBytes = 256 << 20

// warnOfCosts says once, before anything travels, which closed forms take long, and whether rows take many bytes.
func (t *Trainer) warnOfCosts() {
	if t.warned {
		return
	}
	t.warned = true
	if why := t.config.WithoutClasses; why != "" {
		t.report(train.Event{Kind: train.Note, Text: "the layers see components alone, without columns of classes: " + why})
	}
	boundary, bytes := 0, 0
	for _, rows := range t.shard.Boundary {
		boundary += len(rows)
	}
	for k, l := range t.config.Spec.Layers {
		hops := l.Hops
		if k == 0 && t.input.Sparse != nil && t.config.Spec.Encoder.Kind == "raw" {
			hops-- // rows of few values; each aggregation fills them
		}
		bytes += hops * boundary * t.sender.RowLen(l.In)
	}
	if bytes >= manyRowBytes {
		t.report(train.Event{Kind: train.Warning, Text: fmt.Sprintf("this peer will send up to %d MB of rows, of %d nodes: encoder pca makes them narrower",
			bytes/1e6, boundary)})
	}
	for _, c := range t.costs() {
		if text := c.Warning(); text != "" {
			t.report(train.Event{Kind: train.Warning, Text: text})
		}
	}
}

// solve finds the linear layer of least squares over the training nodes of all peers (linear.Ridge) in one reduction:
// from the layer's input, [own ‖ aggregate ‖ 1] where it has a map of its own rows, to the one-hot labels. A second
// reduction validates the solutions of all penalties at once.
func (t *Trainer) solve(ctx context.Context, w work, e *event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	st := t.stage
	sums, z, y, err := t.equations(ctx, t.id(ofEquations, w), w.Stage)
	if err != nil {
		return err
	}
	if st.solutions, st.solved, err = linear.Ridge(ctx, sums, z.Cols, y.Cols, t.config.Lambdas); err != nil {
		return err
	}
	if t.nudge != nil {
		t.nudge(st.solved)
	}
	// With the metrics go the digests of the solutions: each peer solves by itself, and processors may round apart.
	size := t.metric.Size()
	vals := make([]int64, len(st.solutions)*size)
	zv := st.design(st.val)
	for k, s := range st.solutions {
		logits := mat.New(zv.Rows, s.Cols)
		kernels.GemmNN(zv.Rows, s.Cols, zv.Cols, zv.Data, zv.Cols, s.Data, s.Cols, logits.Data, s.Cols, false)
		st.val.measure(t.metric, vals[k*size:], logits)
	}
	if err = t.reduce(ctx, &comm.Contribution{ID: t.id(ofSolutions, w), Counts: vals, CountBits: t.countBits, Wide: t.metric.Wide, Meta: recovery.Statement{Digest: train.Digest(st.solved)}.Encode(nil)}); err != nil {
		return err
	}
	for k := range st.solutions {
		metric, _, labels, err := t.read(t.metric, vals[k*size:])
		if err != nil {
			return err
		}
		e.Vals, e.Labels = append(e.Vals, metric), float64(labels)
	}
	e.Digests = t.digests()
	return nil
}

// equations returns the sums of the normal equations from the layer's input to the labels, over the training nodes of all
// peers, and this peer's rows of both.
func (t *Trainer) equations(ctx context.Context, id comm.ReduceID, stage int) (sums []float32, z, y mat.Dense, err error) {
	st, most := t.stage, math.Inf(1)
	z = st.design(st.train)
	if enc := t.config.Spec.Encoder; stage == 1 && enc.Classes == nil && (enc.Kind == "pca" || enc.L1Norm || enc.L2Norm) {
		most = linear.MostSquare
	}
	y, weight := linear.Targets(st.train.labels, st.weight)
	known := linear.NewJoint(t.labels.Classes, t.labels.Labelled, st.train.labels, st.weight)
	known.All = true
	sums, err = known.SumEquations(ctx, t.reducer, id, z, y, weight, most)
	return sums, z, y, err
}

// design returns the rows [own ‖ aggregate ‖ 1] of b, without own where the layer has no map of it.
func (st *stage) design(b batch) mat.Dense {
	self, nbr, _ := st.layer.Maps()
	parts := make([]graph.Features, 0, 2)
	if self != nil {
		parts = append(parts, b.in.X)
	}
	if nbr != nil {
		parts = append(parts, b.in.Z)
	}
	return linear.Design(b.rows, parts...)
}

// choose writes solution k to the layer.
func (st *stage) choose(k int) {
	self, nbr, _ := st.layer.Affine()
	s, at := st.solutions[k], 0
	for _, l := range []*rows.Linear{self, nbr} {
		if l == nil {
			continue
		}
		n := l.W.Value.Rows
		l.W.Value.CopyFrom(s.RowRange(at, at+n))
		at += n
		if l.B != nil {
			l.B.Value.Zero()
		}
	}
	for _, l := range []*rows.Linear{self, nbr} {
		if l != nil && l.B != nil { // the constant goes to one of the biases
			l.B.Value.CopyFrom(s.RowRange(at, at+1))
			break
		}
	}
}
