package retexo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// state is what a peer that was lost fetches from another: everything of a run that all members hold alike. There are
// no rows in it.
type state struct {
	at      train.Position
	labels  []float64 // [C] training labels of all peers
	rounds  []float64 // what was measured, as in a checkpoint
	stages  []float64
	params  []float32   // the model's, in the order of nn.Model.Params
	slab    []float32   // of the stage at hand, with a head that the model does not keep; nil: before the first round
	best    []float32   // as long
	steps   int64       // of the optimiser
	moments [][]float32 // each as long as slab
}

// state returns what this peer holds at the machine's position. Its slices are the trainer's own, but for params.
func (t *Trainer) state() state {
	s := state{at: t.machine.Position(), labels: t.labels}
	s.rounds, s.stages = t.result.Until(s.at).Encode()
	for _, p := range t.model.Params() {
		s.params = append(s.params, p.Value.Clone().Data...)
	}
	if s.at.Round == 0 && s.at.BestRound < 0 {
		return s // a stage begins alike everywhere
	}
	if st := t.stage; st != nil && st.slab != nil {
		s.slab, s.best = st.slab.Value, st.best
		s.steps, s.moments = st.opt.State()
	} else if t.pending != nil {
		s.slab, s.best, s.steps, s.moments = t.pending.slab, t.pending.best, t.pending.steps, t.pending.moments
	}
	return s
}

// encode: u64 position (stage·2³² + round + 1) · f64 best · f64 its loss · u64 its round + 1 · u64 steps ·
// u32 C · C f64 labels · u32 n · n rounds of 5 f64 · u32 n · n stages of 6 f64 · u32 n · n f32 parameters · u32 n · n f32
// of the stage's slab · n of its best · u32 m · m times n f32 moments.
func (s state) encode() (b []byte) {
	u64 := func(x uint64) { b = binary.LittleEndian.AppendUint64(b, x) }
	u32 := func(n int) { b = binary.LittleEndian.AppendUint32(b, uint32(n)) }
	f32 := func(x []float32) { b = appendF32(b, x) }
	u64(s.at.Seq())
	u64(math.Float64bits(s.at.Best))
	u64(math.Float64bits(s.at.BestLoss))
	u64(uint64(s.at.BestRound + 1))
	u64(uint64(s.steps))
	rows := func(x []float64, columns, kept int) {
		u32(len(x) / columns)
		for ; len(x) > 0; x = x[columns:] {
			for _, v := range x[:kept] {
				u64(math.Float64bits(v))
			}
		}
	}
	rows(s.labels, 1, 1)
	rows(s.rounds, train.RoundColumns, train.RoundColumns-train.SentColumns)
	rows(s.stages, train.StageColumns, train.StageColumns-train.SentColumns)
	u32(len(s.params))
	f32(s.params)
	u32(len(s.slab))
	f32(s.slab)
	f32(s.best)
	u32(len(s.moments))
	for _, m := range s.moments {
		f32(m)
	}
	return b
}

