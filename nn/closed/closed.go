// Package closed has models whose logits come from linear maps, aggregations and ridge regressions: nothing in them is
// trained by gradients.
package closed

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Layout describes a model whose logits come from linear maps, aggregations and ridge regressions, without training by
// gradients. It works in rounds. A round maps the features to one column a class and aggregates the columns over some
// hops. Its head computes logits from the columns of all rounds so far. The logits of the last round are the model's.
type Layout struct {
	// columns for a node's neighbours instead of features (AdjacencyRows; 0 = nodes have features)
	Adjacent int  `json:"adjacent,omitempty"`
	Rounds   int  `json:"rounds"`             // ≥ 1; each maps the features to a column a class
	Hops     int  `json:"hops"`               // aggregations of the columns, ≥ 0
	Mean     bool `json:"mean,omitempty"`     // aggregate as graph.Mean, else as graph.GCN
	AllHops  bool `json:"all_hops,omitempty"` // keep the columns of hops 0 to Hops, else only of the last hop
	Degree   bool `json:"degree,omitempty"`   // a column log(1 + degree) in the first round
	// columns of the first round that are a node's own features, standardised, without aggregation: all features, or 0.
	OwnFeatures int `json:"own_features,omitempty"`
	// Directions is how many columns of each round after Alone are directions: the combinations of the neighbours'
	// features that explain the residual (docs/explanation/training.md). With DirectionsOnly such a round has no other
	// columns of a map.
	Directions     int  `json:"directions,omitempty"`
	DirectionsOnly bool `json:"directions_only,omitempty"`

	// aggregations of the last round's logits; each one gives columns
	LogitHops  int  `json:"logit_hops,omitempty"`
	Random     int  `json:"random,omitempty"`      // random Fourier features of each head, at most
	RandomEach int  `json:"random_each,omitempty"` // of them, at most for each column that the head reads (0 = any)
	Residual   bool `json:"residual,omitempty"`    // rounds after the first learn from residuals, else from soft labels
	// a node's own part is removed from the means that its row is compared with
	LeaveOut bool `json:"leave_out,omitempty"`
	// in rounds after the first, the leads in Counts are subtracted for training nodes, too
	TrainLead bool `json:"train_lead,omitempty"`
	// validation and test nodes were absent in training: no mean includes them
	Inductive bool `json:"inductive,omitempty"`
	Numbers   bool `json:"numbers,omitempty"` // labels are standardised numbers, not classes
	Multi     bool `json:"multi,omitempty"`   // a node may have several classes: its logits are regressions less a half
	// number of nonzero values, for Coarsen, whose bits a node may reveal over all rounds (0 = rows are not coarse)
	Coarse int `json:"coarse,omitempty"`

	// OwnExact is set if the owner reads a node's own columns before any hop exactly, but sends them rounded. No sent
	// row contains the exact columns, or logits that depend on them.
	OwnExact bool `json:"own_exact,omitempty"`
	Alone    int  `json:"rounds_alone,omitempty"` // first rounds without hops: no row is sent for them

	// Unconnected is set if rows would have been rounded, but no edge connected the sites of the run that trained the
	// model (WithoutEdges). Between sites that edges connect, such a model may send nothing.
	Unconnected bool `json:"unconnected,omitempty"`

	// Own is how many rounds read only each node's own features (0 = no such rounds). Each later round adds the sum,
	// with weight 1, of its neighbours' class rows, and uses edges for nothing else: Hops and LogitHops are 0, and
	// nothing depends on a degree. In training, the sums may have noise.
	Own int `json:"own_rounds,omitempty"`
}

// Values from a file are bounded before anything is allocated.
const (
	maxRounds = 100
	maxHops   = 1000
	maxRandom = 1 << 24
)

