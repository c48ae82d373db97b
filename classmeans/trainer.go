package classmeans

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer is one peer's part in the rounds.
type Trainer struct {
	train.RunState
	edges     *dp.PrivateEdges // keeps this run's edges private, as Config.mechanism made it; nil without Epsilon
	AllRounds bool             // whether rounds go on that validate no better, at all peers or none
	Leaves    bool             // whether sums have parts of leaves (package leaf), at all peers and leaves or none
	Beyond    Neighbours       // edges between nodes of different members, with Leaves; nil at all or none

	config Config       // given, with what the labels and the first rounds chose
	given  Config       // as New was given it
	step   int          // of each sum's name: trials of options have their own
	shard  *shard.Shard // with the split to train by
	key    rng.Key

	sender *train.Sender

	model   *nn.Model      // nil until the labels are counted
	raw     graph.Features // what class means are made of, as it is in the shard; features returns it normalised
	weight  []float32      // of each class; nil: 1
	train   []int32        // own training nodes that have a label
	others  []int32        // other own nodes that training sees
	nodes   float64        // of all peers
	means   *linear.Means
	stats   mat.Dense   // that means was given
	apart   []float64   // how far they are from the exact sums at most
	rest    linear.Rest // what is known of the features of others
	allowed []float64   // by round: how large a row of its columns may be in a regression, squared
	full    *sight
	seen    train.GraphView // inductive: without held-out nodes
	base    *sight          // what training sees: full or, inductive, the graph without held-out nodes
	normal  linear.Normal
	own     linear.Normal
	scales  []eval.Scale // of the bins of the best round's AUC
	margin  float64      // half a standard error of its validation metric
	parts   []float32    // what normal was extended by, for checkpoints
	within  bool         // of another run, which takes the last round: each goes on from the one before
}

// New returns the trainer of the peer that owns s.
func New(c Config, s *shard.Shard) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	base := train.Config{Spec: c.spec(1)}
	if err := base.Fits(s); err != nil {
		return nil, err
	}
	if err := c.cost().Err(); err != nil {
		return nil, err
	}
	who := train.Participant{Config: c.Fingerprint(), Own: true,
		Shape: train.SnapshotShape{Rounds: maxRounds, Labels: train.LabelsLen(s.Labels.Kind(), c.Classes)}}
	return &Trainer{RunState: train.NewRunState(who, s, c.Metric, c.Draw(), "closed form"), config: c, given: c,
		shard: s, key: rng.New(c.Seed)}, nil
}

// Run trains until the model is done, ctx ends or a peer fails; then it returns an error, and the run can be resumed
// from the checkpoints. Rows are sent over g, sums through r.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	t.Join(g, r)
	t.sender = train.NewSender(g, t.shard, t.config.Rows)
	if (t.edges != nil) != (t.config.Epsilon > 0) {
		return fmt.Errorf("edges must have a mechanism where epsilon is above 0, and only there "+
			"(epsilon is %g)", t.config.Epsilon)
	}
	if err := errors.Join(t.fitsLeaves(), t.fitsBeyond()); err != nil {
		return err
	}
	for _, s := range t.sights() {
		if s != nil {
			s.hop = nil // of another group
		}
	}
	if text := t.config.cost().Warning(); text != "" {
		t.Log(train.Warning, "%s", text)
	}
	if err := t.Restore(ctx, t); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if t.At.Stage == 0 {
		begin := t.viewBase
		if t.model == nil {
			begin = t.prepare
		}
		if err := begin(ctx); err != nil {
			return err
		}
	}
	for t.At.Stage == 0 && t.At.Round < t.model.Spec.Closed.Rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		goOn, err := t.round(ctx, t.At.Round)
		if err != nil {
			return fmt.Errorf("round %d: %w", t.At.Round+1, err)
		}
		t.At.Round++
		last, err := t.Ended(ctx)
		if err != nil {
			return err
		}
		if !goOn || last || t.At.Round == t.model.Spec.Closed.Rounds { // the finished model is kept instead
			break
		}
		if err := t.Save(t); err != nil {
			return err
		}
	}
	if t.At.Stage == 0 {
		every := mat.EveryRow(t.shard.Owned)
		if t.Scores = t.full.logitsOf(t.At.BestRound, every); t.KeepHidden {
			t.Rows = t.full.each(t.At.BestRound, every, t.full.columnsOf(t.At.BestRound+1)-1,
				func(columns mat.Dense) mat.Dense { return columns })
		}
		by, err := t.correct(ctx)
		if err != nil {
			return err
		}
		if err := t.measure(ctx); err != nil {
			return fmt.Errorf("test: %w", err)
		}
		if by != nil { // once, whatever failed before
			kernels.Add(by, t.model.Closed.Heads[t.At.BestRound].Bias.Value.Data)
		}
	}
	t.full, t.base = nil, nil // with the columns of all rounds: what follows needs Scores only
	return t.Finish(ctx, t)
}

// Model returns the model of the best round so far (nil = none).
func (t *Trainer) Model() *nn.Model {
	if t.model == nil || t.At.BestRound < 0 {
		return nil
	}
	return t.model.UpTo(t.At.BestRound + 1)
}

