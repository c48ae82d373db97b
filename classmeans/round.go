package classmeans

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// round runs round r, from 0, and reports whether another one justifies its bytes: after the first round, or if the
// logits validate better than all before by at least half a standard error. Logits that validate better by less are
// kept, too, but end the rounds.
func (t *Trainer) round(ctx context.Context, r int) (goOn bool, err error) {
	spec := t.model.Spec.Closed
	t.look(r)
	own, z, err := t.source(ctx, r)
	if err != nil {
		return false, err
	}
	sights := t.sights()
	for k, s := range sights {
		columns := closed.NewColumns(t.shard.Owned, s.kept(r))
		if r == 0 {
			columns.Add(ones(t.shard.Owned))
		}
		first, sent := own, z
		if k == len(sights)-1 {
			own, z = mat.Dense{}, mat.Dense{} // they are among the columns soon, and need not be kept
		}
		logits := s.logits
		if s.logits = (mat.Dense{}); spec.LogitHopsOf(r) == 0 && !spec.Sums(r) {
			logits = mat.Dense{} // nor these
		}
		err := t.model.Closed.RoundColumns(&seenRound{ctx, t, s}, r, first, sent, logits, columns)
		if s.hop != nil {
			s.hop.Forget()
			t.tidy()
		}
		if err != nil {
			return false, err
		}
		s.rounds = append(s.rounds, columns.Written()) // from now on: a checkpoint within the round has those before it
	}
	y, weight := t.targets()
	if t.Leaves {
		err = t.equations(ctx, r, y, weight)
	} else {
		err = t.extend(ctx, r, t.added(r), y, weight)
	}
	if err != nil {
		return false, err
	}
	found, err := t.solve(ctx, r, y, weight)
	if err != nil {
		return false, err
	}
	before := t.At
	t.At.Improve(t.config.Metric, r, found.val, found.loss)
	if measured := found.val == found.val && before.BestRound >= 0; measured {
		gain := t.config.Metric.Gain(found.val, before.Best)
		goOn = gain >= found.margin
		if gain <= 0 { // as good, at the cost of another round
			t.At = before
		}
	} else {
		goOn = true
	}
	if t.At.BestRound == r {
		t.scales, t.margin = found.scales, found.margin
	}
	if r == 0 && found.val != found.val && t.Labels.Validating() > 0 {
		t.Log(train.Warning,
			"%s is not defined on the %.0f validation nodes, whose labels are all alike: they choose nothing; "+
				"mark more nodes for validation", t.config.Metric, t.Labels.Validating())
	}
	// Private rounds spend their privacy budget as planned, and rounds of own features lead to the rounds with hops:
	// all of them are run.
	if spec.Own > 0 || r < spec.Alone || t.AllRounds {
		goOn = true
	}
	t.Report(train.Event{Kind: train.RoundEnd, Round: r, Metric: string(t.config.Metric), Done: r + 1,
		Total: spec.Rounds, Loss: math.NaN(), Val: found.val, ValLoss: math.NaN(), Sent: t.Sent()})
	return goOn, nil
}

// sights returns what there is to see: once, or inductive twice.
func (t *Trainer) sights() []*sight {
	return slices.Compact([]*sight{t.full, t.base})
}

// source returns the columns of own nodes in round r before any hop, as they are read at home, and as they are
// aggregated.
func (t *Trainer) source(ctx context.Context, r int) (own, z mat.Dense, err error) {
	form := t.model.Closed
	x := t.features()
	p := form.Spec.Targets(r, t.train, t.others, t.shard.Labels.Rows(t.train), t.base.logits)
	n := make([]float64, p.Cols)
	for c := range n {
		if r == 0 && t.Labels.Classes[c] < t.leastClass() {
			p.ColRange(c, c+1).Zero()
		}
	}
	u, without := mat.Dense{}, false
	if !form.Spec.DirectionsOnly || r < form.Spec.Alone {
		if u, without, err = t.classMap(ctx, r, x, p, n); err != nil {
			return own, z, err
		}
	}
	if u, err = t.withDirections(ctx, r, x, u); err != nil {
		return own, z, err
	}
	if !finite(u.Data) {
		return own, z, errors.New("the class means of all peers together overflow; scale the features")
	}
	t.limit(r, u)
	own = closed.Times(x, u)
	scale, err := t.standardise(ctx, r, u, own)
	if err != nil {
		return own, z, err
	}
	form.Means[r].Value.CopyFrom(u)
	if form.Spec.LeaveOut {
		counts := form.Counts[r].Value
		copy(counts.Row(1), scale) // without the scales of directions, which follow
		if form.Spec.Residual {
			kernels.Scale(t.residualUnit(), counts.Row(1))
		}
		for k, v := range n {
			counts.Set(0, k, float32(v))
		}
		if err := t.leaveOwn(ctx, r, x, own, p, without); err != nil {
			return own, z, err
		}
	}
	z = form.Spec.Coarsen(r, x, own)
	return own, z, nil
}

