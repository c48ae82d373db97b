// Package joint holds what trainers of all layers at once share: the state of a run between two epochs, its checkpoints,
// where it continues after a failure, and how it ends.
package joint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// Epochs is the state of one peer's run. A round is an epoch, and the only stage is all layers.
type Epochs struct {
	OnEvent     func(train.Event) // called synchronously, must not block; nil: nobody listens
	Checkpoints *checkpoint.Store // nil: none are written
	KeepHidden  bool              // for Hidden

	Model  *nn.Model
	Whole  *shard.Shard // as it was given
	Params *tape.FlatParams
	Opt    *optim.Optimizer
	Best   []float32 // parameters that validated best
	At     train.Position

	Measured train.Result
	Scores   mat.Dense // of own nodes; empty until they are computed by the best state
	Rows     mat.Dense // of own nodes, with KeepHidden

	// Generation is the last that this process had a part in: a part of the name of every reduction.
	Number uint64

	config   [32]byte // fingerprint of the trainer's configuration
	metric   eval.Metric
	positive string // class of two, once the labels are counted
	// labels.Counts.Sums, where they say in which units the model learns numbers (nil = labels are classes)
	labels []float64
	rounds int
	agreed uint64 // the generation in which what this peer holds was agreed on
	before comm.Counts
	done   bool // the model is final
	group  *comm.Group
}

// New returns a run of m from its beginning, by a configuration of that fingerprint. m is changed in place.
func New(c train.Config, fingerprint [32]byte, s *shard.Shard, m *nn.Model) (*Epochs, error) {
	r := &Epochs{Model: m, Whole: s, config: fingerprint, metric: c.Metric, rounds: c.Rounds, At: train.Position{BestRound: -1}}
	r.Params = tape.NewFlatParams(m.Params())
	r.Best = make([]float32, len(r.Params.Value))
	var err error
	r.Opt, err = optim.New(c.Optimizer, r.Params.Trained)
	return r, err
}

// participant is this peer as a member of the run.
func (r *Epochs) participant() recovery.Participant {
	spec := r.Model.Spec
	spec.Units = nil // follow from the labels of all peers
	return recovery.Participant{Rank: r.Whole.Rank, Size: r.Whole.Parts, Config: r.config, Model: train.Fingerprint(spec), Partition: r.Whole.Fingerprint,
		Shape: recovery.Shape{Stages: 1, Rounds: r.rounds, Slab: len(r.Params.Value), Labels: r.kept()}, Checkpoints: r.Checkpoints}
}

// kept is how many label counts a checkpoint has: those of numbers, whose units a final model needs.
func (r *Epochs) kept() int {
	l := r.Whole.Labels
	if r.Model.Spec.Kind() != target.Numbers {
		return 0
	}
	return labels.Len(l.Kind(), l.Classes)
}

// Learn takes the positive class, and the units that the labels of all peers give the model.
func (r *Epochs) Learn(all labels.Counts) {
	r.positive = all.PositiveName(r.Whole.Labels.Names)
	if all.Units != nil {
		r.labels, r.Model.Spec.Units = all.Sums, all.Units
	}
}

// State is what all peers hold alike: the parameters, the best ones, the optimiser and the position. It shares r's
// memory.
func (r *Epochs) State() recovery.Snapshot {
	s := recovery.Snapshot{At: r.At, Slab: r.Params.Value, Best: r.Best, Agreed: r.agreed, Labels: r.labels}
	s.Rounds, s.Stages = r.Measured.Until(r.At).Encode()
	s.Steps, s.Moments = r.Opt.State()
	return s
}

// Save writes a checkpoint.
func (r *Epochs) Save() error {
	if r.Checkpoints == nil {
		return nil
	}
	c := &recovery.Checkpoint{Snapshot: r.State(), Sent: r.Sent(), F32: map[string][]float32{}}
	if r.At.Stage > 0 {
		c.F32["final/logits"] = r.Scores.Data
	}
	if err := r.participant().Save(c); err != nil {
		return err
	}
	r.Report(train.Event{Kind: train.Saved, Round: r.At.Round, Peer: r.Whole.Rank})
	return nil
}

// Hello makes sure that all peers mean the same run, and takes up the furthest state that any of them has.
func (r *Epochs) Hello(ctx context.Context, g *comm.Group) error {
	r.group = g
	p := r.participant()
	own, err := p.Newest()
	if err != nil {
		return err
	}
	var held *recovery.Snapshot
	if own != nil {
		r.before = own.Sent
		if err := r.take(own.Snapshot); err != nil {
			return err
		}
		held = &own.Snapshot
	}
	all, generation, err := p.Greet(ctx, g, r.Number, held)
	if err != nil {
		return err
	}
	r.Number, r.agreed = generation, generation
	d, err := p.Decide(all)
	if err != nil || d.Seq == 0 {
		return err
	}
	s, err := p.Fetch(ctx, g, all, d.From, r.State(), r.Sent())
	if err != nil {
		return err
	}
	if s != nil {
		if err := r.take(*s); err != nil {
			return &comm.PeerError{Rank: d.From, Op: "state", Err: err}
		}
	}
	r.Report(train.Event{Kind: train.Restored, Round: r.At.Round, Peer: r.Whole.Rank})
	return nil
}

// Within does a run between its greeting and its end.
func (r *Epochs) Within(ctx context.Context, g *comm.Group, do func() error) error {
	if err := r.Hello(ctx, g); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return r.Finish(ctx)
}