// Trained returns the model of the best round.
func (t *Trainer) Trained() (*nn.Model, error) { return t.Model(), nil }

// id names a reduction. No two of a run are the same.
func (t *Trainer) id(kind string, round, step int) comm.ReduceID {
	return comm.ReduceID{Generation: t.Generation, Round: round, Step: t.step + step, Kind: kind}
}

// prepare counts the labels, decides what is Auto, and sums the statistics of the features.
func (t *Trainer) prepare(ctx context.Context) error {
	counts, err := t.countLabels(ctx)
	if err != nil {
		return err
	}
	if err := t.Learn(counts); err != nil {
		return err
	}
	t.config = t.given.Options(counts.Labelled, float64(t.Whole.Nodes))[0]
	if err := t.resolve(); err != nil {
		return err
	}
	if err := t.smallClasses(); err != nil {
		return err
	}
	if err := t.viewBase(ctx); err != nil {
		return err
	}
	return t.choose(ctx)
}

// viewBase finds out what training sees of the graph.
func (t *Trainer) viewBase(ctx context.Context) (err error) {
	if t.config.Inductive {
		t.seen, err = t.sender.InductiveView(ctx)
		t.base.GraphView = t.seen
	}
	return err
}

// resolve makes the model once the labels of all peers are counted.
func (t *Trainer) resolve() error {
	t.shard = t.Labels.HoldOut(t.Whole)
	t.config.Metric, _ = t.Labels.Metric(t.config.Metric, nil)
	if t.Group != nil {
		t.sender = train.NewSender(t.Group, t.shard, t.config.Rows)
	}
	spec := t.config.spec(t.config.ClassRounds)
	model, err := nn.New(spec, t.key)
	if err != nil {
		return err
	}
	model.Spec.Units = t.Labels.Units
	t.model, t.raw = model, t.inputs()
	t.weight = nn.ClassWeights(t.Labels.Classes, t.config.Balanced, t.config.ClassWeights)
	t.full = t.newSight(train.WholeGraph(t.shard))
	t.seenFrom(t.full.Degree)
	t.base = t.full
	if t.config.Inductive {
		t.base = t.newSight(t.seen)
	}
	t.train, t.others = spec.Closed.Present(t.shard.Split, t.shard.Labels)
	return nil
}

// features returns what class means are made of, of own nodes. Normalised ones are a copy: nothing keeps it.
func (t *Trainer) features() graph.Features {
	defer t.shard.Forget()
	return t.model.Encoder.Input(t.raw)
}

// inputs is features before they are normalised.
func (t *Trainer) inputs() graph.Features {
	if k := t.config.Adjacent; k > 0 {
		return closed.AdjacencyRows(&t.shard.Adj, t.shard.Global, int(t.shard.Nodes), k)
	}
	return t.shard.X
}

// shares returns how large a share of the labels is of each class; of numbers 0, their mean.
func (t *Trainer) shares() []float32 {
	shares := make([]float32, len(t.Labels.Classes))
	if t.config.numbers() {
		return shares
	}
	for k, n := range t.Labels.Classes {
		shares[k] = float32(n / t.Labels.Labelled)
	}
	return shares
}

// LabelError reports that the labels of all peers are too few.
type LabelError struct{ error }

// smallClasses warns of classes that have too few training nodes for a mean, and refuses if most have.
func (t *Trainer) smallClasses() error {
	small := 0
	for _, n := range t.Labels.Classes {
		if n < t.leastClass() {
			small++
		}
	}
	need := fmt.Sprintf("must have %d training nodes (min_class) for class means", t.config.MinClass)
	const waysOut = "label more nodes, lower min_class in the plan and in the policy of every site, " +
		"or choose another method by name (method layer-wise)"
	if small > 0 && t.config.numbers() {
		return &LabelError{fmt.Errorf("the target %s (got %g): %s", need, t.Labels.Labelled, waysOut)}
	}
	if 2*small > len(t.Labels.Classes) {
		all := len(t.Labels.Classes)
		return &LabelError{fmt.Errorf("most classes %s (%d of %d have fewer): %s", need, small, all, waysOut)}
	}
	if small > 0 {
		t.Log(train.Warning,
			"%d of %d classes have fewer than %d training nodes (min_class) and send no mean in the first round", small,
			len(t.Labels.Classes), t.config.MinClass)
	}
	return nil
}

// leastClass returns how many training nodes a class needs for a mean that others may see.
func (t *Trainer) leastClass() float64 {
	if t.shard.Parts == 1 && !t.Leaves && !t.within {
		return 1
	}
	return float64(t.config.MinClass)
}

