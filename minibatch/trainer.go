package minibatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer trains one model at one peer.
type Trainer struct {
	*train.Epochs

	config Config
	key    rng.Key
	shard  *shard.Shard   // with the split for this run
	input  graph.Features // features of own nodes, as the first layer reads them
	tape   *tape.Tape
	weight []float32 // weight of each class, or nil
	rates  optim.Schedule
	groups *groups
	batch  int            // labels of a step
	steps  int            // steps of an epoch
	round  int            // steps of a round
	links  *links.Learner // (nil = nodes have labels)
	pace   *pace          // (nil = the size is final)
	size   int            // batches of a group
	from   []int32        // [edges of a batch's first block] row of each edge's source
}

// Train implements train.Method.
func (c Config) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	return train.Train(ctx, at, c, own, New)
}

// New returns the trainer of the peer that owns s. m is the model of c.Spec, made with the same key at every peer;
// training changes it.
func New(c Config, s *shard.Shard, m *nn.Model) (*Trainer, error) {
	if err := errors.Join(c.Validate(), c.Fits(s)); err != nil {
		return nil, err
	}
	run, err := train.NewEpochs(c.Config, c.Fingerprint(), s, m, m.Params(), nil)
	if err != nil {
		return nil, err
	}
	t := &Trainer{Epochs: run, config: c, key: rng.New(c.Seed), shard: s, input: m.Encoder.Input(s.X), tape: tape.New()}
	t.tape.BF16 = c.Rows.Values == "bf16"
	if c.Links != nil {
		if t.links, err = links.New(*c.Links, c.Seed, s); err != nil {
			return nil, err
		}
		t.shard = t.links.Messages()
	}
	return t, nil
}

// What the reductions of a run sum. With generation, epoch and step (comm.ReduceID) no two IDs are the same.
const (
	ofLabels     = "label counts"
	ofGradient   = "gradient" // the step is the training step
	ofLinks      = "counts of links"
	ofValidation = "validation"
	ofResult     = "result" // the step is the split
)

// Run trains until the epochs or the patience are used up, ctx ends or a peer is lost. In the last two cases it leaves
// a checkpoint from the beginning of the epoch and returns an error. Samples and rows are sent over g, sums through r.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	if err := t.Begin(ctx, g, r); err != nil {
		return err
	}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if t.At.Stage == 0 {
		if err := t.rounds(ctx); err != nil {
			return err
		}
		copy(t.Params.Value, t.Best)
		f := t.groups.features
		to := &t.Measured.Fetched
		to.Group, to.Rows, to.Cached = t.size, f.wanted.Load(), f.cached.Load()
	}
	if err := t.evaluate(ctx); err != nil {
		return err
	}
	return t.End(ctx)
}

// prepare makes what a run needs before its first epoch. Every peer takes part in each step.
func (t *Trainer) prepare(ctx context.Context) error {
	seeds := int64(0)
	var err error
	if t.links != nil {
		seeds, err = t.links.Begin(ctx, t.Group, train.NewSender(t.Group, t.shard, t.config.Rows), t.Reducer,
			t.ID(ofLinks, 0))
	} else {
		err = t.countLabels(ctx)
	}
	if err != nil {
		return err
	}
	edges, err := t.sampledEdges(ctx)
	if err != nil {
		return err
	}
	var dir *links.Directory
	var training []int32
	if t.links != nil {
		dir = t.links.Owners()
	} else if dir, training, err = t.learnOwners(ctx); err != nil {
		return err
	} else {
		seeds = int64(len(training))
	}
	t.batch = int(min(int64(t.config.BatchSize), seeds))
	t.steps = int((seeds + int64(t.batch) - 1) / int64(t.batch))
	t.round = cmp.Or(t.config.RoundSteps, t.steps)
	t.rates = t.config.Schedule
	t.rates.Total = t.config.Rounds * t.round
	if err := t.rates.Validate(); err != nil {
		return fmt.Errorf("%d rounds of %d steps: %w", t.config.Rounds, t.round, err)
	}
	beside := t.Group
	if t.Group.Size() > 1 {
		beside = t.Group.Dup()
	}
	if err := t.measure(ctx, beside); err != nil {
		return err
	}
	nodes := int(t.shard.Nodes)
	relays := &relay{group: beside, shard: t.shard, dir: dir, hops: len(t.config.Sample.Fanouts), edges: edges,
		sampler: sample.New(sample.Config(t.config.Sample), edges), builder: sample.NewBuilder(nodes, edges),
		foreign: t.links != nil,
		means:   slices.Contains([]graph.Norm{graph.GCN, graph.Mean}, t.Model.Layers[0].Edges)}
	t.groups = &groups{
		key: t.key, train: training, batch: t.batch, steps: t.steps, round: t.round, total: t.config.Rounds * t.round,
		relay: relays, links: t.links,
		features: &features{group: beside, sender: train.NewSender(beside, t.shard, t.config.Rows), shard: t.shard,
			dir: dir, input: t.input, piece: pieceLen, place: make([]int32, nodes)},
	}
	if t.config.Cache > 0 && t.shard.Parts > 1 {
		t.groups.features.cache = newCache(t.config.Cache, t.shard, t.config.Rows.Values == "bf16")
	}
	return nil
}