// classMap returns the map of round r from the class sums of all peers over this peer's targets p, and sets n to the
// number of nodes of each class, or its share of the labels. without: this peer's part is missing from the sums.
func (t *Trainer) classMap(ctx context.Context, r int, x graph.Features, p mat.Dense,
	n []float64) (u mat.Dense, without bool, err error) {
	sums, rows, without, err := t.classSums(ctx, r, x, p)
	if err != nil {
		return u, without, err
	}
	if t.model.Closed.Spec.Residual {
		u = t.means.ResidualMap(sums)
		kernels.Scale(t.residualUnit(), u.Data)
		for k := range n {
			n[k] = float64(t.shares()[k])
		}
		return u, without, nil
	}
	for k, v := range rows {
		n[k] = float64(v) / unit
	}
	return t.means.Map(sums, n), without, nil
}

// leaveOwn takes the own part of each node out of its columns z of round r, given the targets p. without: this peer's
// part is missing from the means.
func (t *Trainer) leaveOwn(ctx context.Context, r int, x graph.Features, z, p mat.Dense, without bool) error {
	form := t.model.Closed
	form.SetLead(r, 0) // an earlier attempt's
	if !without {
		form.LeaveOwn(r, x, z, p)
	}
	if !form.Spec.TrainLead || r == 0 || form.Spec.DirectionsOnly && r >= form.Spec.Alone {
		return nil
	}
	lead, err := t.takeLead(ctx, r, z)
	form.SetLead(r, lead)
	return err
}

// takeLead takes out of the own class of training nodes in z, of round r, what it leads by more than the classes of
// validation nodes do.
func (t *Trainer) takeLead(ctx context.Context, r int, z mat.Dense) (float32, error) {
	c := &comm.Contribution{ID: t.id("leads", r, 0)}
	for _, nodes := range [][]int32{t.train, t.shard.NodesIn(graph.Val)} {
		sums, counts := closed.Leads(z.ColRange(0, t.model.Spec.Closed.Width(t.config.Classes)), t.shard.Labels.Class,
			nodes)
		c.Update, c.Counts = append(c.Update, sums...), append(c.Counts, counts...)
	}
	if !t.Leaves {
		c.UpdateLimit = within("the sum of the leads of a class", 2*train.MostCrossing*t.rest.Rows)
		c.CountLimit = atMost("the number of nodes of a class", t.rest.Rows)
	}
	if _, err := t.Reducer.Reduce(ctx, c); err != nil {
		return 0, err
	}
	lead := closed.TrainLead(c.Update, c.Counts)
	for _, i := range t.train {
		z.Row(int(i))[t.shard.Labels.Class[i]] -= lead
	}
	return lead, nil
}

// classSums returns the sums of the features of all peers over the columns of this peer's targets p in round r, and the
// number of rows in them, in units, nil if residuals are the target. without: this peer's part is missing from both of
// them.
func (t *Trainer) classSums(ctx context.Context, r int, x graph.Features, p mat.Dense) (
	sums mat.Dense, counts []int64, without bool, err error) {
	residual := t.model.Closed.Spec.Residual
	sums = t.means.Sums(x, p)
	own, rows, most := sums.Clone(), t.classRows(r), 1.0
	if residual {
		most = closed.MaxResidual
	}
	c := &comm.Contribution{ID: t.id("class means", r, 0), Update: sums.Data, Columns: sums.Cols,
		Bits: t.config.MeansBits(t.shard.Parts, t.Labels.Labelled)}
	if !t.Leaves {
		c.UpdateLimit = t.rest.SumsLimit(t.means, rows, sums.Cols, most)
	}
	if !residual {
		c.Counts = make([]int64, p.Cols)
		for i := range p.Rows {
			for k, v := range p.Row(i) {
				c.Counts[k] += int64(math.RoundToEven(float64(v) * unit))
			}
		}
	}
	before := slices.Clone(c.Counts)
	if c.Counts != nil {
		c.CountLimit = atMost("the number of nodes of a class", t.rest.Rows*unit)
	}
	said, err := t.Reducer.Reduce(ctx, c)
	if err != nil || t.Leaves {
		return sums, c.Counts, said.Without, err
	}
	if err := t.rest.CheckSums(t.means, sums, own, rows, most, said.Error); err != nil {
		return sums, nil, false, err
	}
	if c.Counts != nil {
		err = t.checkClassCounts(r, c.Counts, before)
	}
	return sums, c.Counts, false, err
}

