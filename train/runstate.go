package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// RunState is what each method keeps of one peer's part in a run: the peer, the position, what was measured and sent so
// far, and its checkpoints. A trainer embeds it, or Epochs. Its Run joins the others, restores, prepares what the first
// round needs, trains from the present position, measures the model, and finishes. New and Run again, with the same
// checkpoints, resume a run at any point. A method adds the rest of its state to a checkpoint, as Kept.
type RunState struct {
	OnEvent func(Event) // called synchronously, must not block; may be nil
	// after a round that is the last by it no checkpoint is written before the stage's end
	Ends        Ends
	Checkpoints *checkpoint.Store // (nil = none are written)
	KeepHidden  bool              // for Rows

	Whole    *shard.Shard // as it was given
	Labels   LabelCounts  // of all peers
	Metric   eval.Metric  // selects states; the labels decide what eval.Auto is
	Draw     Draw         // which nodes validate if none are marked for it
	At       Position
	Measured Result
	Scores   mat.Dense // of own nodes; empty until they are computed by the best state
	// Rows of own nodes that the last linear map of the final model reads, [Owned × H], with KeepHidden: those before a
	// head, else the last layer's input; empty if there is but one layer.
	Rows mat.Dense
	// by the final model; nil if nodes have labels or this process has not ranked them
	Links map[graph.Split]LinkRanks

	Group      *comm.Group
	Reducer    comm.Reducer
	Generation uint64 // the last that this process took part in; it is in the name of every reduction

	who    Participant // without checkpoints
	stages []string    // their names
	agreed uint64      // the generation that agreed on what this peer has now
	before comm.Counts // sent before this start, up to the checkpoint that the run goes on from
	done   bool        // the model is final
}

// Kept is what a method adds to a checkpoint of its run. It takes the same from one after the run state has taken its
// position, labels and measures.
type Kept interface {
	Keep(c *Checkpoint) error
	TakeUp(c *Checkpoint) error
}

// NewRunState returns the state before the first round of a run with these stages, at the peer that owns s. who has the
// fingerprints of the configuration and the model, and the shape of a snapshot.
func NewRunState(who Participant, s *shard.Shard, metric eval.Metric, draw Draw, stages ...string) RunState {
	who.Rank, who.Size, who.Partition, who.Shape.Stages = s.Rank, s.Parts, s.Fingerprint, len(stages)
	return RunState{Whole: s, Metric: metric, At: Position{BestRound: -1}, who: who, Draw: draw, stages: stages}
}

func (r *RunState) participant() Participant {
	p := r.who
	p.Checkpoints = r.Checkpoints
	return p
}

// Join makes g the group in which this peer sends rows, and sums what adds numbers up over it.
func (r *RunState) Join(g *comm.Group, sums comm.Reducer) { r.Group, r.Reducer = g, sums }

// Restore makes sure that all peers mean the same run, and takes up the state that all continue from, if there is one.
func (r *RunState) Restore(ctx context.Context, of Kept) error {
	p := r.participant()
	var held *Snapshot
	if !p.Own {
		own, err := p.newest()
		if err != nil {
			return err
		}
		if own != nil {
			if err := r.takeUp(own, of); err != nil {
				return err
			}
			held = &own.Snapshot
		}
	}
	all, err := r.Greet(ctx, held)
	if err != nil {
		return err
	}
	r.agreed = r.Generation
	d, err := p.Decide(all)
	switch {
	case err != nil:
		return err
	case p.Own && d.Seq == 0 && r.At.Round > 0:
		return fmt.Errorf("all peers must have a checkpoint of the same round to go on from "+
			"(this one is at round %d): each needs what only its own has; start the run anew", r.At.Round)
	case d.Seq == 0:
		return nil
	case p.Own:
		return r.RestoreFrom(d.Seq, of)
	}
	mine, err := r.checkpoint(of)
	if err != nil {
		return err
	}
	s, err := p.fetch(ctx, r.Group, all, d.From, mine.Snapshot, mine.Sent)
	if err != nil {
		return err
	}
	if s != nil {
		if err := r.takeUp(&Checkpoint{Snapshot: *s, Sent: r.before}, of); err != nil {
			return &comm.PeerError{Rank: d.From, Op: "state", Err: err}
		}
	}
	r.reportHere(Restored)
	return nil
}

// Greet exchanges greetings and begins a generation. held is the state that this peer would continue from, as for
// Participant.greet.
func (r *RunState) Greet(ctx context.Context, held *Snapshot) ([]Greeting, error) {
	all, generation, err := r.participant().greet(ctx, r.Group, r.Generation, held)
	if err == nil {
		r.Generation = generation
	}
	return all, err
}

// RestoreFrom takes up checkpoint seq.
func (r *RunState) RestoreFrom(seq uint64, of Kept) error {
	c, err := r.participant().restore(seq)
	if err != nil {
		return err
	}
	if err := r.takeUp(c, of); err != nil {
		return err
	}
	r.reportHere(Restored)
	return nil
}

// Resume takes up a final model that the checkpoints have, and reports whether there is one.
func (r *RunState) Resume(of Kept) (done bool, err error) {
	p := r.participant()
	c, err := p.newest()
	if c == nil || err != nil || !p.Shape.Final(c.At) {
		return false, err
	}
	if err := r.takeUp(c, of); err != nil {
		return false, err
	}
	r.Measured.Sent, r.done = r.before, true
	return true, nil
}

func (r *RunState) takeUp(c *Checkpoint, of Kept) error {
	if err := r.Measured.Restore(c.Rounds, c.Stages, c.At, r.stage); err != nil {
		return err
	}
	if len(c.Labels) > 0 {
		r.Labels = ReadLabels(c.Labels, r.Whole.Labels.Kind(), r.Draw)
	}
	r.At, r.before = c.At, c.Sent
	return of.TakeUp(c)
}

