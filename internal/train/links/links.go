// Package links trains and measures a model by links: pairs of nodes with at least one end at this peer. The rows of
// the other ends come from their owners, and the gradients of these rows go back to them.
//
// A Rule divides the edges into known ones, over which messages pass, and held-out ones. No edge is held out in one
// direction and known in the other. A Drawer samples pairs of nodes that are not linked. All of it follows from a key
// and the nodes' global IDs, so that every peer decides alike in any partition.
package links

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Rivals is how many random pairs a held-out link is ranked among.
const Rivals = 100

// HeldOut is the key of the random pairs that held-out links are ranked among.
func HeldOut(seed uint64) rng.Key { return rng.New(seed).FoldString("pairs").FoldString("held out") }

// RuleOf returns the rule that decides which links are held out.
func RuleOf(c train.LinkTask, seed uint64) Rule {
	return Rule{Seed: seed, Val: c.HeldOut[0], Test: c.HeldOut[1], Relations: c.Relations, Time: c.Time}
}

// Learner is one peer's part in learning links.
type Learner struct {
	config   train.LinkTask
	shard    *shard.Shard
	cut      *Cut
	seed     uint64
	group    *comm.Group
	sender   *train.Sender
	dir      *Directory
	seen     []int32 // [N] scratch of meet
	boundary []map[int32]bool
	drawer   *Drawer
	held     map[graph.Split]*held

	// Halo: Learn and Measure are given the rows of own nodes and of the halo, and all pairs are among these. Then no
	// row is sent, nor the gradient of one. It is for configurations with Near.
	Halo bool
}

// held are links that are held out, each with the pairs that it is ranked among.
type held struct {
	ends  *joinedPairs
	drawn []int // of each link
}

// ErrNone is the error of a graph with too few links, or too few pairs without one.
var ErrNone = errors.New("there must be links")

// New returns the task of the peer that owns s.
func New(c train.LinkTask, seed uint64, s *shard.Shard) (*Learner, error) {
	cut, err := RuleOf(c, seed).Cut(s)
	if err != nil {
		return nil, err
	}
	return &Learner{config: c, shard: s, cut: cut, seed: seed, held: make(map[graph.Split]*held)}, nil
}

// Messages returns the shard without the edges that are held out.
func (t *Learner) Messages() *shard.Shard { return t.cut.Messages }

// Owners returns who owns which node, after Begin.
func (t *Learner) Owners() *Directory { return t.dir }

// count returns how many links of a split own nodes have: each link counts at both ends.
func (t *Learner) count(split graph.Split) (n int64) {
	for _, l := range t.cut.Links {
		if l.Split == split {
			n++
		}
	}
	return n
}

// Begin makes what a run needs before its first epoch, and returns the number of training links of all peers.
func (t *Learner) Begin(ctx context.Context, g *comm.Group, sender *train.Sender, r comm.Reducer,
	id comm.ReduceID) (int64, error) {
	t.group, t.sender = g, sender
	n := []int64{t.count(graph.Train), t.count(graph.Val), t.count(graph.Test)}
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: n}); err != nil {
		return 0, err
	}
	if n[0] == 0 || n[1] == 0 {
		return 0, fmt.Errorf("%w to learn from and to validate by (got %d and %d)", ErrNone, n[0], n[1])
	}
	if all := t.shard.Nodes; t.shard.Typed.Count() == 0 && n[0]+n[1]+n[2] == all*(all-1) {
		return 0, fmt.Errorf("%w and pairs that are none: each two of the %d nodes are joined", ErrNone, all)
	}
	if err := t.learn(ctx); err != nil {
		return 0, err
	}
	var err error
	for _, split := range []graph.Split{graph.Val, graph.Test} {
		if t.held[split], err = t.hold(ctx, split); err != nil {
			return 0, err
		}
	}
	return n[0], nil
}

