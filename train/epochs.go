package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Epochs is the run state of a method that trains all parameters together: a round is an epoch, and the only stage is
// all layers. All peers hold the same parameters.
type Epochs struct {
	RunState
	Model  *nn.Model
	Params *tape.FlatParams
	Opt    *optim.Optimizer
	Best   []float32 // parameters that validated best
	Own    Kept      // what only this peer has: each peer restores its own checkpoint (nil = nothing)
}

// NewEpochs returns the state before the first epoch. params, which include m's, are changed in place; fingerprint
// identifies the configuration. own is Epochs.Own.
func NewEpochs(c Config, fingerprint [32]byte, s *shard.Shard, m *nn.Model, params []*tape.Param,
	own Kept) (*Epochs, error) {
	r := &Epochs{Model: m, Params: tape.NewFlatParams(params), Own: own}
	who := Participant{Config: fingerprint, Model: Fingerprint(c.Spec), Own: own != nil,
		Shape: SnapshotShape{Rounds: c.Rounds, Slab: len(r.Params.Value)}}
	if c.Spec.Kind() == graph.Numbers { // whose units a final model needs
		who.Shape.Labels = LabelsLen(graph.Numbers, s.Labels.Classes)
	}
	r.RunState = NewRunState(who, s, c.Metric, c.Draw(), "all layers")
	r.Best = make([]float32, len(r.Params.Value))
	var err error
	r.Opt, err = optim.New(c.Optimizer, r.Params.Trained)
	return r, err
}

// Begin joins the other peers, and goes on from what they have.
func (r *Epochs) Begin(ctx context.Context, g *comm.Group, sums comm.Reducer) error {
	r.Join(g, sums)
	return r.Restore(ctx, r)
}

// Trained returns the model.
func (r *Epochs) Trained() (*nn.Model, error) { return r.Model, nil }

// End ends the run.
func (r *Epochs) End(ctx context.Context) error { return r.Finish(ctx, r) }

// Keep implements Kept.
func (r *Epochs) Keep(c *Checkpoint) error {
	c.Slab, c.Best = r.Params.Value, r.Best
	c.Steps, c.Moments = r.Opt.State()
	if r.At.Stage > 0 {
		c.F32["final/logits"] = r.Scores.Data
	}
	if r.Own != nil {
		return r.Own.Keep(c)
	}
	return nil
}

// TakeUp implements Kept.
func (r *Epochs) TakeUp(c *Checkpoint) error {
	if len(c.Slab) != len(r.Params.Value) {
		return fmt.Errorf("a state must have %d parameters (got %d)", len(r.Params.Value), len(c.Slab))
	}
	if err := r.Opt.Restore(c.Steps, c.Moments); err != nil {
		return err
	}
	copy(r.Params.Value, c.Slab)
	copy(r.Best, c.Best)
	r.Model.Spec.Units = r.Labels.Units
	r.Scores, _ = c.Dense("final/logits", r.Whole.Owned, r.Model.Spec.Classes)
	if r.Own != nil {
		return r.Own.TakeUp(c)
	}
	return nil
}

// CountLabels counts the training labels of all peers, from which the units of a model of numbers follow.
func (r *Epochs) CountLabels(ctx context.Context, kind string) error {
	err := r.RunState.CountLabels(ctx, r.ID(kind, 0))
	r.Model.Spec.Units = r.Labels.Units
	return err
}

// Rounds trains from the round at hand to first + c.Rounds, or until the patience of c is used up or Ends ends them, of
// total rounds of the run. validate keeps the best state, at last that behind the last round, and step returns the loss
// of a round. A round is taken whole or not at all: if one fails, a checkpoint of its begin is left.
func (r *Epochs) Rounds(ctx context.Context, c Config, first, total int,
	validate func(last bool) (val, loss float64, err error), step func() (float64, error)) error {
	for end := first + c.Rounds; r.At.Round < end; {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, r.Save(r))
		}
		e := Event{Kind: RoundEnd, Round: r.At.Round, Metric: string(r.Metric), Done: r.At.Round + 1, Total: total,
			Val: math.NaN(), ValLoss: math.NaN()}
		var err error
		if (r.At.Round-first)%c.EvalEvery == 0 {
			if e.Val, e.ValLoss, err = validate(false); err != nil {
				return errors.Join(err, r.Save(r))
			}
			if p := c.Patience; p > 0 && r.At.BestRound >= 0 && r.At.Round-r.At.BestRound >= p {
				return nil
			}
		}
		if e.Loss, err = step(); err != nil {
			return errors.Join(err, r.Save(r))
		}
		e.Sent = r.Sent()
		r.Report(e)
		r.At.Round++
		if last, err := r.Ended(ctx); err != nil {
			return errors.Join(err, r.Save(r))
		} else if last {
			break
		}
		if every := c.Checkpoint; every > 0 && r.At.Round%every == 0 && r.At.Round < end {
			if err := r.Save(r); err != nil {
				return err
			}
		}
	}
	_, _, err := validate(true)
	return err
}

// Improve keeps the parameters if what they measured is the best so far, and reports whether it is.
func (r *Epochs) Improve(val, loss float64) bool {
	better := r.At.Improve(r.Metric, r.At.Round, val, loss)
	if better {
		copy(r.Best, r.Params.Value)
	}
	return better
}

// Evaluate reports what the final model measures on the splits that are held out.
func (r *Epochs) Evaluate(of func(graph.Split) (metric, loss, bound float64, err error)) (err error) {
	e := Event{Kind: StageEnd, Round: len(r.Measured.Curve()), Metric: string(r.Metric), BestRound: r.At.BestRound}
	if e.Val, e.ValLoss, e.ValBound, err = of(graph.Val); err != nil {
		return err
	}
	if e.Test, e.TestLoss, e.TestBound, err = of(graph.Test); err != nil {
		return err
	}
	e.Sent = r.Sent()
	r.Report(e)
	return nil
}

// Mark returns a function that restores parameters and optimiser to their present values.
func (r *Epochs) Mark() (back func()) {
	value := slices.Clone(r.Params.Value)
	steps, moments := r.Opt.State()
	kept := make([][]float32, len(moments))
	for i, m := range moments {
		kept[i] = slices.Clone(m)
	}
	return func() {
		copy(r.Params.Value, value)
		if err := r.Opt.Restore(steps, kept); err != nil {
			panic("train: an optimiser refuses its own state: " + err.Error())
		}
	}
}

// Digest is a checksum of the parameters, which is sent with each sum of gradients; nil if there is only one peer.
func (r *Epochs) Digest() []byte {
	if r.Whole.Parts == 1 {
		return nil
	}
	return binary.LittleEndian.AppendUint32(nil, Digest(r.Params.Value))
}

// ErrDiverged is the loss of a model whose training has diverged.
var ErrDiverged = errors.New("the loss is not a finite number: training has diverged; lower the learning rate")

// Alike returns an error that names a peer whose digest, of those by rank, differs from this peer's.
func (r *Epochs) Alike(digests [][]byte) error {
	for q, d := range digests {
		if !bytes.Equal(d, digests[r.Whole.Rank]) {
			return &comm.PeerError{Rank: q, Op: fmt.Sprintf("epoch %d", r.At.Round),
				Err: fmt.Errorf("its parameters differ from this worker's (%d): the processors round apart, "+
					"or a memory is at fault", r.Whole.Rank)}
		}
	}
	return nil
}
