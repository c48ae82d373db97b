package retexo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/train"
)

// The trainer's work in the rounds of a stage.

// beginStage makes stage k, whose rows have been exchanged.
func (t *Trainer) beginStage(k int) error {
	st := &stage{tape: tape.New(), infer: tape.NewInference(), begun: -1, most: 1}
	if st.weight = nn.ClassWeights(t.Labels.Classes, t.config.Balanced, t.config.ClassWeights); st.weight != nil {
		st.most = float64(slices.Max(st.weight))
	}
	key := t.key.FoldString("init")
	if k == 0 {
		st.layer, st.head = t.model.Encoder.Layer, t.model.Encoder.Layer.Head
	} else {
		st.layer, st.head = t.model.Layers[k-1], t.model.Layers[k-1].Head
	}
	if st.head == nil && k < len(t.model.Layers) {
		// A stage that sends hidden rows trains with its own head, which is dropped when the stage ends.
		st.head = tape.NewHead(fmt.Sprintf("head%d", k), st.layer.Spec.Out, []int{t.config.Spec.Classes}, 0, key)
	}
	st.train = newBatch(t.training, st.layer, t.shard, graph.Train)
	st.val = newBatch(t.full, st.layer, t.shard, graph.Val)
	st.test = newBatch(t.full, st.layer, t.shard, graph.Test)
	t.stage = st
	params := st.layer.Params()
	if st.head != nil {
		params = append(params, st.head.Params()...)
	}
	st.slab = tape.NewFlatParams(params)
	n := len(st.slab.Value)
	st.best = make([]float32, n)
	st.round = &comm.Contribution{Update: st.slab.Grad, Counts: make([]int64, 2*eval.RealLen+t.metric.Size()),
		Wide: func(i int) bool { return i < 2*eval.RealLen || t.metric.Wide(i-2*eval.RealLen) }}
	if bits := t.config.UpdateBits(t.shard.Parts); bits > 0 {
		st.round.Bits, st.round.Residual, st.residual = bits, make([]float32, n), make([]float32, n)
	}
	for _, p := range params {
		st.round.Parts = append(st.round.Parts, len(p.Value.Data))
	}
	opt, err := optim.New(t.config.optimizer(t.Labels.Labelled), n)
	if err != nil {
		return err
	}
	st.opt = opt
	if t.config.LocalSteps > 1 {
		st.start = make([]float32, n)
		_, moments := opt.State()
		for range moments {
			st.moments = append(st.moments, make([]float32, n))
		}
	}
	return nil
}

// round sums the peers' updates and losses of a round and, if w.Eval is set, the validation metric of the state before
// it.
func (t *Trainer) round(ctx context.Context, w work, e *event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	st, c := t.stage, t.stage.round
	c.ID, c.Counts, c.CountBits = t.id(ofRound, w), c.Counts[:2*eval.RealLen], 0
	if w.Eval {
		c.Counts, c.CountBits = c.Counts[:2*eval.RealLen+t.metric.Size()], t.countBits
	}
	clear(c.Counts)
	// What only reads the parameters comes first: they stay in the cache until the gradient displaces them.
	c.Meta, c.Common = state(c.Meta[:0], st.slab.Value), digestLen
	if w.Eval {
		st.val.measure(t.metric, c.Counts[2*eval.RealLen:], st.forward(st.val))
	}
	loss, count := st.update(t.config, t.key.FoldString("dropout").Fold(uint64(w.Stage)).Fold(uint64(w.Round)), w.Round)
	if !st.feedBack() {
		loss = math.NaN() // all peers see from NaN that training has diverged
	}
	eval.PutReal(c.Counts, float64(float32(loss)))
	eval.PutReal(c.Counts[eval.RealLen:], float64(float32(count)))
	if err := t.reduce(ctx, c); err != nil {
		return err
	}
	return t.reduced(w, e)
}

// reduced reads the sums of a round.
func (t *Trainer) reduced(w work, e *event) (err error) {
	st, c := t.stage, t.stage.round
	e.Digests = t.digests
	if _, _, again := differs(e.Digests); again {
		return nil // the round does not count, since its sums may be noise
	}
	// Each is one float32, like parameters: the mean of the update has the same bits for any order of the peers.
	loss, count := float32(eval.Real(c.Counts)), float32(eval.Real(c.Counts[eval.RealLen:]))
	if count == 0 {
		return errors.New("no peer has a training node")
	}
	if most := t.Labels.Labelled * st.most * (1 + 1e-5); !(count > 0 && float64(count) <= most) {
		return comm.Refused("the labels that a round learns from must be 0 to %.6g (got %g)", most, count)
	}
	e.Loss, st.count, e.Val = float64(loss)/float64(count), float64(count), math.NaN()
	if w.Eval {
		if e.Val, e.ValLoss, _, err = t.readMetric(t.metric, c.Counts[2*eval.RealLen:]); err != nil {
			return err
		}
	}
	t.Report(train.Event{Kind: train.RoundEnd, Stage: w.Stage, Round: w.Round, Metric: string(t.Metric),
		Done: t.config.rounds(w.Stage) + w.Round + 1, Total: t.config.rounds(t.config.Stages()),
		Loss: e.Loss, Val: e.Val, ValLoss: e.ValLoss, Sent: t.Sent()})
	if !(math.Abs(e.Loss) <= math.MaxFloat64) {
		return fmt.Errorf("the loss is %g: training has diverged; lower the learning rate", e.Loss)
	}
	return nil
}