// Faults returns everything that is wrong with s for a model of F features.
func (s Layout) Faults(features int) (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf("closed."+format, args...)) }
	if s.Adjacent < 0 || s.Adjacent > MostAdjacent {
		bad("adjacent must be 0 to %d (got %d)", MostAdjacent, s.Adjacent)
	}
	features = s.Inputs(features)
	if s.OwnFeatures != 0 && (s.OwnFeatures != features || s.Adjacent > 0) {
		bad("own_features must be 0 or, without adjacent, the %d features (got %d)", features, s.OwnFeatures)
	}
	if s.Rounds < 1 || s.Rounds > maxRounds {
		bad("rounds must be 1 to %d (got %d)", maxRounds, s.Rounds)
	}
	for _, one := range []struct {
		field     string
		got, most int
	}{
		{"hops", s.Hops, maxHops}, {"logit_hops", s.LogitHops, maxHops}, {"coarse", s.Coarse, maxRandom},
		{"random", s.Random, maxRandom}, {"random_each", s.RandomEach, maxRandom},
	} {
		if one.got < 0 || one.got > one.most {
			bad("%s must be 0 to %d (got %d)", one.field, one.most, one.got)
		}
	}
	if s.Alone < 0 || s.Alone > maxRounds || s.Alone > 0 && s.Own > 0 {
		bad("rounds_alone must be 0 to %d, and 0 with own_rounds (got %d)", maxRounds, s.Alone)
	}
	if s.OwnExact && (!s.AllHops || s.LogitHops > 0 || s.Adjacent > 0) {
		bad("own_exact must be false without all_hops, or with logit_hops or adjacent (got true)")
	}
	if s.Unconnected && s.Rounded() {
		bad("unconnected must be false with coarse (got true)")
	}
	if s.Directions < 0 || s.Directions > features || s.Directions > 0 && (s.Own > 0 || s.Adjacent > 0) ||
		s.DirectionsOnly && s.Directions == 0 {
		bad("directions must be 0 to the %d features, above 0 with directions_only, "+
			"and 0 with own_rounds or adjacent (got %d)", features, s.Directions)
	}
	if s.Own < 0 || s.Own > maxRounds {
		bad("own_rounds must be 0 to %d (got %d)", maxRounds, s.Own)
	}
	if s.Numbers && (!s.Residual || s.Multi || s.Own > 0) {
		bad("numbers must be false without residual, or with multi or own_rounds (got true)")
	}
	if s.Own > 0 && (s.Hops > 0 || s.LogitHops > 0 || s.Degree || s.Multi || s.Inductive) {
		bad("own_rounds must be 0 with hops, logit_hops, degree, multi or inductive (got %d)", s.Own)
	}
	return all
}

// Inputs returns the number of input columns of a node; features is the number of features.
func (s Layout) Inputs(features int) int { return cmp.Or(s.Adjacent, features) }

// Edges returns how edges are weighted.
func (s Layout) Edges() graph.Norm {
	if s.Mean {
		return graph.Mean
	}
	return graph.GCN
}

// HopsOf returns how often the columns of round r are aggregated.
func (s Layout) HopsOf(r int) int {
	if r < s.Alone {
		return 0
	}
	return s.Hops
}

// LogitHopsOf returns how often round r aggregates the last round's logits.
func (s Layout) LogitHopsOf(r int) int {
	if r == 0 || r < s.Alone {
		return 0
	}
	return s.LogitHops
}

// Width returns how many columns a round maps the features to: one a class, or one less if the columns sum to zero,
// like residuals of nodes with one class.
func (s Layout) Width(classes int) int {
	if s.Residual && !s.Multi && !s.Numbers {
		return max(classes-1, 1)
	}
	return classes
}

// MapWidth returns how many columns the map of round r, from 0, has.
func (s Layout) MapWidth(r, classes int) int {
	switch {
	case r < s.Alone:
		return s.Width(classes)
	case s.DirectionsOnly:
		return s.Directions
	}
	return s.Width(classes) + s.Directions
}

// Columns returns how many columns round r, from 0, adds to the heads' inputs.
func (s Layout) Columns(r, classes int) int {
	n, kept := s.MapWidth(r, classes), 1
	if s.AllHops {
		kept = s.HopsOf(r) + 1
	}
	n *= kept
	if s.Sums(r) {
		n += sumColumns(classes)
	}
	switch {
	case r > 0:
		n += s.LogitHopsOf(r) * s.Width(classes)
	case s.Degree:
		n += 1 + s.OwnFeatures
	default:
		n += s.OwnFeatures
	}
	return n
}

// Weights calls matrix with the shape of every weight matrix of a model.
func (s Layout) Weights(features, classes int, matrix func(rows, cols int)) {
	features = s.Inputs(features)
	matrix(2, s.OwnFeatures)
	d := 0
	for r := range s.Rounds {
		matrix(features, s.MapWidth(r, classes))
		d += s.Columns(r, classes)
		matrix(d, s.RandomOf(d))
		matrix(d+s.RandomOf(d), classes)
	}
}

// Form is a model of a Layout.
type Form struct {
	Spec  Layout
	Own   *tape.Param   // 2×F: mean and 1/deviation of the features, with OwnFeatures, else nil
	Means []*tape.Param // [Rounds] F×Width
	Heads []*Head       // [Rounds]

	// What LeaveOut needs, else nil. Let D be the shrunken variances of the features and t/N their mean; then the map
	// of a class with mean m is scale·D⁻¹(m − t/N).
	Inverse, Centre *tape.Param // 1×F: D⁻¹ and t/N
	// [Rounds] 2×Width: the number of nodes in the mean of each class, or its share of all labels; the scale. With
	// TrainLead a third row: what is subtracted from a training node's column of its own class.
	Counts []*tape.Param
}