// learn finds who owns which nodes, and which of them random pairs may have.
func (t *Learner) learn(ctx context.Context) (err error) {
	if t.Halo {
		return t.learnHalo(ctx)
	}
	of := t.shard.Types.Of
	if t.shard.Types.Count() == 0 {
		of = make([]uint8, t.shard.Owned)
	}
	if t.dir, err = LearnOwners(ctx, t.group, t.shard, of, max(t.shard.Types.Count(), 1)); err != nil {
		return err
	}
	t.seen = make([]int32, len(t.dir.Peer))
	near := make(map[int64]bool)
	if t.config.Near {
		for _, id := range t.shard.Global {
			near[id] = true
		}
		t.boundary = make([]map[int32]bool, t.shard.Parts)
		for q, list := range t.shard.Boundary {
			t.boundary[q] = make(map[int32]bool)
			for _, i := range list {
				t.boundary[q][i] = true
			}
		}
	}
	t.draw(func(id int64) bool { return t.dir.Peer[id] != Nobody && (!t.config.Near || near[id]) })
	return nil
}

// draw makes the Drawer of the nodes for which in returns true.
func (t *Learner) draw(in func(id int64) bool) {
	t.drawer = NewDrawer(NewPool(t.dir.Mark, t.shard.Types.Count(), in), t.cut, t.shard)
}

// learnHalo is learn for own nodes and the halo, whose rows this peer has: if there are types, owners send the types of
// boundary nodes.
func (t *Learner) learnHalo(ctx context.Context) error {
	s := t.shard
	t.dir = &Directory{Peer: slices.Repeat([]uint16{Nobody}, int(s.Nodes)), Local: make([]int32, s.Nodes),
		Mark: make([]uint8, s.Nodes)}
	types := make([]float32, len(s.Global))
	if s.Types.Count() > 1 {
		for i, of := range s.Types.Of[:s.Owned] {
			types[i] = float32(of)
		}
		var err error
		if types, err = t.sender.Numbers(ctx, types[:s.Owned], "types of nodes"); err != nil {
			return err
		}
	}
	for j, id := range s.Global {
		kind := types[j]
		if !(kind >= 0 && int(kind) < max(s.Types.Count(), 1)) {
			return comm.Refused("the type of a node must be one of %d (got %g)", s.Types.Count(), kind)
		}
		t.dir.Peer[id], t.dir.Local[id], t.dir.Mark[id] = uint16(s.Rank), int32(j), uint8(kind)
	}
	t.seen = make([]int32, s.Nodes)
	t.draw(func(id int64) bool { return t.dir.Peer[id] != Nobody })
	return nil
}

// ask returns the question of a link with that other end.
func (t *Learner) ask(l Link, other int64) askedPair {
	return askedPair{at: l.At, other: other, relation: l.Relation}
}

// hold finds the pairs that the links of a split are measured by: they stay the same.
func (t *Learner) hold(ctx context.Context, split graph.Split) (*held, error) {
	h := &held{}
	var all []askedPair
	var drawn []int64
	for _, l := range t.cut.Links {
		if l.Split != split {
			continue
		}
		drawn = t.drawer.Rivals(drawn[:0], HeldOut(t.seed), l, Rivals)
		h.drawn = append(h.drawn, len(drawn))
		all = append(all, t.ask(l, t.shard.Global[l.Other]))
		for _, id := range drawn {
			all = append(all, t.ask(l, id))
		}
	}
	var err error
	h.ends, err = t.meet(ctx, all, ofHeld)
	return h, err
}

// negatives is the key of the random pairs that the links of an epoch are compared with.
func negatives(seed uint64, epoch int) rng.Key {
	return rng.New(seed).FoldString("pairs").FoldString("negatives").Fold(uint64(epoch))
}

// training are the own links that train.
func (t *Learner) training(yield func(Link) bool) {
	for _, l := range t.cut.Links {
		if l.Split == graph.Train && !yield(l) {
			return
		}
	}
}

// against passes each of some links to ask, followed by the pairs that key draws against it.
func (t *Learner) against(key rng.Key, some iter.Seq[Link], ask func(askedPair)) error {
	var drawn []int64
	for l := range some {
		if drawn = t.drawer.Draw(drawn[:0], key, l, t.config.Negatives); len(drawn) < t.config.Negatives {
			return errors.New("the graph has no node to draw: there must be one of each type that links end at")
		}
		ask(t.ask(l, t.shard.Global[l.Other]))
		for _, id := range drawn {
			ask(t.ask(l, id))
		}
	}
	return nil
}

