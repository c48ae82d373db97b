package retexo

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// LinkConfig configures training for link prediction layer by layer. Each layer has its own rounds.
//
// Before a layer trains, each owner sends boundary nodes' inputs and aggregates to the peers with edges from these
// nodes. Both stay constant while the layer trains. A peer computes the rows of the halo by itself in every round,
// and scores the pairs of own nodes with each other and with the halo: after that exchange only gradients are summed.
type LinkConfig struct {
	train.Config

	Links     train.LinkTask `json:"links"`
	PCAPasses int            `json:"pca_passes"`     // encoder pca: products with the Gram matrix; at least 1
	Sums      string         `json:"sums,omitempty"` // Config.Sums
}

// Validate returns all faults at once, or nil.
func (c LinkConfig) Validate() error {
	errs := train.ConfigFaults{c.Config.Validate(), c.Optimizer.Validate(), c.Schedule.Validate(),
		c.Links.Check(c.Config)}
	fault := errs.If
	fault(!c.Links.Near,
		"negatives_from must be near with method layer-wise (got all): only rows of boundary nodes are sent")
	fault(c.Spec.Encoder.Kind != "raw" && c.Spec.Encoder.Kind != "pca",
		"encoder must be raw or pca for links with method layer-wise (got %s): the rows of the halo must be "+
			"known before a layer trains", c.Spec.Encoder.Kind)
	fault(c.Spec.Encoder.Kind == "pca" && c.PCAPasses < 1, "pca_passes must be at least 1 (got %d)", c.PCAPasses)
	fault(comm.SumBits(c.Sums) < 0, "sums must be auto, int16, int8 or empty (got %q)", c.Sums)
	fault(c.Spec.LayerOutput != nn.Hidden, "layer_output must be hidden for links with method layer-wise (got %s)",
		c.Spec.LayerOutput)
	fault(c.Exchange == "cover", "exchange must be halo or auto for links with method layer-wise (got cover): "+
		"a link needs the row of the node itself")
	fault(c.Spec.BatchNormed(),
		"batch_norm must be off: its statistics would need the rows of all peers; use norm (of each row)")
	fault(len(c.Spec.Layers) == 0, "layers must be at least 1 (got 0)")
	for i, l := range c.Spec.Layers {
		conv, ok := nn.ConvolutionNamed(l.Conv)
		fault(ok && !(conv.LayerWise && conv.Sum),
			"model must be gcn, sage, sage-sum or gin for links with method layer-wise (got %s in layers[%d]): "+
				"the row of another peer's node must follow from its input and one sum", l.Conv, i)
	}
	return errors.Join(errs...)
}

// total returns the greatest number of rounds of all layers together.
func (c LinkConfig) total() int { return c.Rounds * len(c.Spec.Layers) }

// Fingerprint names everything that decides the result, and what the peers must have in common.
func (c LinkConfig) Fingerprint() [32]byte { return train.Fingerprint(c) }

// LinkTrainer trains one link prediction model at one peer. Its rounds are counted over all layers: layer k has
// [k·Rounds, (k+1)·Rounds).
type LinkTrainer struct {
	*train.Epochs

	config LinkConfig
	key    rng.Key
	shard  *shard.Shard // without the held-out edges
	task   *links.Learner
	layers []linkLayer
	sender *train.Sender
	view   train.GraphView
	placed int        // layers whose rows have been exchanged
	in     nn.Input   // input of the last such layer: rows and aggregates of own nodes and the halo
	count  float64    // training links, counted at both ends
	far    mat.Dense  // rows of the halo after the final model
	tape   *tape.Tape // for training steps
	infer  *tape.Tape // for validation
}

// linkLayer is a layer in training. Every layer except the last has its own head and decoder during training, which the
// model does not keep.
type linkLayer struct {
	*nn.Layer
	head    tape.Operator // (nil = none)
	decoder *nn.Decoder
	lo, hi  int // range of its parameters
}

// Train implements train.Method.
func (c LinkConfig) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	return train.Train(ctx, at, c, own, NewLinks)
}

// NewLinks returns the trainer of the peer that owns s. m is the model of c.Spec, made with the same key at every peer;
// training changes it.
func NewLinks(c LinkConfig, s *shard.Shard, m *nn.Model) (*LinkTrainer, error) {
	if err := errors.Join(c.Validate(), c.Fits(s)); err != nil {
		return nil, err
	}
	if _, numbers := s.X.Numbers(); numbers && int64(s.X.Cols()) == s.Nodes && s.Owned > 0 && s.Parts > 1 {
		return nil, fmt.Errorf("nodes of %s must have features for links with method layer-wise: without them a "+
			"node's aggregate is the list of its neighbours, and it would be sent; use method full-batch", s.Name)
	}
	base := c.Config
	base.Rounds = c.total()
	t := &LinkTrainer{config: c, key: rng.New(c.Seed), tape: tape.New()}
	t.infer = t.tape.Inference()
	params, err := t.stack(m)
	if err != nil {
		return nil, err
	}
	if t.Epochs, err = train.NewEpochs(base, c.Fingerprint(), s, m, params, nil); err != nil {
		return nil, err
	}
	if t.task, err = links.New(c.Links, c.Seed, s); err != nil {
		return nil, err
	}
	t.task.Halo, t.shard = true, t.task.Messages()
	return t, nil
}

