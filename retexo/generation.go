package retexo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/recovery"
	"github.com/heddle-gnn/heddle/train/session"
)

// generations is what a trainer keeps from one generation of members to the next.
type generations struct {
	agreed        uint64              // the one in which what this peer holds was agreed on
	loaded        bool                // checkpoints have been looked at
	done          bool                // the model is final
	greeted       []recovery.Greeting // of this generation
	pending       *recovery.Snapshot  // parameters and optimiser of a stage whose rows are not in place; nil: they are in stage, or new
	own           place               // whose rows of own nodes are in place
	rows          place               // the same, with what was exchanged
	dropped       []int               // lost peers whose edges the stage at hand goes without
	earlier       graph.Features
	earlierDegree []float32 // beside it, where degrees cross
	filled        []int     // lost peers for whose rows earlier ones stand
	kept          *holding  // rows that are in place already, while those of other peers are computed once more
}

// place names the rows of a stage: they follow from the parameters of the stages before it.
type place struct {
	stage  int
	params [32]byte
}

// holding is the rows of a stage, with all that is computed from them.
type holding struct {
	full, base, training *view
	stage                *stage
	own, rows            place
	dropped, filled      []int
}

// placeOf names the rows of stage k under the parameters at hand.
func (t *Trainer) placeOf(k int) place {
	h := sha256.New()
	for i := range min(k, len(t.model.Layers)+1) {
		params := t.model.Encoder.Params()
		if i > 0 {
			l := t.model.Layers[i-1]
			params = l.Params()
			if t.config.Spec.LayerOutput == nn.Logits && l.Head != nil {
				params = append(params, l.Head.Params()...)
			}
		}
		for _, p := range params {
			binary.Write(h, binary.LittleEndian, p.Value.Clone().Data)
		}
	}
	return place{stage: k, params: [32]byte(h.Sum(nil))}
}

// Generation returns the highest generation that this peer had a part in; session.Member asks for it.
func (t *Trainer) Generation() (uint64, error) { return t.participant().Generation(t.generation) }

// Resume takes up a final model that the checkpoints have, and reports whether there is one; session.Member asks for it.
func (t *Trainer) Resume() (done bool, err error) {
	c, err := t.participant().Newest()
	if c == nil || err != nil || !t.participant().Shape.Final(c.At) {
		return false, err
	}
	if err := t.takeUp(c); err != nil {
		return false, err
	}
	t.result.Sent = t.before
	t.end()
	return t.done, nil
}

// Done reports whether the model is final; session.Member asks for it. What Run returned then concerns the other peers
// only: the last of them may need what this one holds.
func (t *Trainer) Done() bool { return t.done }

// regroup begins a generation.
func (t *Trainer) regroup(g *comm.Group) error {
	if g.Generation() == 0 || len(g.Members()) < t.config.Survival.MinPeers {
		return fmt.Errorf("retexo: a group of %d members that have agreed on no generation, want at least %d that have", len(g.Members()), t.config.Survival.MinPeers)
	}
	if !t.loaded {
		c, err := t.participant().Newest()
		if err != nil {
			return err
		}
		if c != nil {
			if err := t.takeUp(c); err != nil {
				return err
			}
			t.machine.at, t.machine.held = c.At, true
		}
		t.loaded = true
	}
	if t.group != nil {
		t.before = t.sent()
	}
	t.generation = g.Generation()
	if t.machine.held {
		t.result = t.result.Until(t.machine.at)
	} else { // what was not agreed on by then begins anew
		t.result.Stages, t.stage, t.pending = nil, nil, nil
		t.full = wholeView(t.shard, t.input)
		t.base, t.training, t.own, t.rows = t.full, t.full, place{}, place{}
	}
	t.machine.again()
	return nil
}

// halt leaves this peer with what it held when work w began, which has failed.
func (t *Trainer) halt(w work) {
	t.restoreKept()
	switch st := t.stage; {
	case w.Kind != doFreeze || st == nil:
	case w.Keep: // not all have seen that; they are at the same place and must hold the same
		t.machine.at = t.machine.unjudged
	case st.slab != nil:
		st.swap()
	}
}

// begun notes that the members of this generation go on, all from the same position.
func (t *Trainer) begun(at train.Position) {
	t.agreed = t.group.Generation()
	t.report(train.Event{Kind: train.Generation, Stage: at.Stage, Round: at.Round, Number: t.agreed, Members: t.group.Members()})
}