// unit is 1 as a soft count: soft counts are summed as whole numbers.
const unit = 1 << 20

// standardise divides the columns of u and of z = x·u by the deviations of z over all nodes that training sees. It
// returns the factors.
func (t *Trainer) standardise(ctx context.Context, r int, u, z mat.Dense) ([]float32, error) {
	sums := make([]float64, 2*u.Cols)
	for _, i := range t.present() {
		for k, v := range z.Row(int(i)) {
			sums[k] += float64(v)
			sums[u.Cols+k] += float64(v) * float64(v)
		}
	}
	c := &comm.Contribution{ID: t.id("deviations", r, 0), UpdateLimit: t.deviationLimit(u)}
	if t.Leaves { // other nodes than in the statistics
		c.Counts = []int64{int64(len(t.present()))}
	}
	for _, v := range sums {
		c.Update = append(c.Update, float32(v))
	}
	own := slices.Clone(c.Update)
	said, err := t.Reducer.Reduce(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := t.checkDeviations(c.Update, own, said.Error); err != nil {
		return nil, err
	}
	nodes := t.nodes
	if t.Leaves {
		nodes = max(float64(c.Counts[0]), 1)
	}
	scale, squares := make([]float32, u.Cols), make([]float64, u.Cols)
	for k := range scale {
		mean, square := float64(c.Update[k])/nodes, float64(c.Update[u.Cols+k])/nodes
		if v := square - mean*mean; v > 0 {
			scale[k], squares[k] = float32(1/math.Sqrt(v)), square/v
		}
	}
	t.allow(r, squares)
	for _, x := range []mat.Dense{u, z} {
		for i := range x.Rows {
			row := x.Row(i)
			for k, f := range scale {
				row[k] *= f
			}
		}
	}
	return scale, nil
}

// added returns how many columns round r adds to the normal equations, the constant among them.
func (t *Trainer) added(r int) int {
	n := t.model.Spec.Closed.Columns(r, t.config.Classes)
	if r == 0 {
		n++
	}
	return n
}

// part returns what own training nodes add to normal equations of targets y after round r: linear.Part of their last k
// columns, which are the k random features of head (nil = none). Nodes come some at a time, since features take space.
func (t *Trainer) part(r, k int, y mat.Dense, weight []float32, head *closed.Head) []float32 {
	columns := t.base.columnsOf(r + 1)
	d := columns
	if head != nil {
		d += k
	}
	sums := make([]float32, linear.PartLen(d, k, y.Cols)) // zeros if this peer has no training node
	var all closed.Columns
	for nodes := range slices.Chunk(t.train, rowsAtOnce) {
		z, of := t.base.rows(&all, r, nodes, head), mat.View(len(weight), 1, weight).Select(nodes).Data
		t.bounded(r, z)
		if head != nil {
			head.Standardise(z.ColRange(1, columns))
		}
		kernels.Add(linear.Part(z, k, y.Select(nodes), of), sums)
	}
	return sums
}

// extend adds the last `added` columns, which are round r's, to the normal equations.
func (t *Trainer) extend(ctx context.Context, r, added int, y mat.Dense, weight []float32) error {
	own, k := t.part(r, added, y, weight, nil), t.joint()
	c := &comm.Contribution{ID: t.id("normal equations", r, 0), Update: slices.Clone(own),
		UpdateLimit: linear.PartLimit(added, t.squares(r, k.RestWeight), k.Rest)}
	said, err := t.Reducer.Reduce(ctx, c)
	if err != nil {
		return err
	}
	if t.own, err = t.own.Extend(own, added, y.Cols); err != nil {
		return err
	}
	if t.normal, err = t.normal.Extend(c.Update, added, t.config.Classes); err != nil {
		return err
	}
	t.parts = append(t.parts, c.Update...)
	k.Apart = largest(said.Error)
	return t.checkEquations(ctx, r, t.normal, t.own, k)
}