// statistics sums what the maps need of the features: their moments by column.
func (t *Trainer) statistics(ctx context.Context) error {
	t.means = new(linear.Means)
	present, asks := t.present(), t.asksForEdges()
	own := linear.Statistics(t.features(), present)
	t.stats = own.Clone()
	c := &comm.Contribution{ID: t.id("column statistics", 0, 0), Update: t.stats.Data,
		Counts: []int64{int64(len(present))}, UpdateLimit: t.unknown().StatisticsLimit(),
		CountLimit: t.statisticsCountLimit}
	if asks {
		c.Counts = append(c.Counts, 0)
		if t.shard.Connected() {
			c.Counts[1] = 1
		}
	}
	if c.Bits = t.bits(); t.model.Closed.Own != nil {
		c.Bits = 0 // what all features are divided by
	} else if c.Bits > 0 { // rare columns are small compared with frequent ones
		c.Bits, c.Columns = max(c.Bits, 16), own.Cols
	}
	sums, err := t.Reducer.Reduce(ctx, c)
	if err != nil {
		return err
	}
	t.nodes, t.apart = float64(c.Counts[0]), sums.Error
	if asks {
		if err := t.agreeEdges(c.Counts[1]); err != nil {
			return err
		}
	}
	if err := t.learn(own); err != nil {
		return err
	}
	t.agreeMeans()
	return nil
}

// agreeMeans passes the statistics to means and model.
func (t *Trainer) agreeMeans() {
	t.means.Agree(t.stats, t.nodes, t.config.Shrink)
	if own := t.model.Closed.Own; own != nil {
		for j := range own.Value.Cols {
			mean := float64(t.stats.At(j, 0)) / t.nodes
			square := float64(t.stats.At(j, 1)) / t.nodes
			own.Value.Set(0, j, float32(mean))
			if v := square - float64(mean*mean); v > 1e-12*square {
				own.Value.Set(1, j, float32(1/math.Sqrt(v)))
			}
		}
	}
	if closed := t.model.Closed; closed.Spec.LeaveOut {
		copy(closed.Inverse.Value.Data, t.means.Inverse)
		copy(closed.Centre.Value.Data, t.means.Centre)
	}
}

// bits returns the bits of a number in the sums of features (0 = float32).
func (t *Trainer) bits() int { return t.config.SumBits(t.shard.Parts) }

// present returns all own nodes that training sees.
func (t *Trainer) present() []int32 { return slices.Concat(t.train, t.others) }

// targets returns the labels of own training nodes as rows of numbers, or of zeros and ones, and what each of them
// counts; a node without a label counts 0.
func (t *Trainer) targets() (mat.Dense, []float32) {
	s := t.shard
	weight := make([]float32, s.Owned)
	for _, i := range t.train {
		if weight[i] = 1; t.weight != nil && s.Labels.Kind() == graph.Single {
			weight[i] = t.weight[s.Labels.Class[i]]
		}
	}
	return s.Labels.Rows(t.train), weight
}

// resultBins is the resolution of AP in the result: a fourth of eval.DefaultBins, whose counts
// would take more bytes than all rows of a small graph.
const resultBins = 1024

// scaledResultBins is the resolution of AUC. Its error is at most the error of 1,024 bins of any log-odds.
const scaledResultBins = 256

// measured returns what the result is counted by.
func (c Config) measured(labels graph.Labels) eval.Accumulator {
	return c.accumulator(labels, resultBins, scaledResultBins)
}

// measure sums the metric of the final logits over all validation and test nodes, and reports the end of the run.
func (t *Trainer) measure(ctx context.Context) error {
	a := t.config.measured(t.shard.Labels).On(t.scales)
	size := a.Size()
	v := make([]int64, 2*size)
	for k, split := range []graph.Split{graph.Val, graph.Test} {
		rows := t.shard.NodesIn(split)
		of, logits := t.shard.Labels.Select(rows), t.Scores.Select(rows)
		sum, count := nn.Loss(mat.Dense{}, logits, of, nil)
		a.Write(v[k*size:], sum, count, logits, of)
	}
	own, rows := slices.Clone(v), t.shard.Nodes-int64(t.shard.Owned)
	c := &comm.Contribution{ID: t.id("finished model", 0, 0), Counts: v, CountBits: comm.CountBits(t.shard.Nodes),
		Wide: a.Wide, CountLimit: func(i int) comm.Limit {
			return comm.Limit{What: "a count of the metric", Least: 0, Most: float64(a.Most(i, rows))}
		}}
	if _, err := t.Reducer.Reduce(ctx, c); err != nil {
		return err
	}
	if !t.Leaves {
		if err := checkMetric(a, v[:size], own[:size], int64(t.Labels.Validating())-t.ownValidating()); err != nil {
			return err
		}
		if err := checkMetric(a, v[size:], own[size:], a.Rows(v[size:])-a.Rows(own[size:])); err != nil {
			return err
		}
	}
	e := train.Event{Kind: train.StageEnd, Round: t.At.Round, Metric: string(t.config.Metric),
		BestRound: t.At.BestRound}
	var err error
	if e.Val, e.ValLoss, _, err = a.Read(v[:size]); err != nil {
		return err
	}
	if e.Test, e.TestLoss, _, err = a.Read(v[size:]); err != nil {
		return err
	}
	e.ValBound, e.TestBound = a.Bound(v[:size]), a.Bound(v[size:])
	e.Sent = t.Sent()
	t.Report(e)
	return nil
}

// finite reports whether all of x are numbers.
func finite(x []float32) bool { return kernels.MaxAbs(x) <= math.MaxFloat32 }