// fetch takes up the state of peer w.From where this peer holds another.
func (t *Trainer) fetch(ctx context.Context, w work) (*train.Position, error) {
	s, err := t.participant().Fetch(ctx, t.group, t.greeted, w.From, t.shared(), t.sent())
	if err != nil {
		return nil, err
	}
	at := t.machine.at
	if s != nil {
		if err := t.adopt(*s); err != nil {
			return nil, &comm.PeerError{Rank: w.From, Op: "state", Err: err}
		}
		at = s.At
	}
	t.machine.at = at // what halt and save go by, from here on
	t.begun(at)
	return &at, nil
}

// hold finds what rows of stage w.Stage this peer has, computing what it can by itself, and what all have at least.
func (t *Trainer) hold(ctx context.Context, w work) (have int, err error) {
	k := w.Stage
	want := t.placeOf(k)
	switch {
	case k == 0 || t.rows == want:
		have = allRows
	case t.own == want:
		have = ownRows
	case k > 1 && t.rows == t.placeOf(k-1): // the others were about to exchange what this peer can compute as well
		t.layerOutput(t.bare(k-1), k-1)
		have = ownRows
	}
	if have == allRows && t.better() {
		have = ownRows
	}
	out := make([][]byte, t.shard.Parts)
	for q := range out {
		out[q] = []byte{byte(have)}
	}
	in, err := t.group.SendRecv(ctx, comm.Control, "what rows are in place", out, 1)
	if err != nil {
		return 0, err
	}
	least := have
	for _, q := range t.group.Members() {
		if q == t.shard.Rank {
			continue
		}
		if len(in[q]) != 1 || in[q][0] > allRows {
			return 0, &comm.PeerError{Rank: q, Op: "what rows are in place", Err: fmt.Errorf("%v, want a number up to %d", in[q], allRows)}
		}
		least = min(least, int(in[q][0]))
	}
	if least == noRows && have == allRows {
		t.kept = &holding{full: t.full, base: t.base, training: t.training, stage: t.stage, own: t.own, rows: t.rows, dropped: t.dropped, filled: t.filled}
		t.stage = nil
	}
	return least, nil
}

// better reports whether an exchange now would have the rows of more peers than the last one.
func (t *Trainer) better() bool {
	without := slices.Concat(t.dropped, t.filled)
	return slices.ContainsFunc(without, t.group.Has) && !slices.ContainsFunc(t.lost(), func(q int) bool {
		return t.shard.HaloPtr[q] < t.shard.HaloPtr[q+1] && !slices.Contains(without, q)
	})
}

// inPlace notes that the rows of w's stage are, where w was the last that it took.
func (t *Trainer) inPlace(w work) {
	if l := t.model.Layers[w.Stage-1]; w.Kind == doExchange && !l.Frozen() || w.Kind == doAggregate && w.Hop+1 >= l.Spec.Hops {
		t.rows = t.placeOf(w.Stage)
	}
}

// bare is stage k for computing rows: no batches, no optimiser.
func (t *Trainer) bare(k int) *stage {
	if k == 0 {
		if t.config.Spec.Encoder.Kind != "mlp" {
			return nil
		}
		return &stage{layer: t.model.Encoder.Layer, head: t.model.Encoder.Layer.Head}
	}
	return &stage{layer: t.model.Layers[k-1], head: t.model.Layers[k-1].Head}
}

// outputAgain computes rows of stage w.Stage+1 once more; the first time it begins at the input.
func (t *Trainer) outputAgain(w work) error {
	if w.Stage == 0 {
		t.full = wholeView(t.shard, t.input)
		t.base, t.training, t.dropped, t.filled = t.full, t.full, nil, nil
	}
	t.layerOutput(t.bare(w.Stage), w.Stage)
	return nil
}

// restoreKept puts back rows that this peer had all along.
func (t *Trainer) restoreKept() {
	if k := t.kept; k != nil {
		t.full, t.base, t.training, t.stage, t.own, t.rows, t.dropped, t.filled = k.full, k.base, k.training, k.stage, k.own, k.rows, k.dropped, k.filled
		t.kept = nil
	}
}

// goOn puts the parameters and the optimiser that wait for the stage in place.
func (t *Trainer) goOn() error {
	s, st := t.pending, t.stage
	if t.pending = nil; s == nil || st.slab == nil {
		return nil
	}
	if len(s.Slab) != len(st.slab.Value) {
		return fmt.Errorf("retexo: stage %d must have %d parameters (got %d)", s.At.Stage, len(st.slab.Value), len(s.Slab))
	}
	copy(st.slab.Value, s.Slab)
	copy(st.best, s.Best)
	if s.Moments == nil {
		return nil // the optimiser begins anew
	}
	return st.opt.Restore(s.Steps, s.Moments)
}