// Learn returns the loss of own training links by own rows z, and adds its gradients to dz and to the decoder's
// parameters; dz includes the gradients that other peers compute for own rows.
func (t *Learner) Learn(ctx context.Context, by *nn.Decoder, epoch int, dz, z mat.Dense) (float64, error) {
	const what = ofEnds
	var all []askedPair
	if err := t.against(negatives(t.seed, epoch), t.training, func(q askedPair) { all = append(all, q) }); err != nil {
		return 0, err
	}
	e, err := t.meet(ctx, all, what)
	if err != nil {
		return 0, err
	}
	x, err := t.table(ctx, e, z, what)
	if err != nil {
		return 0, err
	}
	d := mat.New(x.Rows, x.Cols)
	loss := by.Learn(d, x, nn.PairGroups{Pairs: e.of, Negatives: t.config.Negatives})
	return loss, t.back(ctx, e, dz, d, what)
}

// Validate returns the metric of a run, and the loss, over the links of all peers that validate, as Measure does.
func (t *Learner) Validate(ctx context.Context, run *train.RunState, by *nn.Decoder, id comm.ReduceID,
	z mat.Dense) (metric, loss float64, err error) {
	found, err := t.Measure(ctx, by, run.Reducer, id, graph.Val, z, train.SelectionBins, false)
	return found.All.Of(run.Metric), found.All.Loss, err
}

// Rank is Measure of the final model of a run, each relation apart. The run keeps the ranks. An error of the metric is
// not bounded: bound is 0.
func (t *Learner) Rank(ctx context.Context, run *train.RunState, by *nn.Decoder, id comm.ReduceID, split graph.Split,
	z mat.Dense) (metric, loss, bound float64, err error) {
	found, err := t.Measure(ctx, by, run.Reducer, id, split, z, eval.DefaultBins, true)
	if err == nil && split == graph.Test {
		found.Common, found.AdamicAdar, err = t.Known(split)
	}
	if err == nil {
		if run.Links == nil {
			run.Links = make(map[graph.Split]train.LinkRanks)
		}
		run.Links[split] = found
	}
	return found.All.Of(run.Metric), found.All.Loss, 0, err
}

// Measure ranks the links of a split, of all peers, by own rows z of each. Apart, it does so of each relation.
func (t *Learner) Measure(ctx context.Context, by *nn.Decoder, r comm.Reducer, id comm.ReduceID, split graph.Split,
	z mat.Dense, bins int, apart bool) (f train.LinkRanks, err error) {
	h := t.held[split]
	x, err := t.table(ctx, h.ends, z, ofHeld)
	if err != nil {
		return f, err
	}
	apart = apart && len(t.cut.Relations) > 1
	sums := []*eval.Ranking{eval.NewRanking(bins)}
	for apart && len(sums) < len(t.cut.Relations) {
		sums = append(sums, eval.NewRanking(bins))
	}
	scores, of := by.Scores(x, h.ends.of), h.ends.of
	for _, n := range h.drawn {
		if n > 0 {
			sum := sums[0]
			if apart {
				sum = sums[of[0].Relation]
			}
			sum.Add(scores[0], scores[1:1+n])
			sum.Lost(nn.PairGroups{Pairs: of[:1+n], Negatives: n}.Loss(nil, scores[:1+n]))
		}
		scores, of = scores[1+n:], of[1+n:]
	}
	var v []int64
	for _, sum := range sums {
		v = append(v, sum.Vector()...)
	}
	if f.Own, err = sums[0].Read(added(v, len(sums))); err != nil {
		return f, err
	}
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: v}); err != nil {
		return f, err
	}
	f.All, err = sums[0].Read(added(v, len(sums)))
	for k := 0; apart && err == nil && k < len(sums); k++ {
		var one eval.Ranks
		one, err = sums[k].Read(v[k*len(v)/len(sums) : (k+1)*len(v)/len(sums)])
		f.Relations = append(f.Relations, one)
	}
	if err != nil {
		return f, fmt.Errorf("the summed counts of all peers: %w", err)
	}
	return f, nil
}

// added returns the sum of n vectors that stand behind one another.
func added(v []int64, n int) []int64 {
	sum := make([]int64, len(v)/n)
	for k, x := range v {
		sum[k%len(sum)] += x
	}
	return sum
}
