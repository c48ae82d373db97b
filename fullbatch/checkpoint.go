package fullbatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// participant is this worker as a member of the run.
func (t *Trainer) participant() recovery.Participant {
	given := t.config
	given.Metric = t.asked
	return recovery.Participant{Rank: t.shard.Rank, Size: t.shard.Parts, Config: given.Fingerprint(),
		Model: train.Fingerprint(t.config.Spec), Partition: t.shard.Fingerprint,
		Shape: recovery.Shape{Stages: 1, Rounds: t.config.Rounds, Slab: len(t.slab.Value), Labels: t.counted()}, Checkpoints: t.Checkpoints,
		Own: t.own != nil}
}

// state is what all workers hold alike: the parameters, the best ones, the optimiser and the position.
func (t *Trainer) state() recovery.Snapshot {
	s := recovery.Snapshot{At: t.at, Slab: t.slab.Value, Best: t.best, Agreed: t.agreed, Labels: t.labels}
	s.Rounds, s.Stages = t.result.Until(t.at).Encode()
	s.Steps, s.Moments = t.opt.State()
	return s
}

// save writes a checkpoint.
func (t *Trainer) save() error {
	if t.Checkpoints == nil {
		return nil
	}
	c := &recovery.Checkpoint{Snapshot: t.state(), Sent: t.sent(), F32: map[string][]float32{}, I64: map[string][]int64{}}
	t.own.save(c)
	if t.at.Stage > 0 {
		c.F32["final/logits"] = t.logits.Data
	}
	if err := t.participant().Save(c); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Saved, Round: t.at.Round, Peer: t.shard.Rank})
	return nil
}

// hello makes sure that all workers mean the same run, and takes up the furthest state that any of them has or, where rows of
// nodes are their owners' alone, the newest that all have.
func (t *Trainer) hello(ctx context.Context) error {
	p, g := t.participant(), t.line.group
	if p.Own {
		return t.helloOfOwners(ctx, p)
	}
	own, err := p.Newest()
	if err != nil {
		return err
	}
	var held *recovery.Snapshot
	if own != nil {
		t.before = own.Sent
		if err := t.take(own.Snapshot); err != nil {
			return err
		}
		held = &own.Snapshot
	}
	all, generation, err := p.Greet(ctx, g, t.generation, held)
	if err != nil {
		return err
	}
	t.generation, t.agreed = generation, generation
	d, err := p.Decide(all)
	if err != nil || d.Seq == 0 {
		return err
	}
	s, err := p.Fetch(ctx, g, all, d.From, t.state(), t.sent())
	if err != nil {
		return err
	}
	if s != nil {
		if err := t.take(*s); err != nil {
			return &comm.PeerError{Rank: d.From, Op: "state", Err: err}
		}
	}
	t.report(train.Event{Kind: train.Restored, Round: t.at.Round, Peer: t.shard.Rank})
	return nil
}

// helloOfOwners is hello where each worker can only go on from a checkpoint of its own.
func (t *Trainer) helloOfOwners(ctx context.Context, p recovery.Participant) error {
	all, generation, err := p.Greet(ctx, t.line.group, t.generation, nil)
	if err != nil {
		return err
	}
	t.generation, t.agreed = generation, generation
	d, err := p.Decide(all)
	switch {
	case err != nil:
		return err
	case d.Seq == 0 && t.at.Round > 0:
		return fmt.Errorf("all workers must have a checkpoint of the same epoch to go on from (this one is at epoch %d): the learned rows of nodes are held by their owners alone; start the run anew", t.at.Round)
	case d.Seq == 0:
		return nil
	}
	c, err := p.Restore(d.Seq)
	if err != nil {
		return err
	}
	t.before = c.Sent
	if err := errors.Join(t.take(c.Snapshot), t.own.restore(c)); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Restored, Round: t.at.Round, Peer: t.shard.Rank})
	return nil
}

// take makes s what this worker goes on from.
func (t *Trainer) take(s recovery.Snapshot) error {
	if len(s.Slab) != len(t.slab.Value) {
		return fmt.Errorf("a state must have %d parameters (got %d)", len(t.slab.Value), len(s.Slab))
	}
	if err := t.opt.Restore(s.Steps, s.Moments); err != nil {
		return err
	}
	if err := t.result.Restore(s.Rounds, s.Stages, s.At, func(int) string { return allLayers }); err != nil {
		return err
	}
	copy(t.slab.Value, s.Slab)
	copy(t.best, s.Best)
	if len(s.Labels) > 0 {
		t.learnUnits(labels.Read(s.Labels, t.whole.Labels.Kind(), labels.Draw{})) // units do not depend on the seed
	}
	t.at = s.At
	return nil
}

// counted is how many label counts a checkpoint has: those of numbers, whose units a final model needs.
func (t *Trainer) counted() int {
	l := t.whole.Labels
	if l.Kind() != target.Numbers || t.links != nil {
		return 0
	}
	return labels.Len(l.Kind(), l.Classes)
}

// learnUnits takes the units that the labels of all workers give the model.
func (t *Trainer) learnUnits(all labels.Counts) {
	if all.Units != nil {
		t.labels, t.model.Spec.Units = all.Sums, all.Units
	}
}

// Generation returns the highest generation that this worker had a part in; session.Session asks for it.

// Resume takes up a final model that the checkpoints have, and reports whether there is one; session.Session asks for it.
func (t *Trainer) Resume() (done bool, err error) {
	p := t.participant()
	c, err := p.Newest()
	if c == nil || err != nil || !p.Shape.Final(c.At) {
		return false, err
	}
	t.before = c.Sent
	if err := t.take(c.Snapshot); err != nil {
		return false, err
	}
	t.logits, _ = c.Dense("final/logits", t.shard.Owned, t.config.Spec.Classes)
	t.result.Sent, t.done = t.before, true
	return true, nil
}

// sent is what this worker has sent in the whole run, interruptions included.
func (t *Trainer) sent() comm.Counts { return t.before.Plus(t.line.group.Bytes()) }