// New returns a model whose parameters are zero, except the random features, which depend on key.
func New(s Layout, features, classes int, key rng.Key) *Form {
	m := &Form{Spec: s}
	features = s.Inputs(features)
	if s.OwnFeatures > 0 {
		m.Own = tape.NewParam("encoder.own", 2, features, 0)
	}
	if s.LeaveOut {
		m.Inverse, m.Centre = tape.NewParam("encoder.inverse", 1, features, 0),
			tape.NewParam("encoder.centre", 1, features, 0)
	}
	d := 0
	for r := range s.Rounds {
		at := func(name string) string { return fmt.Sprintf("round%d.%s", r+1, name) }
		m.Means = append(m.Means, tape.NewParam(at("means"), features, s.MapWidth(r, classes), 0))
		if s.LeaveOut {
			m.Counts = append(m.Counts, tape.NewParam(at("counts"), s.countRows(), s.Width(classes), 0))
		}
		d += s.Columns(r, classes)
		random := s.RandomOf(d)
		h := &Head{Weight: tape.NewParam(at("weight"), d+random, classes, 0),
			Bias: tape.NewParam(at("bias"), 1, classes, 0)}
		if random > 0 {
			h.Mean, h.Scale = tape.NewParam(at("mean"), 1, d, 0), tape.NewParam(at("scale"), 1, d, 0)
			h.Freq, h.Phase = tape.NewParam(at("frequency"), d, random, 0), tape.NewParam(at("phase"), 1, random, 0)
			// Random features are not computed from the features themselves: next to many features, the few columns of
			// maps would have little weight.
			own := s.Columns(0, classes)
			h.drawFrequencies(key.FoldString("random features").Fold(uint64(r)), own-s.OwnFeatures, own)
		}
		m.Heads = append(m.Heads, h)
	}
	return m
}

// countRows returns the number of rows of each of Counts.
func (s Layout) countRows() int {
	if s.TrainLead {
		return 3
	}
	return 2
}

// UpTo returns the model of the first rounds, with the same parameters.
func (m *Form) UpTo(rounds int) *Form {
	one := *m
	one.Spec.Rounds = rounds
	one.Means, one.Heads = m.Means[:rounds], m.Heads[:rounds]
	if m.Spec.LeaveOut {
		one.Counts = m.Counts[:rounds]
	}
	return &one
}

// Params returns all parameters.
func (m *Form) Params() (all []*tape.Param) {
	if m.Own != nil {
		all = append(all, m.Own)
	}
	if m.Inverse != nil {
		all = append(all, m.Inverse, m.Centre)
	}
	all = slices.Concat(all, m.Means, m.Counts)
	for _, h := range m.Heads {
		if h.Freq != nil {
			all = append(all, h.Mean, h.Scale, h.Freq, h.Phase)
		}
		all = append(all, h.Weight, h.Bias)
	}
	return all
}

// Times returns x·w.
func Times(x graph.Features, w mat.Dense) mat.Dense {
	y := mat.New(x.Rows(), w.Cols)
	if s := x.Sparse; s != nil {
		kernels.SpMM(s.RowPtr, s.Col, s.Val, w.Cols, w.Data, w.Stride, y.Data, y.Stride, false)
	} else if d := x.Dense; !d.Empty() {
		kernels.GemmNN(d.Rows, w.Cols, d.Cols, d.Data, d.Stride, w.Data, w.Stride, y.Data, y.Stride, false)
	}
	return y
}

// OwnColumns returns the features x of nodes as columns with mean 0 and deviation 1; none without OwnFeatures.
func (m *Form) OwnColumns(x graph.Features) mat.Dense {
	if m.Own == nil {
		return mat.New(x.Rows(), 0)
	}
	y, mean, scale := x.Dense.Clone(), m.Own.Value.Row(0), m.Own.Value.Row(1)
	if x.Sparse != nil {
		y = x.Sparse.Dense()
	}
	for i := range y.Rows {
		row := y.Row(i)
		for j := range row {
			row[j] = (row[j] - mean[j]) * scale[j]
		}
	}
	return y
}

// degreeColumn returns log(1 + degree) of each node.
func degreeColumn(degree []float32) mat.Dense {
	y := mat.New(len(degree), 1)
	for i, d := range degree {
		y.Data[i] = float32(math.Log1p(max(float64(d), 0)))
	}
	return y
}

// Sharpness scales logits that are regressions on zeros and ones, to make soft labels of them.
const Sharpness = 8

// Present returns the training nodes, and the other nodes that training may read. A training node without a label is
// one of the others.
func (s Layout) Present(split []graph.Split, labels graph.Labels) (train, others []int32) {
	for i, of := range split {
		switch {
		case of == graph.Train && labels.Has(i):
			train = append(train, int32(i))
		case s.Inductive && (of == graph.Val || of == graph.Test):
		default:
			others = append(others, int32(i))
		}
	}
	return train, others
}