func appendF32(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// digest is what greetings compare. What the best state measured is not in it: that depends on the members, some of whom may
// not have seen it, and each generation measures it anew.
func (s state) digest() [32]byte {
	s.at.Best, s.at.BestLoss = 0, 0
	return sha256.Sum256(s.encode())
}

// shared is s without what is this peer's own: with several local steps its optimiser has seen its own gradients only,
// which are nobody else's business.
func (s state) shared(localSteps int) state {
	if localSteps > 1 {
		s.steps, s.moments = 0, nil
	}
	return s
}

// maxMoments is how many vectors an optimiser keeps at most.
const maxMoments = 2

// stateLen bounds the bytes of a state: the message of a peer that says it has more is refused.
func (t *Trainer) stateLen() int {
	params, widest := 0, 0
	for _, p := range t.model.Params() {
		params += p.Value.Rows * p.Value.Cols
	}
	for _, l := range t.config.Spec.Layers {
		widest = max(widest, l.Out)
	}
	widest = max(widest, t.config.Spec.Encoder.Out)
	slab := params + (widest+1)*t.config.Spec.Classes
	stages := t.config.Stages()
	return 5*8 + 8*(t.config.Spec.Classes+stages*(t.config.Rounds*(train.RoundColumns-train.SentColumns)+train.StageColumns-train.SentColumns)) + 6*4 +
		4*(params+slab*(2+maxMoments))
}

// parseState reads a state of t's model. b is a peer's: nothing in it is believed.
func (t *Trainer) parseState(b []byte) (s state, err error) {
	r := reader{b: b}
	seq := r.u64()
	s.at = train.Position{Stage: int(seq >> 32), Round: int(uint32(seq)) - 1, Best: r.f64(), BestLoss: r.f64(), BestRound: int(min(r.u64(), 1<<30)) - 1}
	s.steps = int64(r.u64())
	s.labels = r.rows(1, 0)
	s.rounds = r.rows(train.RoundColumns-train.SentColumns, train.SentColumns)
	s.stages = r.rows(train.StageColumns-train.SentColumns, train.SentColumns)
	s.params = r.f32s(r.count(4))
	n := r.count(8)
	s.slab, s.best = r.f32s(n), r.f32s(n)
	for range r.count(4 * max(1, n)) {
		s.moments = append(s.moments, r.f32s(n))
	}
	switch params := len(t.state().params); {
	case r.short || len(r.b) > 0:
		return state{}, fmt.Errorf("a state of %d bytes, some too many or too few", len(b))
	case s.at.Stage < 0 || s.at.Stage > t.config.Stages() || s.at.Round < 0 || s.at.Round > t.config.Rounds || s.at.BestRound < -1 || s.at.BestRound > t.config.Rounds:
		return state{}, fmt.Errorf("a state of stage %d, round %d, best of round %d: there are %d stages of %d rounds", s.at.Stage, s.at.Round, s.at.BestRound, t.config.Stages(), t.config.Rounds)
	case len(s.params) != params:
		return state{}, fmt.Errorf("a state of %d parameters, want %d", len(s.params), params)
	case len(s.labels) != t.config.Spec.Classes:
		return state{}, fmt.Errorf("a state of %d classes, want %d", len(s.labels), t.config.Spec.Classes)
	case s.at.Best != s.at.Best || s.at.BestLoss != s.at.BestLoss:
		return state{}, fmt.Errorf("a state whose best metric is not a number")
	}
	for _, x := range append([][]float32{s.params, s.slab, s.best}, s.moments...) {
		for i, v := range x {
			if !finite(v) {
				return state{}, fmt.Errorf("a state with %g among its values, at %d of %d", v, i, len(x))
			}
		}
	}
	return s, nil
}

// reader takes numbers off b; short says that there were too few.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, 8)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u64() uint64  { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) f64() float64 { return math.Float64frombits(r.u64()) }

// count reads how many things of size bytes follow, and is 0 where so many cannot.
func (r *reader) count(size int) int {
	n := int64(binary.LittleEndian.Uint32(r.take(4)))
	if n*int64(size) > int64(len(r.b)) {
		r.short, r.b = true, nil
		return 0
	}
	return int(n)
}

// rows reads rows of so many columns, and puts so many zeros behind each.
func (r *reader) rows(columns, zeros int) (x []float64) {
	for range r.count(8 * columns) {
		for range columns {
			x = append(x, r.f64())
		}
		x = append(x, make([]float64, zeros)...)
	}
	return x
}

func (r *reader) f32s(n int) []float32 {
	if 4*n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.b[4*i:]))
	}
	r.b = r.b[4*n:]
	return x
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

// adopt makes s what this peer goes on from. Its optimiser and slab are put in place when the stage begins.
func (t *Trainer) adopt(s state) error {
	for _, p := range t.model.Params() {
		n := p.Value.Rows * p.Value.Cols
		copy(p.Value.Data, s.params[:n])
		s.params = s.params[n:]
	}
	if mine := t.state(); t.config.LocalSteps > 1 && mine.at.Stage == s.at.Stage && len(mine.slab) == len(s.slab) {
		s.steps, s.moments = mine.steps, mine.moments
	}
	t.stage, t.kept, t.pending = nil, nil, nil
	if len(s.slab) > 0 {
		t.pending = &s
	}
	t.labels = s.labels
	sent := t.sent() // of the rounds that this peer did not see it sent nothing
	old := t.result
	if err := t.result.Restore(s.rounds, s.stages, s.at, train.StageName); err != nil {
		return err
	}
	for i := range t.result.Stages {
		stage := &t.result.Stages[i]
		for k := range stage.Curve {
			stage.Curve[k].Sent = sentBy(old, stage.Curve[k], sent)
		}
		stage.Sent = sent
		if i < len(old.Stages) && old.Stages[i].Ended {
			stage.Sent = old.Stages[i].Sent
		}
	}
	return nil
}

// sentBy is what this peer had sent when round p was done, or sent where it did not take part in it.
func sentBy(r train.Result, p train.Point, sent comm.Counts) comm.Counts {
	for _, s := range r.Stages {
		for _, mine := range s.Curve {
			if mine.Stage == p.Stage && mine.Round == p.Round {
				return mine.Sent
			}
		}
	}
	return sent
}