// countLabels counts the training labels of all peers by class.
func (t *Trainer) countLabels(ctx context.Context) error {
	if err := t.CountLabels(ctx, ofLabels); err != nil {
		return err
	}
	t.shard = t.Labels.HoldOut(t.Whole)
	t.weight = nn.ClassWeights(t.Labels.Classes, t.config.Balanced, t.config.ClassWeights)
	return nil
}

// measure sets the size of groups. If the size depends on the latency, it measures that and sets the size of the first
// groups.
func (t *Trainer) measure(ctx context.Context, beside *comm.Group) error {
	t.size, t.pace = t.config.Group, nil
	if t.size > 0 {
		return nil
	}
	if t.size = 1; t.shard.Parts == 1 { // a group has no relay
		return nil
	}
	t.size, t.pace = firstGroup, &pace{relays: t.relays(), memory: t.config.Memory}
	return t.pace.measure(ctx, beside)
}

// relays returns how many messages a group takes, one after the other. For link prediction, seeds may be other peers'
// nodes, which takes one more.
func (t *Trainer) relays() int {
	n := len(t.config.Sample.Fanouts)
	if t.links != nil {
		n++
	}
	return n
}

// settle chooses the size of groups, if it is not final, from the time that the first one took.
func (t *Trainer) settle(ctx context.Context, first *group, took time.Duration) (err error) {
	if t.pace == nil {
		return nil
	}
	rows := first.inputs.rows
	least, most := t.pace.wants(took, len(first.batches), int64(rows.Rows())*int64(rowBytes(rows)))
	text := fmt.Sprintf("a message and its answer take %v, a step %v", t.pace.latency.Round(time.Microsecond),
		(took / time.Duration(len(first.batches))).Round(time.Microsecond))
	t.pace = nil
	if t.size, err = agree(ctx, t.Group, least, most); err != nil {
		return err
	}
	t.Report(train.Event{Kind: train.Note, Round: t.At.Round,
		Text: fmt.Sprintf("%s: features are fetched for %d batches at once", text, t.size)})
	return nil
}

// learnOwners returns the owner of every node, and the IDs of the labelled training nodes of all peers, ascending.
func (t *Trainer) learnOwners(ctx context.Context) (dir *links.Directory, training []int32, err error) {
	trains := make([]uint8, t.shard.Owned)
	for _, i := range t.shard.NodesIn(graph.Train) {
		if t.shard.Labels.Has(int(i)) {
			trains[i] = 1
		}
	}
	if dir, err = links.LearnOwners(ctx, t.Group, t.shard, trains, 2); err != nil {
		return nil, nil, err
	}
	for id, is := range dir.Mark {
		if is == 1 {
			training = append(training, int32(id))
		}
	}
	return dir, training, nil
}

// sampledEdges returns the edges that training samples from: the edges of the layers' norm, weighted by the degrees of
// the whole graph.
func (t *Trainer) sampledEdges(ctx context.Context) (e *sample.InEdges, err error) {
	sender, layer := train.NewSender(t.Group, t.shard, t.config.Rows), t.Model.Layers[0]
	view := train.WholeGraph(t.shard)
	if t.config.Inductive {
		if view, err = sender.InductiveView(ctx); err != nil {
			return nil, err
		}
	}
	if layer.Edges == graph.GCN && t.shard.Parts > 1 {
		if view, err = sender.WithDegrees(ctx, view); err != nil {
			return nil, err
		}
	}
	var edges graph.CSR
	if layer.Spec.Relations > 0 {
		edges = *graph.Normalise(view.Typed, view.Typed.Degrees(), layer.Edges)
	} else {
		edges = *view.Normalised(layer.Edges)
	}
	if !slices.ContainsFunc(t.Model.Layers, func(l *nn.Layer) bool { return l.Spec.EdgeColumns > 0 }) {
		edges.Edge = nil // no layer reads the edges' columns
	}
	conv, _ := nn.ConvolutionNamed(layer.Spec.Conv)
	e = sample.NewEdges(&edges, t.shard.Global, layer.Edges == graph.GCN || layer.Edges == graph.Loops, conv.Linear)
	e.Relations, e.EdgeX, e.Reached = layer.Spec.Relations, t.shard.EdgeX, layer.Conv.Reached
	return e, nil
}

