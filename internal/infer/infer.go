// Package infer computes a trained model's predictions for the nodes of a graph whose parts are at different peers. The
// peers exchange rows of boundary nodes once more, as they did while they trained, and learn no parameter. A graph on
// one machine is a group of one.
//
// This package has the forward pass of a model of layers; nn/closed has the forward pass of class means. Each trainer
// has its own walk through the same layers (nn.Forward), because it keeps for the gradient what is only passed on here:
// fullbatch walks over blocks of rows in an order that fixes the sum's bits, minibatch over sampled blocks, and retexo
// trains one layer at a time on rows that stay.
//
// Letters in comments: N nodes, C classes, H hidden.
package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// Config is how the peers compute predictions together. All peers must have the same Config.
type Config struct {
	Draw     train.Draw  // the training run's: it chose the nodes that validate if the data marked none
	Rows     comm.Coding // format of the rows that are sent
	Exchange string      // one of train.Exchanges
	// Layerwise sends each layer's input, as layer-wise training does. Else a peer sends what the layer makes of its
	// input before it aggregates, if that is narrower.
	Layerwise bool
	Metric    eval.Metric // of the test nodes

	Calibration eval.Temperatures // divide the logits before Cuts
	Cuts        eval.Cuts         // thresholds from which classes are predicted
	Ordered     bool              // classes are in order: the median of the probabilities is predicted
	First       bool              // class 0 is the positive one of two
}

// Answer is what a peer learns.
type Answer struct {
	Logits mat.Dense // [Owned × C] of own nodes; numbers in the model's units (nn.Spec.Units)
	Hidden mat.Dense // [Owned × H] the rows that the last linear map of the model reads (Run)
	Test   float64   // the metric over the test nodes of all peers (NaN = there are none)
	Bound  float64   // how far Test, if it is AUC or AP, is off at most
	Tested int64     // labelled test nodes of all peers
}

// run is one peer's part in a computation.
type run struct {
	Config
	ctx     context.Context
	whole   bool // the whole graph is here: no row is weighed by its owner first
	model   *nn.Model
	shard   *shard.Shard // with the split used in training
	view    train.GraphView
	group   *comm.Group
	sums    comm.Reducer
	sender  *train.Sender
	labels  train.LabelCounts // of all peers; of models that read labels
	covers  *train.Covers     // nil until the peers have agreed
	degrees bool              // whether the peers have exchanged degrees
	hidden  mat.Dense
}

// Run computes the predictions of m for the nodes of s. It sends rows over g and sums over r. If a peer fails, the
// error is a *comm.PeerError; if the shard does not fit the model, it is another error, which Fits returns before any
// connection is made.
//
// Answer.Hidden has the rows that the last head reads. If the last layer has no head, they are its input; if it is the
// only layer, its own row and its aggregate, as far as it reads them, side by side. For a closed form they are the
// columns of the last round's regression.
func Run(ctx context.Context, c Config, m *nn.Model, s *shard.Shard, g *comm.Group, r comm.Reducer) (*Answer, error) {
	if m.Decoder != nil {
		return nil, ErrLinks
	}
	if err := Fits(m, s); err != nil {
		return nil, err
	}
	p := newRun(ctx, c, m, s, g, r)
	if err := p.learnSplit(); err != nil {
		return nil, err
	}
	logits, err := p.logits()
	if err != nil {
		return nil, err
	}
	a := &Answer{Logits: logits, Hidden: p.hidden}
	a.Test, a.Bound, a.Tested, err = p.testMetric(s, logits)
	return a, err
}

// Logits computes the logits of a model of layers for the nodes of s, [Owned × C], and its hidden rows, as Run does, in
// the midst of a run: nothing is summed. The model reads no labels.
func Logits(ctx context.Context, c Config, m *nn.Model, s *shard.Shard, g *comm.Group) (
	logits, hidden mat.Dense, err error) {
	if m.Closed != nil || readsLabels(m.Spec) {
		panic("infer: Logits of a model that needs sums or labels of all peers")
	}
	p := newRun(ctx, c, m, s, g, nil)
	logits, err = p.logits()
	return logits, p.hidden, err
}

// Graph returns the logits of all nodes of g by m, N×C, which is computed here; numbers are standardised
// (nn.Spec.Units). Some models read labels of g (nn.Spec.ReadsLabels); nn.Spec.Unlabelled warns if it has none.
func Graph(m *nn.Model, g *graph.Graph) (mat.Dense, error) {
	s, labelled, err := Nodes(m, g)
	if err != nil {
		return mat.Dense{}, err
	}
	group := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer group.Close()
	p := newRun(context.Background(), Config{}, m, s, group, nil)
	p.whole, p.labels.Labelled = true, float64(labelled)
	return p.logits()
}

// Nodes returns the nodes of g with labels and splits as m reads them, and how many of them trained and have a label,
// or why the layers of m cannot be applied to g.
func Nodes(m *nn.Model, g *graph.Graph) (s *shard.Shard, labelled int, err error) {
	s = shard.Unnamed(g)
	if c := m.Spec.Closed; c != nil && c.Adjacent > 0 {
		var ok bool
		if s.Global, ok = g.X.Numbers(); !ok {
			return nil, 0, errors.New("nodes must have no features: the model knows them by their neighbours")
		}
		s.Nodes = int64(m.Spec.Features) // of the training graph, where g may be a part
	}
	if err := errors.Join(faults(m, s)...); err != nil {
		return nil, 0, err
	}
	s.Labels, s.Split, _ = m.Spec.Given(s.Labels, s.Split, s.Owned)
	s.Labels = s.Labels.Standardised(m.Spec.Units)
	for _, i := range s.NodesIn(graph.Train) {
		if s.Labels.Has(int(i)) {
			labelled++
		}
	}
	return s, labelled, nil
}