// readMetric reads the sums of a's accumulators over validation nodes.
func (t *Trainer) readMetric(a eval.Accumulator, v []int64) (metric, loss float64, labels int64, err error) {
	if rows, most := a.Rows(v), int64(t.Labels.Validating()); rows > most {
		return 0, 0, 0, comm.Refused("the labelled validation nodes must be at most %d (got %d)", most, rows)
	}
	return a.Read(v)
}

// enter begins the stage unless it has begun.
func (t *Trainer) enter(k int) error {
	if t.stage != nil {
		return nil
	}
	if err := t.beginStage(k); err != nil {
		return err
	}
	return t.goOn()
}

// goOn restores the parameters and the optimizer that wait for the stage.
func (t *Trainer) goOn() error {
	s, st := t.pending, t.stage
	if t.pending = nil; s == nil {
		return nil
	}
	if len(s.Slab) != len(st.slab.Value) {
		return fmt.Errorf("stage %d must have %d parameters (got %d)", s.At.Stage, len(st.slab.Value),
			len(s.Slab))
	}
	copy(st.slab.Value, s.Slab)
	copy(st.best, s.Best)
	return st.opt.Restore(s.Steps, s.Moments)
}

func (t *Trainer) apply(w work) {
	if w.Keep {
		t.stage.keep()
	}
	t.stage.apply(t.config, w.Round, t.stage.count)
}

// sync takes the parameters of peer w.From and, if all peers keep the same ones, the optimizer's moments. It accepts
// only values that match the peer's digest and are close to this peer's own.
func (t *Trainer) sync(ctx context.Context, w work) error {
	held := t.held(w)
	if st := t.stage; st != nil {
		if err := st.undo(t.config); err != nil {
			return err
		}
	}
	fetched := make([][]float32, len(held)) // all or nothing: a peer may be lost in between
	for i, x := range held {
		fetched[i] = slices.Clone(x)
		if err := t.Group.Broadcast(ctx, comm.Control, w.From, fetched[i]); err != nil {
			return err
		}
	}
	if got, announced := train.Digest(fetched[0]), t.digests[w.From]; got != announced {
		return &comm.PeerError{Rank: w.From, Op: "parameters",
			Err: fmt.Errorf("its parameters, of digest %08x, are not those that it announced, of digest %08x", got,
				announced)}
	}
	e := train.Event{Kind: train.Resync, Stage: w.Stage, Round: w.Round, Peer: w.From, Other: w.Peer,
		Differed: train.Digest(held[0]) != train.Digest(fetched[0])}
	if e.Differed {
		e.Other = t.shard.Rank
	}
	for i, x := range held {
		e.Distance = max(e.Distance, train.Distance(x, fetched[i]))
	}
	if !(e.Distance <= train.MostApart) {
		return fmt.Errorf("the parameters of peers %d and %d differ by %.2g of their length, more than the %g that "+
			"rounding explains: the memory of one is at fault, or it sends false ones", e.Peer, e.Other, e.Distance,
			train.MostApart)
	}
	for i, x := range held {
		copy(x, fetched[i])
	}
	t.Report(e)
	return nil
}

// held returns the values that all peers share at this point: components, or parameters and, if all peers take the same
// steps, the optimizer's moments. Digests cover the first of these.
func (t *Trainer) held(w work) [][]float32 {
	if w.Stage == 0 && t.model.Encoder.Proj != nil {
		return [][]float32{t.model.Encoder.Proj.W.Value.Data}
	}
	all := [][]float32{t.stage.slab.Value}
	if t.config.LocalSteps == 1 {
		_, moments := t.stage.opt.State()
		all = append(all, moments...)
	}
	return all
}

// evaluate sums the validation metric of the stage's current parameters.
func (t *Trainer) evaluate(ctx context.Context, w work, e *event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	v := make([]int64, t.metric.Size())
	t.stage.val.measure(t.metric, v, t.stage.forward(t.stage.val))
	err := t.reduce(ctx, &comm.Contribution{ID: t.id(ofValidation, w), Counts: v, CountBits: t.countBits,
		Wide: t.metric.Wide, Meta: state(nil, t.stage.slab.Value)})
	if err != nil {
		return err
	}
	e.Digests = t.digests
	e.Val, e.ValLoss, _, err = t.readMetric(t.metric, v)
	return err
}