func (t *Trainer) rounds(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer t.groups.wait() // a group may still be prepared that is never read
	defer cancel()
	err = t.Rounds(ctx, t.config.Config, 0, t.config.Rounds,
		func(bool) (val, loss float64, err error) { return t.validate(ctx) },
		func() (float64, error) { return t.aRound(ctx) })
	if err == nil {
		t.groups.wait() // all peers prepare a group when patience ends the run
	}
	return err
}

// aRound takes a step for each batch of a round. It returns the mean loss over the batches' labels, each before its
// step.
func (t *Trainer) aRound(ctx context.Context) (mean float64, err error) {
	back := t.Mark()
	defer func() {
		if err != nil {
			back()
		}
	}()
	loss, weight := 0.0, 0.0
	for first := t.At.Round * t.round; first < (t.At.Round+1)*t.round; {
		now, err := t.groups.next(ctx, first, t.size)
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		for b := range now.batches {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			l, w, err := t.stepBatch(ctx, now, b)
			if err != nil {
				return 0, err
			}
			loss, weight = loss+l, weight+w
		}
		if err := t.settle(ctx, now, time.Since(begun)); err != nil {
			return 0, err
		}
		first = now.end()
	}
	if weight == 0 {
		return 0, nil // no link fell into the steps of a short round
	}
	return loss / weight, nil
}

// stepBatch makes one optimizer step. It returns the summed loss of the batch's labels before the step, and their
// weight.
func (t *Trainer) stepBatch(ctx context.Context, g *group, b int) (loss, weight float64, err error) {
	t.Params.ZeroGrad()
	t.tape.Reset()
	step := g.first + b
	t.tape.Key = t.key.FoldString("dropout").Fold(uint64(step / t.steps)).Fold(uint64(step % t.steps))
	var counts [2 * eval.RealLen]int64
	if seeds := g.seeds[b]; len(seeds) > 0 {
		loss, weight = t.gradient(g, b)
	}
	eval.PutReal(counts[:eval.RealLen], loss)
	eval.PutReal(counts[eval.RealLen:], weight)
	sums, err := t.Reducer.Reduce(ctx, &comm.Contribution{ID: t.ID(ofGradient, step%t.round), Update: t.Params.Grad,
		Counts: counts[:], Meta: t.Digest()})
	if err != nil {
		return 0, 0, err
	}
	if err := t.Alike(sums.Meta); err != nil {
		return 0, 0, err
	}
	if loss, weight = eval.Real(counts[:eval.RealLen]), eval.Real(counts[eval.RealLen:]); loss != loss {
		return 0, 0, train.ErrDiverged
	}
	if weight > 0 {
		n := t.Params.Trained
		t.Opt.StepScaled(t.Params.Value[:n], t.Params.Grad[:n], float32(1/weight),
			t.config.Optimizer.LR*t.rates.At(step))
	}
	return loss, weight, nil
}

// gradient adds the gradients of a batch's own seeds.
func (t *Trainer) gradient(g *group, b int) (loss, weight float64) {
	batch := &g.batches[b]
	nodes := make([]int64, len(batch.Nodes))
	for i, id := range batch.Nodes {
		nodes[i] = int64(id)
	}
	layers := t.Model.Layers
	out := make([]mat.Dense, len(layers)) // rows of each layer before its head
	var x graph.Features
	for k, l := range layers {
		block := batch.Blocks[k]
		dst := block.NumDst / max(1, l.Spec.Relations)
		if l.Conv.Reached {
			block = block.WithReached(dst, batch.Reached[k])
		}
		in := nn.Input{G: block, EdgeX: batch.EdgeX[k], X: x, Nodes: nodes[:block.NumSrc]}
		if k == 0 {
			t.feed(&in, g.inputs, b)
		}
		h := t.tape.Raw(dst, l.Spec.Out)
		l.Forward(h, in, t.tape)
		out[k] = h
		if head := t.Model.Head(k); head != nil {
			_, classes := head.Dims()
			h = t.tape.Raw(dst, classes)
			head.Forward(h, out[k], t.tape)
		}
		x = graph.Features{Dense: h}
	}
	d := t.tape.Scratch(x.Dense.Rows, x.Dense.Cols)
	if t.links != nil {
		loss, weight = t.Model.Decoder.Learn(d, x.Dense, g.pairs[b]), float64(g.pairs[b].Len())
	} else {
		loss, weight = t.loss(d, x.Dense, g.seeds[b])
	}
	for k := len(layers) - 1; k >= 0; k-- {
		if head := t.Model.Head(k); head != nil {
			dh := t.tape.Scratch(out[k].Rows, out[k].Cols)
			head.Backward(dh, d, t.tape)
			d = dh
		}
		var dx mat.Dense
		if k > 0 {
			dx = t.tape.Scratch(batch.Blocks[k].NumSrc, layers[k].Spec.In)
		}
		layers[k].Backward(dx, d, t.tape)
		d = dx
	}
	return loss, weight
}

