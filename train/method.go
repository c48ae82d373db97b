package train

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Method is one way to train a model over a partitioned graph. Its exported fields are its settings.
type Method interface {
	// Fingerprint names all that decides the result. Members whose fingerprints differ refuse each other.
	Fingerprint() [32]byte
	// Messages lists all that a member may send, in order, before the run. If labels or the first rounds of the run
	// decide what is sent there are several lists, and a member keeps to one of them.
	Messages(Members) ([]*Messages, error)
	// Train trains over own at a member's place in a run, from its checkpoints if there are any. It is called again to
	// resume. It returns the model once that is final, also with an error, which then concerns the other members only.
	// At a place without a group it takes up a final model that the checkpoints have; nil = there is none. An
	// *InputError is a fault of the settings or of own.
	Train(ctx context.Context, at *Place, own *shard.Shard) (*Trained, error)
}

// Place is what a member's session gives a method.
type Place struct {
	Group       *comm.Group       // carries rows (nil = the member has not met the others)
	Sums        comm.Reducer      // over the members and, if there are any, phones
	Checkpoints *checkpoint.Store // (nil = none are written)
	OnEvent     func(Event)       // called synchronously, must not block (nil = nobody listens)
	Ends        Ends              // (nil = the plan decides)

	KeepHidden bool                  // for Trained.Hidden
	Init       func(*nn.Model) error // changes the parameters that training starts from (nil = random ones)
	Spend      func(Privacy) error   // records what a run spends of the member's edges (nil = nothing does)
}

// Ends reports after a round whether it is the last of its stage, the same at all members.
type Ends func(context.Context) (bool, error)

// Trained is what a run gave.
type Trained struct {
	Result
	Model  *nn.Model
	Logits mat.Dense // [Owned × C] of own nodes (empty = this process has not computed them)
	Hidden mat.Dense // [Owned × H] the rows that they are made of, with Place.KeepHidden
	Config any       // settings that decided the result
	Metric eval.Metric
	Draw   Draw

	// by the final model (nil = nodes have labels, or this process has not ranked them)
	Links   map[graph.Split]LinkRanks
	Privacy *Privacy // what the run kept private (nil = nothing)
}

// LinkRanks are where the links of one split rank that were held out.
type LinkRanks struct {
	All       eval.Ranks
	Own       eval.Ranks   // of this peer's nodes
	Relations []eval.Ranks // of all peers, by relation (nil = there is one, or nobody asked)

	Common, AdamicAdar eval.Ranks // of this peer's nodes, by what it knows of neighbours; of test links
}

// Trainer is one peer's run of a method over one connection: it embeds RunState or Epochs.
type Trainer interface {
	Kept
	Run(ctx context.Context, g *comm.Group, r comm.Reducer) error
	Trained() (*nn.Model, error) // the final model
	State() *RunState
}

// RunTrainer runs t, of settings config, at a place: what Method.Train does with its trainer.
func RunTrainer(ctx context.Context, p *Place, t Trainer, config any) (_ *Trained, err error) {
	run := t.State()
	run.Checkpoints, run.OnEvent, run.Ends, run.KeepHidden = p.Checkpoints, p.OnEvent, p.Ends, p.KeepHidden
	metric := run.Metric // as it was asked for
	if p.Group == nil {
		_, err = run.Resume(t)
	} else {
		err = t.Run(ctx, p.Group, p.Sums)
	}
	if !run.Done() {
		return nil, err
	}
	model, fault := t.Trained()
	if fault != nil {
		return nil, fault
	}
	return &Trained{Result: run.Measured, Model: model, Logits: run.Scores, Hidden: run.Rows, Config: config,
		Metric: metric, Draw: run.Draw, Links: run.Links}, err
}

// Train trains a model of configuration c, whose parameters training changes from their initial values, by the trainer
// that begin makes.
func Train[C interface{ NewModel() (*nn.Model, error) }, T Trainer](ctx context.Context, at *Place, c C,
	own *shard.Shard, begin func(C, *shard.Shard, *nn.Model) (T, error)) (*Trained, error) {
	model, err := c.NewModel()
	if err == nil && at.Init != nil {
		err = at.Init(model)
	}
	if err != nil {
		return nil, Input(err)
	}
	t, err := begin(c, own, model)
	if err != nil {
		return nil, Input(err)
	}
	return RunTrainer(ctx, at, t, c)
}

// InputError is a fault of the plan or of the data, which only a change of them removes.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Err }

// Input marks err as a fault of what was given; nil stays nil.
func Input(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{err}
}
