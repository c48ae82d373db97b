package retexo

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// participant is this peer as a member of the run.
func (t *Trainer) participant() recovery.Participant {
	p, spec := t.machine.who, t.config.Spec
	widest := spec.Encoder.Out
	for _, l := range spec.Layers {
		widest = max(widest, l.Out)
	}
	p.Checkpoints, p.Shape = t.Checkpoints, recovery.Shape{Stages: t.config.Stages(), Rounds: t.config.Rounds, Labels: labels.Len(spec.Kind(), spec.Classes)}
	for _, v := range t.model.Params() {
		p.Shape.Params += v.Value.Rows * v.Value.Cols
	}
	p.Shape.Heads = t.config.headsBefore(t.config.Stages())
	p.Shape.Slab = p.Shape.Params + (widest+1)*spec.Classes // with a head that the model does not keep
	return p
}

// state returns what this peer holds at the machine's position. Its slices are the trainer's own, but for parameters.
func (t *Trainer) state() recovery.Snapshot {
	s := recovery.Snapshot{At: t.machine.Position(), Labels: t.labels.Sums}
	s.Rounds, s.Stages = t.result.Until(s.At).Encode()
	s.Heads = t.heads[:t.config.headsBefore(s.At.Stage)]
	for _, p := range t.model.Params() {
		s.Params = append(s.Params, p.Value.Clone().Data...)
	}
	if s.At.Stage == t.config.Stages() || s.At.Round == 0 && s.At.BestRound < 0 {
		return s // the model is trained, or a stage begins, which it does alike everywhere
	}
	if st := t.stage; st != nil {
		s.Slab, s.Best = st.slab.Value, st.best
		s.Steps, s.Moments = st.opt.State()
	}
	return s
}

// take puts the parameters of s in the model's place, and keeps those of the stage for when it begins.
func (t *Trainer) take(s recovery.Snapshot) error {
	if want := t.config.headsBefore(s.At.Stage); len(s.Heads) != want {
		return fmt.Errorf("a state of stage %d must have %d values of heads (got %d)", s.At.Stage, want, len(s.Heads))
	}
	params := s.Params
	for _, p := range t.model.Params() {
		params = params[copy(p.Value.Data, params[:p.Value.Rows*p.Value.Cols]):]
	}
	t.pending = nil
	t.learnFrom(labels.Read(s.Labels, t.whole.Labels.Kind(), t.config.Draw()))
	if len(s.Slab) > 0 {
		t.pending = &s
	}
	t.heads = slices.Clone(s.Heads)
	return t.result.Restore(s.Rounds, s.Stages, s.At, train.StageName)
}