// stack lists the layers, and returns the parameters by layer after the encoder's, which no layer trains.
func (t *LinkTrainer) stack(m *nn.Model) (all []*tape.Param, err error) {
	all = m.Encoder.Params()
	length := func(params []*tape.Param) (n int) {
		for _, p := range params {
			n += len(p.Value.Data)
		}
		return n
	}
	for k, l := range m.Layers {
		one := linkLayer{Layer: l, decoder: m.Decoder, lo: length(all)}
		all = append(all, l.Params()...)
		if k < len(m.Layers)-1 {
			key := t.key.FoldString("init").FoldString(l.Name)
			one.head = tape.NewHead("head", l.Spec.Out, []int{t.config.Spec.Classes}, 0, key)
			if one.decoder, err = nn.NewDecoder(*t.config.Spec.Decoder, key); err != nil {
				return nil, err
			}
			all = append(all, one.head.Params()...)
		}
		all = append(all, one.decoder.Params()...)
		one.hi = length(all)
		t.layers = append(t.layers, one)
	}
	return all, nil
}

// Run trains until the rounds of all layers are used up, ctx ends or a peer is lost. In the last two cases it leaves a
// checkpoint from the beginning of the round and returns an error. Rows are sent over g, sums through r.
func (t *LinkTrainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	if err := t.Begin(ctx, g, r); err != nil {
		return err
	}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for t.At.Stage == 0 && t.At.Round < t.config.total() {
		if err := t.train(ctx); err != nil {
			return err
		}
	}
	if err := t.evaluate(ctx); err != nil {
		return err
	}
	return t.End(ctx)
}

// prepare makes what a run needs before its first round. Every peer takes part in each step.
func (t *LinkTrainer) prepare(ctx context.Context) error {
	t.sender, t.placed = train.NewSender(t.Group, t.shard, t.config.Rows), 0
	n, err := t.task.Begin(ctx, t.Group, t.sender, t.Reducer, t.ID(ofLinks, 0))
	if err != nil {
		return err
	}
	t.count = float64(n)
	enc := t.Model.Encoder
	if enc.Proj != nil && t.At.Stage == 0 && t.At.Round == 0 && t.config.Init == "" {
		v, err := linear.Components(ctx, t.Reducer, t.ID(ofProducts, 0), enc.Input(t.shard.X),
			float64(t.shard.Nodes)-float64(t.shard.Owned), enc.Spec.Out, t.config.PCAPasses,
			comm.SumBits(t.config.Sums), t.key.FoldString("pca"))
		if err != nil {
			return err
		}
		enc.Proj.W.Value.CopyFrom(v)
	}
	t.view = train.WholeGraph(t.shard)
	if t.shard.Parts > 1 && t.layers[0].Edges == graph.GCN {
		t.view, err = t.sender.WithDegrees(ctx, t.view)
	}
	return err
}

// train trains the current round's layer to its end, takes its best state, and begins the next layer.
func (t *LinkTrainer) train(ctx context.Context) error {
	k := t.At.Round / t.config.Rounds
	if err := t.enter(ctx, k); err != nil {
		return err
	}
	err := t.Rounds(ctx, t.config.Config, k*t.config.Rounds, t.config.total(),
		func(last bool) (val, loss float64, err error) { return t.validate(ctx, k, last) },
		func() (float64, error) { return t.stepLayer(ctx, k) })
	if err != nil {
		return err
	}
	copy(t.Params.Value, t.Best)
	t.Report(train.Event{Kind: train.Note, Round: t.At.Round,
		Text: fmt.Sprintf("layer %d of %d: validation %s %.4f", k+1, len(t.layers), t.Metric, t.At.Best)})
	if k == len(t.layers)-1 {
		t.At.Round = t.config.total()
		return nil
	}
	t.At = train.Position{Round: (k + 1) * t.config.Rounds, BestRound: -1}
	t.Opt, err = optim.New(t.config.Optimizer, len(t.Params.Value))
	return err
}