// feed gives the first layer its input of batch b: the rows of all sources or, if the layer reads only sums of them,
// the destinations' rows and the sums. The sums are taken from the group's rows without a copy, with the same bits.
func (t *Trainer) feed(in *nn.Input, from *inputs, b int) {
	l, at, rows := t.Model.Layers[0], from.at[b], from.rows
	if rows.Sparse != nil {
		in.X = rows.Select(at)
		return
	}
	if sumsFirst(l) {
		block := in.G
		t.from = slices.Grow(t.from[:0], len(block.Col))[:len(block.Col)]
		for k, j := range block.Col {
			t.from[k] = at[j]
		}
		z := t.tape.Raw(block.NumDst, rows.Cols())
		tape.WeightedSum(z, block.RowPtr, t.from, block.Weight, rows.Dense, false)
		in.G, in.Z, in.Nodes, at = nil, graph.Features{Dense: z}, in.Nodes[:block.NumDst], at[:block.NumDst]
	}
	in.X.Dense = t.tape.Raw(len(at), rows.Cols())
	for i, k := range at {
		copy(in.X.Dense.Row(i), rows.Dense.Row(int(k)))
	}
}

// sumsFirst reports whether a layer sums rows of dense features before it multiplies them.
func sumsFirst(l *nn.Layer) bool {
	s, c := &l.Spec, &l.Conv
	return l.Sums() && l.Frozen() && s.Relations == 0 && s.Dropout == 0 && c.Hops <= 1 && c.Alpha == 0 &&
		(c.Nbr == nil || s.Out >= s.In)
}

// loss returns the loss of own nodes' logits, and writes its gradient to d.
func (t *Trainer) loss(d, logits mat.Dense, ids []int32) (loss, weight float64) {
	own := make([]int32, len(ids))
	for i, id := range ids {
		own[i] = t.groups.relay.dir.Local[id]
	}
	return nn.Loss(d, logits, t.shard.Labels.Select(own), t.weight)
}

// logits computes the logits of own nodes from all edges of the whole graph.
func (t *Trainer) logits(ctx context.Context) (logits, hidden mat.Dense, err error) {
	c := infer.Config{Rows: t.config.Rows, Exchange: t.config.Exchange, Metric: t.Metric}
	return infer.Logits(ctx, c, t.Model, t.shard, t.Group)
}

// validate computes the metric of the validation nodes and keeps the parameters if they are the best so far.
func (t *Trainer) validate(ctx context.Context) (val, loss float64, err error) {
	logits, _, err := t.logits(ctx)
	if err != nil {
		return 0, 0, err
	}
	if t.links != nil {
		val, loss, err = t.links.Validate(ctx, &t.RunState, t.Model.Decoder, t.ID(ofValidation, 0), logits)
	} else {
		val, loss, _, err = t.compare(ctx, t.ID(ofValidation, 0), logits, graph.Val, train.SelectionBins)
	}
	if err != nil {
		return 0, 0, err
	}
	t.Improve(val, loss)
	return val, loss, nil
}

// compare compares logits with the labels of a split, summed over the peers.
func (t *Trainer) compare(ctx context.Context, id comm.ReduceID, logits mat.Dense, split graph.Split,
	bins int) (metric, loss, bound float64, err error) {
	nodes := t.shard.NodesIn(split)
	return t.Compare(ctx, id, logits.Select(nodes), t.shard.Labels.Select(nodes), bins)
}

// evaluate reports the metrics of the best state over the whole graph.
func (t *Trainer) evaluate(ctx context.Context) error {
	logits, hidden, err := t.logits(ctx)
	if err != nil {
		return err
	}
	t.Scores = logits
	if t.KeepHidden {
		t.Rows = hidden
	}
	return t.Evaluate(func(split graph.Split) (metric, loss, bound float64, err error) {
		if t.links == nil {
			return t.compare(ctx, t.ID(ofResult, int(split)), logits, split, eval.DefaultBins)
		}
		return t.links.Rank(ctx, &t.RunState, t.Model.Decoder, t.ID(ofResult, int(split)), split, logits)
	})
}