// ID names a reduction of the round at hand. With generation, round and step no two are the same.
func (r *Epochs) ID(kind string, step int) comm.ReduceID {
	return comm.ReduceID{Generation: r.Number, Round: r.At.Round, Step: step, Kind: kind}
}

// Evaluate reports what the final model measures, by that metric, on the splits that are held out.
func (r *Epochs) Evaluate(metric eval.Metric,
	of func(graph.Split) (metric, loss, bound float64, err error)) (err error) {
	e := train.Event{Kind: train.StageEnd, Round: len(r.Measured.Curve()), Metric: string(metric),
		BestRound: r.At.BestRound}
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

// take makes s what this peer goes on from.
func (r *Epochs) take(s recovery.Snapshot) error {
	if len(s.Slab) != len(r.Params.Value) {
		return fmt.Errorf("a state must have %d parameters (got %d)", len(r.Params.Value), len(s.Slab))
	}
	if err := r.Opt.Restore(s.Steps, s.Moments); err != nil {
		return err
	}
	if err := r.Measured.Restore(s.Rounds, s.Stages, s.At, func(int) string { return allLayers }); err != nil {
		return err
	}
	copy(r.Params.Value, s.Slab)
	copy(r.Best, s.Best)
	if len(s.Labels) > 0 {
		r.Learn(labels.Read(s.Labels, r.Whole.Labels.Kind(), labels.Draw{})) // units do not depend on the seed
	}
	r.At = s.At
	return nil
}

// Finish ends a run. Every peer has saved the finished state when one of them passes the barrier: from there on nobody
// can come back and train another model. Until then the model is not final.
func (r *Epochs) Finish(ctx context.Context) error {
	r.At = train.Position{Stage: 1, Best: r.At.Best, BestLoss: r.At.BestLoss, BestRound: r.At.BestRound}
	if err := r.Save(); err != nil {
		return err
	}
	if err := r.group.Barrier(ctx); err != nil {
		return err
	}
	r.Measured.Sent, r.done, r.At.Round = r.Sent(), true, recovery.Final
	return r.Save()
}

// Resume takes up a final model that the checkpoints have, and reports whether there is one; session.Session asks for it.
func (r *Epochs) Resume() (done bool, err error) {
	p := r.participant()
	c, err := p.Newest()
	if c == nil || err != nil || !p.Shape.Final(c.At) {
		return false, err
	}
	r.before = c.Sent
	if err := r.take(c.Snapshot); err != nil {
		return false, err
	}
	r.Scores, _ = c.Dense("final/logits", r.Whole.Owned, r.Model.Spec.Classes)
	r.Measured.Sent, r.done = r.before, true
	return true, nil
}

// Sent is what this peer has sent in the whole run, interruptions included.
func (r *Epochs) Sent() comm.Counts { return r.before.Plus(r.group.Bytes()) }

// allLayers is what the only stage is called.
const allLayers = "all layers"

// Report records an event and passes it on.
func (r *Epochs) Report(e train.Event) {
	e.StageName, e.Positive = allLayers, r.positive
	r.Measured.Record(e)
	if r.OnEvent != nil {
		r.OnEvent(e)
	}
}

// Improve keeps the parameters if what they measured is the best so far.
func (r *Epochs) Improve(val, loss float64) {
	if r.At.Improve(r.metric, r.At.Round, val, loss) {
		copy(r.Best, r.Params.Value)
	}
}

// Mark returns a function that takes parameters and optimiser back to what they are now.
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
			panic("joint: an optimiser refuses its own state: " + err.Error())
		}
	}
}

// Digest is a checksum of the parameters, which travels with each sum of gradients; nil of a single peer.
func (r *Epochs) Digest() []byte {
	if r.Whole.Parts == 1 {
		return nil
	}
	return binary.LittleEndian.AppendUint32(nil, train.Digest(r.Params.Value))
}

// ErrDiverged is the loss of a model whose training has diverged.
var ErrDiverged = errors.New("the loss is not a finite number: training has diverged; lower the learning rate")

// Alike returns an error that names a peer whose digest, of those by rank, differs from this peer's.
func (r *Epochs) Alike(digests [][]byte) error {
	for q, d := range digests {
		if !bytes.Equal(d, digests[r.Whole.Rank]) {
			return &comm.PeerError{Rank: q, Op: fmt.Sprintf("epoch %d", r.At.Round), Err: fmt.Errorf("its parameters differ from those of this worker (%d): the processors round apart, or a memory is at fault", r.Whole.Rank)}
		}
	}
	return nil
}

// Done reports whether the model is final; session.Session asks for it. What a trainer's Run returned then concerns the
// other peers only: one of them may need what this one holds.
func (r *Epochs) Done() bool { return r.done }

// Logits returns those of own nodes by the final model, [Owned × C], computed with the rows of other peers; empty until
// the run has ended.
func (r *Epochs) Logits() mat.Dense { return r.Scores }

// Hidden returns the rows of own nodes that the last linear map of the final model reads, [Owned × H], where KeepHidden
// asked for them before the run: those before a head, else the last layer's input; empty where there is but one layer.
func (r *Epochs) Hidden() mat.Dense { return r.Rows }

// Result returns what was measured so far.
func (r *Epochs) Result() train.Result { return r.Measured }