// Save writes a checkpoint.
func (r *RunState) Save(of Kept) error {
	if r.Checkpoints == nil {
		return nil
	}
	c, err := r.checkpoint(of)
	if err == nil {
		err = r.participant().saveCheckpoint(c)
	}
	if err == nil {
		r.reportHere(Saved)
	}
	return err
}

// checkpoint returns this peer's current state. It shares the memory of r and of the method.
func (r *RunState) checkpoint(of Kept) (*Checkpoint, error) {
	c := &Checkpoint{Sent: r.Sent(), F32: map[string][]float32{}, I64: map[string][]int64{}}
	c.At, c.Agreed = r.At, r.agreed
	c.Rounds, c.Stages = r.Measured.Until(r.At).Encode()
	if r.who.Shape.Labels > 0 {
		c.Labels = r.Labels.Sums
	}
	return c, of.Keep(c)
}

// Finish ends a run. Every peer has saved the finished state when one of them passes the barrier: from there on nobody
// can come back and train another model. Until then the model is not final.
func (r *RunState) Finish(ctx context.Context, of Kept) error {
	if r.At.Stage < len(r.stages) { // else it was finished before
		r.At = Position{Stage: len(r.stages), Best: r.At.Best, BestLoss: r.At.BestLoss, BestRound: r.At.BestRound}
	}
	if err := r.Save(of); err != nil {
		return err
	}
	if err := r.Group.Barrier(ctx); err != nil {
		return err
	}
	r.Measured.Sent, r.done, r.At.Round = r.Sent(), true, Final
	return r.Save(of)
}

// CountLabels counts the training labels of all peers, and takes the counts.
func (r *RunState) CountLabels(ctx context.Context, id comm.ReduceID) error {
	all, err := CountLabels(ctx, r.Reducer, id, r.Whole, r.Draw)
	if err != nil {
		return err
	}
	return r.Learn(all)
}

// Learn takes the labels of all peers, and reports what follows from them.
func (r *RunState) Learn(all LabelCounts) error {
	if all.Labelled == 0 {
		return errors.New("no peer has a training node with a label: nothing can be learned")
	}
	names := r.Whole.Labels.Names
	if err := all.Fault(names); err != nil {
		return err
	}
	if text := all.Warning(); text != "" {
		r.Log(Warning, "%s", text)
	}
	metric, text := all.Metric(r.Metric, names)
	if text != "" {
		r.Log(Note, "%s", text)
	}
	r.Labels, r.Metric = all, metric
	return nil
}

// Compare returns the metric and the loss over the rows of scores of all peers, which have these labels. A metric of
// ranks has that many bins; it is off by at most bound.
func (r *RunState) Compare(ctx context.Context, id comm.ReduceID, scores mat.Dense, l graph.Labels,
	bins int) (metric, loss, bound float64, err error) {
	sums := eval.NewAccumulator(r.Metric, l, bins)
	x := make([]int64, sums.Size())
	sum, count := nn.Loss(mat.Dense{}, scores, l, nil)
	sums.Write(x, sum, count, scores, l)
	c := &comm.Contribution{ID: id, Counts: x, CountBits: comm.CountBits(r.Whole.Nodes), Wide: sums.Wide}
	if _, err := r.Reducer.Reduce(ctx, c); err != nil {
		return 0, 0, 0, err
	}
	metric, loss, _, err = sums.Read(x)
	return metric, loss, sums.Bound(x), err
}

// ID names a reduction of the round at hand. With generation, round and step no two are the same.
func (r *RunState) ID(kind string, step int) comm.ReduceID {
	return comm.ReduceID{Generation: r.Generation, Round: r.At.Round, Step: step, Kind: kind}
}

// Sent is what this peer has sent in the whole run, interruptions included.
func (r *RunState) Sent() comm.Counts { return r.before.Plus(r.Group.Bytes()) }

// stage returns the name of stage k; a finished run is behind the last one, which has none.
func (r *RunState) stage(k int) string {
	if k < 0 || k >= len(r.stages) {
		return ""
	}
	return r.stages[k]
}

// Report records an event and passes it on.
func (r *RunState) Report(e Event) {
	e.StageName, e.Positive = r.stage(e.Stage), r.Labels.PositiveName(r.Whole.Labels.Names)
	r.Measured.Record(e)
	if r.OnEvent != nil {
		r.OnEvent(e)
	}
}

// Ended reports whether the round that is done is the last of its stage. All members ask, once a round.
func (r *RunState) Ended(ctx context.Context) (bool, error) {
	if r.Ends == nil {
		return false, nil
	}
	return r.Ends(ctx)
}

// reportHere reports a checkpoint of the position at hand.
func (r *RunState) reportHere(kind EventKind) {
	e := Event{Kind: kind, Round: r.At.Round, Peer: r.Whole.Rank}
	if len(r.stages) > 1 {
		e.Stage = r.At.Stage
	}
	r.Report(e)
}

// Log reports a text.
func (r *RunState) Log(kind EventKind, format string, args ...any) {
	r.Report(Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// Done reports whether the model is final. An error that a trainer's Run returned then concerns only other peers: one
// of them may need this peer's state.
func (r *RunState) Done() bool { return r.done }

// Logits returns the logits of own nodes by the final model, [Owned × C], computed with the rows of other peers; empty
// until the run has ended, and of a model that another peer trained.
func (r *RunState) Logits() mat.Dense { return r.Scores }

// State returns r, of a trainer that embeds it.
func (r *RunState) State() *RunState { return r }

// Result returns what was measured so far.
func (r *RunState) Result() Result { return r.Measured }