// revalidate validates the best state of the stage over the validation nodes of this generation's members.
func (t *Trainer) revalidate(ctx context.Context, w work, e *event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	v := make([]int64, t.metric.Size())
	t.stage.swap()
	t.stage.val.measure(t.metric, v, t.stage.forward(t.stage.val))
	t.stage.swap()
	err := t.reduce(ctx, &comm.Contribution{ID: t.id(ofRevalidation, w), Counts: v, CountBits: t.countBits, Wide: t.metric.Wide})
	if err != nil {
		return err
	}
	e.Val, e.ValLoss, _, err = t.read(t.metric, v)
	return err
}

// asksToRegroup reports whether this peer asks for another generation, since a failed peer asks to rejoin.
func (t *Trainer) asksToRegroup() bool {
	return t.RejoinAsked != nil && len(t.lost()) > 0 && t.RejoinAsked()
}

// roundLimit bounds the wait for a round's sum. The first member, who adds up what is short, knows who is late: the
// others leave it half of the limit to say so.
func (t *Trainer) roundLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := t.config.Survival.RoundLimit
	if limit == 0 {
		return ctx, func() {}
	}
	if t.shard.Rank != t.group.Members()[0] {
		limit += limit / 2
	}
	return context.WithTimeoutCause(ctx, limit, session.ErrSlow)
}

// lost returns the ranks that are no members of this generation.
func (t *Trainer) lost() (ranks []int) {
	for q := range t.shard.Parts {
		if !t.group.Has(q) {
			ranks = append(ranks, q)
		}
	}
	return ranks
}

// unplace makes ready for an exchange: rows are about to be replaced, and those of a lost peer may have to be waited for.
func (t *Trainer) unplace(w work, what string) error {
	lost := t.lost()
	if len(lost) > 0 && (t.config.Survival.FailedRows == "" || t.config.Survival.FailedRows == "wait") {
		return &comm.PeerError{Rank: lost[0], Op: what, Err: session.ErrRowsNeeded}
	}
	if t.rows = (place{}); w.Hop > 0 {
		return nil
	}
	if t.stage != nil {
		if s := t.state(); s.Slab != nil {
			t.pending = &s
		}
		t.stage = nil
	}
	t.full.GraphView, t.full.summed, t.dropped, t.filled = train.WholeGraph(t.shard), nil, nil, nil
	return nil
}

// standIn does what the plan says about the rows of lost peers, which an exchange has left zero.
func (t *Trainer) standIn(ctx context.Context, w work, l *nn.Layer) error {
	defer func() {
		if t.config.Survival.FailedRows == "previous" {
			t.earlier, t.earlierDegree = t.full.src, t.full.Degree
		}
	}()
	if w.Hop > 0 {
		t.fill(t.full)
		return nil
	}
	for _, q := range t.lost() {
		e := train.Event{Kind: train.LostRows, Stage: w.Stage, Hop: w.Hop, Peer: q, Rows: t.shard.HaloPtr[q+1] - t.shard.HaloPtr[q], Action: "drop"}
		if e.Rows == 0 {
			continue
		}
		if t.config.Survival.FailedRows == "previous" && t.earlier.Rows() == t.full.src.Rows() && t.earlier.Cols() == t.full.src.Cols() {
			e.Action = "previous"
			t.filled = append(t.filled, q)
		} else {
			t.dropped = append(t.dropped, q)
		}
		t.report(e)
	}
	t.fill(t.full)
	if len(t.lost()) == 0 || t.config.Survival.FailedRows == "wait" {
		return nil
	}
	// Degrees are exchanged even by a peer that drops no edge: its neighbours may.
	adj := t.without(t.dropped)
	before := *t.full
	t.full.GraphView = train.NewGraphView(adj, t.full.Typed, adj.Degrees())
	if err := t.full.adopt(ctx, t.sender, l, &before); err != nil {
		return err
	}
	t.fill(t.full)
	return nil
}

// fill puts the rows of the exchange before in the place of those of lost peers, where that was decided on, and their
// degrees where these cross.
func (t *Trainer) fill(v *view) {
	for _, q := range t.filled {
		lo, hi := t.shard.HaloPtr[q], t.shard.HaloPtr[q+1]
		v.src = recovery.ReplaceRows(v.src, t.earlier, lo, hi)
		if hi <= min(len(v.Degree), len(t.earlierDegree)) {
			copy(v.Degree[lo:hi], t.earlierDegree[lo:hi])
		}
	}
}

// without is the graph without the edges from nodes of the given peers.
func (t *Trainer) without(peers []int) *graph.CSR {
	to := every(len(t.shard.Global))
	for _, q := range peers {
		for j := t.shard.HaloPtr[q]; j < t.shard.HaloPtr[q+1]; j++ {
			to[j] = -1
		}
	}
	return t.shard.Adj.Relabel(every(t.shard.Owned), to, len(to))
}

// every returns 0, 1, …, n−1.
func every(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