// Targets returns the weight of each node in each column of a map in the sums of round r, N×Width; only the given nodes
// have weights. y has the labels of the training nodes train, and zeros; logits are the last round's, or Prior before
// the first round. Residuals are the difference between the labels of training nodes and their logits, at most
// MaxResidual. Otherwise the targets are these labels and, after the first round, the softmax of the logits of others.
func (s Layout) Targets(r int, train, others []int32, y, logits mat.Dense) mat.Dense {
	p := mat.New(y.Rows, s.Width(y.Cols))
	for _, i := range train {
		row := p.Row(int(i))
		copy(row, y.Row(int(i)))
		if s.Residual {
			for c := range row {
				row[c] -= logits.At(int(i), c)
				if s.Multi {
					row[c] -= Half
				}
				row[c] = min(max(row[c], -MaxResidual), MaxResidual)
			}
		}
	}
	if !s.Residual && r > 0 {
		for _, i := range others {
			softmax(p.Row(int(i)), logits.Row(int(i)))
		}
	}
	return p
}

// Prior returns the logits of n nodes before the first round, N×C, from the share of each class among the labels. For
// numbers they are 0, the mean.
func (s Layout) Prior(n int, shares []float32) mat.Dense {
	logits := mat.New(n, len(shares))
	for i := range n {
		if s.Numbers {
			break
		}
		row := logits.Row(i)
		copy(row, shares)
		if s.Multi {
			for c := range row {
				row[c] -= Half
			}
		}
	}
	return logits
}

// MaxResidual is the largest residual of a node, so that its row's weight in a sum is bounded.
const MaxResidual = 4

// Half is the midpoint of the targets 0 and 1: if a node may have several classes, it has those with logits above 0.
const Half = 0.5

// softmax writes the soft labels of a row of logits. All are less than 1, the label of training nodes.
func softmax(p, logits []float32) {
	top, sum := float64(slices.Max(logits)), 0.0
	for _, v := range logits {
		sum += math.Exp(Sharpness * (float64(v) - top))
	}
	for c, v := range logits {
		p[c] = min(float32(math.Exp(Sharpness*(float64(v)-top))/sum), math.Nextafter32(1, 0))
	}
}

// LeaveOwn replaces z = x·Means[r] by each node's row with means of all other nodes, given the targets p of the round.
// A node with p(v,c) > 0 is part of the mean that it is compared with, and its row would reveal its class. The mean of
// the others is m + p/(n−p)·(m − x), so z(v,c) grows by p/(n−p)·scale·(x·D⁻¹m − x·D⁻¹x). A node that is most of its
// class keeps a part (OwnPart).
func (m *Form) LeaveOwn(r int, x graph.Features, z, p mat.Dense) {
	inverse, centre := m.Inverse.Value.Data, m.Centre.Value.Data
	scale := m.Counts[r].Value.Row(1)
	if m.Spec.DirectionsOnly && r >= m.Spec.Alone {
		return // no column includes the node itself
	}
	for v := range z.Rows {
		own := p.Row(v)
		if !slices.ContainsFunc(own, func(w float32) bool { return w != 0 }) {
			continue
		}
		quad, shift := 0.0, 0.0 // x·D⁻¹x and x·D⁻¹t/N
		add := func(j int, f float32) {
			quad += float64(f) * float64(f) * float64(inverse[j])
			shift += float64(f) * float64(centre[j]) * float64(inverse[j])
		}
		if s := x.Sparse; s != nil {
			col, val := s.Row(v)
			for k, j := range col {
				add(int(j), val[k])
			}
		} else {
			for j, f := range x.Dense.Row(v) {
				add(j, f)
			}
		}
		row := z.Row(v)
		for c, w := range own {
			if m.Spec.Residual {
				row[c] -= float32(float64(w) * quad * float64(scale[c]))
			} else if part := m.OwnPart(r, c, w); part > 0 {
				row[c] += float32(part*(float64(row[c])+float64(scale[c])*(shift-quad))) - m.Lead(r, c, w)
			}
		}
	}
}

// OwnPart returns how much of a node with weight w is removed from the mean of class c in round r, in units of the
// others' weight. It is w/(n−w), and 1 at most.
func (m *Form) OwnPart(r, c int, w float32) float64 {
	n := float64(m.Counts[r].Value.At(0, c))
	if w <= 0 || n <= 0 {
		return 0
	}
	if rest := n - float64(w); rest > float64(w) {
		return float64(w) / rest
	}
	return 1
}

// Before returns the columns of a round's logits that the next round aggregates.
func (s Layout) Before(logits mat.Dense) mat.Dense {
	if s.LogitHops == 0 {
		return logits
	}
	return logits.ColRange(0, s.Width(logits.Cols)).Clone()
}