// enter exchanges the rows of the layers up to k that have not been exchanged; after an interruption these are all of
// them.
func (t *LinkTrainer) enter(ctx context.Context, k int) error {
	for ; t.placed <= k; t.placed++ {
		own := t.Model.Encoder.Encode(t.shard.X)
		if t.placed > 0 {
			own = graph.Features{Dense: t.rows(t.placed-1).RowRange(0, t.shard.Owned).Clone()}
		}
		l, mixed := t.layers[t.placed], own.Sparse != nil
		x, err := t.sender.Halo(ctx, own, mixed, fmt.Sprintf("rows of layer %d", t.placed+1))
		if err != nil {
			return err
		}
		in := nn.Input{X: x, Z: x, Nodes: t.shard.Global}
		for hop := range max(l.Spec.Hops, 1) {
			z := aggregate.Features(l.Conv.Agg, t.view.Edges(l.Layer), in.Z)
			if in.Z, err = t.sender.Halo(ctx, z, mixed,
				fmt.Sprintf("aggregates of layer %d, hop %d", t.placed+1, hop+1)); err != nil {
				return err
			}
		}
		t.in = in
	}
	return nil
}

// rows returns layer k's rows of own nodes and the halo, [N×H], before its head, computed as in inference.
func (t *LinkTrainer) rows(k int) mat.Dense {
	h := mat.New(t.in.X.Rows(), t.layers[k].Spec.Out)
	t.layers[k].Forward(h, t.in, nil)
	return h
}

// forward returns the rows of layer k before and after its head. They are valid until the tape is reset.
func (t *LinkTrainer) forward(k int, by *tape.Tape) (h, z mat.Dense) {
	l := t.layers[k]
	h = by.Scratch(t.in.X.Rows(), l.Spec.Out)
	l.Forward(h, t.in, by)
	if l.head == nil {
		return h, h
	}
	by.Nodes = t.in.Nodes
	z = by.Scratch(h.Rows, t.config.Spec.Classes)
	l.head.Forward(z, h, by)
	return h, z
}

// stepLayer makes one optimizer step for layer k and returns the mean loss over the links of all peers before it.
func (t *LinkTrainer) stepLayer(ctx context.Context, k int) (float64, error) {
	l := t.layers[k]
	t.Params.ZeroGrad()
	t.tape.Reset()
	t.tape.Key = t.key.FoldString("dropout").Fold(uint64(t.At.Round))
	h, z := t.forward(k, t.tape)
	d := t.tape.Scratch(z.Rows, z.Cols)
	d.Zero()
	loss, err := t.task.Learn(ctx, l.decoder, t.At.Round, d, z)
	if err != nil {
		return 0, err
	}
	if l.head != nil {
		dh := t.tape.Scratch(h.Rows, h.Cols)
		dh.Zero()
		l.head.Backward(dh, d, t.tape)
		d = dh
	}
	l.Backward(mat.Dense{}, d, t.tape)
	var counts [eval.RealLen]int64
	eval.PutReal(counts[:], loss)
	sums, err := t.Reducer.Reduce(ctx, &comm.Contribution{ID: t.ID(ofGradient, 0), Update: t.Params.Grad[l.lo:l.hi],
		Counts: counts[:], Meta: t.Digest()})
	if err != nil {
		return 0, err
	}
	if err := t.Alike(sums.Meta); err != nil {
		return 0, err
	}
	if loss = eval.Real(counts[:]); loss != loss {
		return 0, train.ErrDiverged
	}
	before, after := append([]float32{}, t.Params.Value[:l.lo]...), append([]float32{}, t.Params.Value[l.hi:]...)
	t.Opt.StepScaled(t.Params.Value, t.Params.Grad, float32(1/t.count),
		t.config.Optimizer.LR*t.config.Schedule.At(t.At.Round%t.config.Rounds))
	copy(t.Params.Value, before) // weight decay must change only the current layer
	copy(t.Params.Value[l.hi:], after)
	return loss / t.count, nil
}

// validate ranks the validation links, and keeps the parameters if they are the layer's best so far.
func (t *LinkTrainer) validate(ctx context.Context, k int, last bool) (val, loss float64, err error) {
	step := 0
	if last { // the next layer's first validation has the same round number
		step = 1
	}
	t.infer.Reset()
	_, z := t.forward(k, t.infer)
	val, loss, err = t.task.Validate(ctx, &t.RunState, t.layers[k].decoder, t.ID(ofValidation, step), z)
	if err == nil {
		t.Improve(val, loss)
	}
	return val, loss, err
}

// evaluate reports the metrics of the final model.
func (t *LinkTrainer) evaluate(ctx context.Context) error {
	last := len(t.layers) - 1
	if err := t.enter(ctx, last); err != nil {
		return err
	}
	z := t.rows(last)
	t.Scores, t.far = z.RowRange(0, t.shard.Owned).Clone(), z.RowRange(t.shard.Owned, z.Rows)
	return t.Evaluate(func(split graph.Split) (metric, loss, bound float64, err error) {
		return t.task.Rank(ctx, &t.RunState, t.Model.Decoder, t.ID(ofResult, int(split)), split, z)
	})
}

// Far returns the final model's rows of the halo, in the order of the shard's halo. This peer computes them from its
// owners' inputs and aggregates.
func (t *LinkTrainer) Far() mat.Dense { return t.far }
