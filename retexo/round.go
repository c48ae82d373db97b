package retexo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
)

// What a trainer does in the rounds of a stage.

// begin puts stage k together: its rows are in place.
func (t *Trainer) begin(k int) error {
	st := &stage{tape: nn.NewTape(), infer: nn.NewInference(), round: -1}
	if t.config.Balanced {
		st.weight = nn.ClassWeights(t.labels)
	}
	key := t.key.FoldString("init")
	if k == 0 {
		st.layer, st.head = t.model.Encoder.Layer, t.model.Encoder.Layer.Head
	} else {
		st.layer, st.head = t.model.Layers[k-1], t.model.Layers[k-1].Head
	}
	if st.head == nil && k < len(t.model.Layers) && t.config.Solver != "ridge" {
		// A stage whose hidden rows travel trains under a head of its own, which is thrown away with it.
		st.head = nn.NewHead(fmt.Sprintf("head%d", k), st.layer.Spec.Out, []int{t.config.Spec.Classes}, 0, key)
	}
	st.train = newBatch(t.training, st.layer, t.shard, graph.Train)
	st.val = newBatch(t.full, st.layer, t.shard, graph.Val)
	st.test = newBatch(t.full, st.layer, t.shard, graph.Test)
	t.stage = st
	if t.config.Solver == "ridge" {
		return nil
	}
	params := st.layer.Params()
	if st.head != nil {
		params = append(params, st.head.Params()...)
	}
	st.slab = nn.NewSlab(params)
	n := len(st.slab.Value)
	st.best = make([]float32, n)
	st.sum = st.slab.Room(2 + t.tally.Size() + 2*t.shard.Parts + 1)
	opt, err := optim.New(t.config.Optimizer, n)
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

func (t *Trainer) round(ctx context.Context, w Work, e *Event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	st := t.stage
	n := len(st.slab.Value)
	begun := time.Now()
	size := 2
	if w.Eval {
		size += t.tally.Size()
	}
	tail := st.sum[n:]
	clear(tail)
	// What only reads the parameters goes first, one after the other: they stay in the cache until the gradient displaces them.
	rest := tail[size : size+t.shard.Parts]
	rest[t.shard.Rank] = float32(digest(st.slab.Value))
	if w.Eval {
		st.val.tally(t.tally, tail[2:size], st.forward(st.val))
	}
	b, each := t.sample(w)
	loss, count := st.update(t.config, b, each, t.key.FoldString("dropout").Fold(uint64(w.Stage)).Fold(uint64(w.Round)), w.Round)
	tail[0], tail[1] = float32(loss), float32(count)
	all := st.sum[:n+size+t.shard.Parts]
	if t.busy != nil {
		t.busy(b.rows)
	}
	if t.adapts() {
		e.Times = st.sum[len(all) : len(all)+t.shard.Parts]
		e.Times[t.shard.Rank] = float32(time.Since(begun).Seconds())
		all = st.sum[:len(all)+t.shard.Parts]
	}
	if t.config.Survival.On() {
		all = all[:len(all)+1]
		all[len(all)-1] = t.knocks()
		var done context.CancelFunc
		ctx, done = t.roundLimit(ctx)
		defer done()
	}
	if err := t.reduce(ctx, all); err != nil {
		return err
	}
	e.Regroup = t.config.Survival.On() && all[len(all)-1] > 0
	if tail[1] == 0 {
		return errors.New("no peer that is left has a training node")
	}
	e.Loss, st.count = float64(tail[0])/float64(tail[1]), float64(tail[1])
	if w.Eval {
		var err error
		if e.Val, e.ValLoss, err = t.tally.Read(tail[2:size]); err != nil {
			return err
		}
	} else {
		e.Val = math.NaN()
	}
	e.Digests = digests(rest)
	if _, again := t.machine.differs(e.Digests); again {
		return nil // the round does not count
	}
	t.observe(w, e)
	t.paced(w)
	if !(math.Abs(e.Loss) <= math.MaxFloat64) {
		return fmt.Errorf("the loss is %g: training has diverged; lower the learning rate", e.Loss)
	}
	return nil
}

// enter begins the stage unless it has begun.
func (t *Trainer) enter(k int) error {
	t.restoreKept()
	if t.stage != nil {
		return nil
	}
	if err := t.begin(k); err != nil {
		return err
	}
	return t.goOn()
}

func digests(v []float32) []uint32 {
	d := make([]uint32, len(v))
	for i, x := range v {
		d[i] = uint32(x)
	}
	return d
}

func (t *Trainer) apply(w Work) {
	if w.Keep {
		t.stage.keep()
	}
	t.stage.apply(t.config, w.Round, t.stage.count)
}

// sync takes the parameters and, where all peers keep the same, the optimiser's moments of peer w.From.
func (t *Trainer) sync(ctx context.Context, w Work) error {
	held := t.held(w)
	if st := t.stage; st != nil && st.slab != nil {
		if err := st.undo(t.config); err != nil {
			return err
		}
	}
	before := digest(held[0])
	fetched := make([][]float32, len(held)) // all of it or nothing: a peer may be lost in between
	for i, x := range held {
		fetched[i] = slices.Clone(x)
		if err := t.group.Broadcast(ctx, comm.Control, w.From, fetched[i]); err != nil {
			return err
		}
	}
	for i, x := range held {
		copy(x, fetched[i])
	}
	if t.Observer.Sync != nil {
		t.Observer.Sync(w.Stage, w.Round, w.From, digest(held[0]) != before)
	}
	return nil
}

// held returns what all peers hold alike at this point of the run: components, solutions, or parameters and, where they
// all take the same steps, the optimiser's moments. The first of them is what digests are of.
func (t *Trainer) held(w Work) [][]float32 {
	switch {
	case w.Stage == 0 && t.model.Encoder.Proj != nil:
		return [][]float32{t.model.Encoder.Proj.W.Value.Data}
	case t.config.Solver == "ridge":
		return [][]float32{t.stage.solved}
	}
	all := [][]float32{t.stage.slab.Value}
	if t.config.LocalSteps == 1 {
		_, moments := t.stage.opt.State()
		all = append(all, moments...)
	}
	return all
}

func (t *Trainer) evaluate(ctx context.Context, w Work, e *Event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	size := t.tally.Size()
	v := make([]float32, size+t.shard.Parts)
	t.stage.val.tally(t.tally, v, t.stage.forward(t.stage.val))
	v[size+t.shard.Rank] = float32(digest(t.stage.slab.Value))
	if err := t.reduce(ctx, v); err != nil {
		return err
	}
	var err error
	e.Val, e.ValLoss, err = t.tally.Read(v[:size])
	e.Digests = digests(v[size:])
	return err
}

func (t *Trainer) observe(w Work, e *Event) {
	info := RoundInfo{Stage: w.Stage, Round: w.Round, Loss: e.Loss, Val: e.Val, ValLoss: e.ValLoss, Bytes: t.sent()}
	t.result.Rounds = append(t.result.Rounds, info)
	if t.Observer.RoundEnd != nil {
		t.Observer.RoundEnd(info)
	}
}

// adapts reports whether a slow peer is given less local work.
func (t *Trainer) adapts() bool { return t.machine.pace != nil }

// sample returns the training nodes that a round's steps are computed from, and how many each of them stands for. A share
// of them is the next so many in an order that is drawn once a stage: one round's are a sample without replacement of all,
// so the sum over them, times what each stands for, is that over all in the mean; and in 1/share rounds each had its turn.
func (t *Trainer) sample(w Work) (batch, float64) {
	st := t.stage
	n := st.train.rows
	take := max(int(math.Ceil(w.Share*float64(n))), leastSample)
	if w.Share == 0 || take >= n {
		return st.train, 1
	}
	if st.order == nil {
		key := t.key.FoldString("share").Fold(uint64(w.Stage))
		st.order = nodesOf(t.shard, graph.Train)
		slices.SortFunc(st.order, func(a, b int32) int {
			return cmp.Compare(key.Uint64(uint64(t.shard.Global[a])), key.Uint64(uint64(t.shard.Global[b])))
		})
	}
	rows := make([]int32, take)
	for i, first := 0, w.Round*take%n; i < take; i++ {
		rows[i] = st.order[(first+i)%n]
	}
	slices.Sort(rows)
	return batchOf(t.training, st.layer, t.shard, rows), float64(n) / float64(take)
}

// paced reports whose share was another in this round than in the one before.
func (t *Trainer) paced(w Work) {
	if !t.adapts() {
		return
	}
	if t.shares == nil {
		t.shares = newPace(t.shard.Parts).share
	}
	for q, now := range t.machine.pace.share {
		if now == t.shares[q] {
			continue
		}
		t.shares[q] = now
		info := ShareInfo{Stage: w.Stage, Round: w.Round, Peer: q, Share: now}
		t.result.Shares = append(t.result.Shares, info)
		if t.Observer.Share != nil {
			t.Observer.Share(info)
		}
	}
}