func newRun(ctx context.Context, c Config, m *nn.Model, s *shard.Shard, g *comm.Group, r comm.Reducer) *run {
	return &run{Config: c, ctx: ctx, model: m, shard: s, view: train.WholeGraph(s), group: g, sums: r,
		sender: train.NewSender(g, s, c.Rows)}
}

// NoRows returns why a model file cannot predict for nodes with features x, or nil if it can. A model with encoder
// embedding has learned rows instead of features: their owners keep the rows, and the file lacks them.
func NoRows(m *nn.Model, x graph.Features) error {
	if m.Spec.Encoder.Kind != "embedding" || m.Spec.Reads(x).Cols() == x.Cols() {
		return nil
	}
	return errors.New("nodes must have features: the model was trained with encoder embedding, " +
		"and the learned rows of nodes without features are not in its file; the run's own predictions.csv " +
		"has the predictions")
}

// Fits returns why the layers of m cannot be applied to s together with other peers, or nil if they can.
func Fits(m *nn.Model, s *shard.Shard) error {
	errs := append(faults(m, s), NoRows(m, s.X))
	if c := m.Spec.Closed; c != nil && c.Own > 0 {
		errs = append(errs, errors.New("the model was trained with private edges (epsilon): its rows would "+
			"tell edges again, without noise; the run's own predictions.csv has the predictions"))
	}
	if c := m.Spec.Closed; c != nil && c.Unconnected && s.X.Sparse != nil && s.Connected() {
		errs = append(errs, errors.New("no edge connected the sites at which the model was trained, "+
			"so that it does not round rows: train over the edges between the sites, or predict at "+
			"each site by itself"))
	}
	return errors.Join(errs...)
}

// faults returns what of s the layers of m cannot be applied to.
func faults(m *nn.Model, s *shard.Shard) (errs []error) {
	errs = train.FitsEdges(m.Spec, s)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if got, must := m.Spec.Reads(s.X).Cols(), m.Spec.Features; got != must {
		bad("nodes must have %d features, as the model has (got %d)", must, got)
	} else if s.X.Rows() != s.Owned {
		bad("features must have a row for each of %d nodes (got %d)", s.Owned, s.X.Rows())
	}
	if c := m.Spec.Closed; c != nil && c.Adjacent > 0 && s.Nodes != int64(m.Spec.Features) {
		bad("the graph must have the %d nodes of the training graph, since the model knows nodes by their neighbours "+
			"(got %d)", m.Spec.Features, s.Nodes)
	}
	if _, _, err := m.Spec.Given(s.Labels, s.Split, s.Owned); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// readsLabels reports whether labels of training or validation nodes are an input of a model.
func readsLabels(s nn.Spec) bool {
	train, val := s.ReadsLabels()
	return train || val
}

// learnSplit finds the nodes that trained, if the model reads their labels.
func (p *run) learnSplit() (err error) {
	if !readsLabels(p.model.Spec) {
		return nil
	}
	own := *p.shard
	if own.Labels, own.Split, err = p.model.Spec.Given(own.Labels, own.Split, own.Owned); err != nil {
		return err
	}
	p.shard = &own
	if p.labels, err = train.CountLabels(p.ctx, p.sums, comm.ReduceID{Kind: "label counts"}, p.shard,
		p.Draw); err != nil {
		return err
	}
	p.labels.Units = p.model.Spec.Units // labels are in the units of the model, whichever peer trained it
	p.shard = p.labels.HoldOut(p.shard)
	p.sender = train.NewSender(p.group, p.shard, p.Rows)
	return nil
}

// Bins returns the number of bins of AUC and AP in the result of a model, the same as in its training.
func Bins(spec nn.Spec) int {
	if spec.Closed != nil {
		return 1024
	}
	return eval.DefaultBins
}

// testMetric returns the metric over the test nodes of all peers; s has their splits as they were given.
func (p *run) testMetric(s *shard.Shard, logits mat.Dense) (metric, bound float64, nodes int64, err error) {
	none := graph.Labels{Classes: p.model.Spec.Classes}.None(p.model.Spec.Kind(), 0).Standardised(p.model.Spec.Units)
	a := eval.NewAccumulator(p.Metric, none, Bins(p.model.Spec))
	counts := make([]int64, a.Size())
	if s.Labels.Classes == p.model.Spec.Classes && s.Labels.Kind() == p.model.Spec.Kind() {
		rows := s.NodesIn(graph.Test)
		of := s.Labels.Select(rows).Standardised(p.model.Spec.Units)
		of.Ordered, of.First = p.Ordered, p.First
		scores := logits.Select(rows)
		if !p.Metric.Ranks() {
			scores = p.Cuts.Decided(scores, p.Calibration)
		}
		a.Write(counts, 0, float64(of.Labelled()), scores, of)
	}
	others := s.Nodes - int64(s.Owned)
	c := &comm.Contribution{ID: comm.ReduceID{Kind: "test metric"}, Counts: counts, CountLimit: func(i int) comm.Limit {
		return comm.Limit{What: "a count of the metric", Least: 0, Most: float64(a.Most(i, others))}
	}}
	if _, err := p.sums.Reduce(p.ctx, c); err != nil {
		return math.NaN(), math.NaN(), 0, err
	}
	metric, _, nodes, err = a.Read(counts)
	return metric, a.Bound(counts), nodes, err
}

// RowsName returns what the exchange of rows for a hop of layer k of m is called.
func RowsName(m *nn.Model, k, hop int) string {
	return fmt.Sprintf("rows of %s, hop %d", cmp.Or(m.Layers[k].Name, train.StageName(k+1)), hop)
}
