package classmeans

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// sight is what one purpose sees of the graph, with what was computed from it of own nodes.
type sight struct {
	train.GraphView
	hop    *train.Hop  // nil until the first
	rounds []mat.Dense // [Owned × D] the columns of each round so far, the constant first; no own features
	logits mat.Dense   // [Owned × C] of the round before, of nodes that this round reads (Trainer.look)

	model *nn.Model
	shard *shard.Shard
	raw   graph.Features // Trainer.raw
}

// newSight returns what t's model sees of g before the first round.
func (t *Trainer) newSight(g train.GraphView) *sight {
	return &sight{GraphView: g, model: t.model, shard: t.shard, raw: t.raw}
}

// columnsOf returns how many columns heads read after that many rounds, the constant and a node's own features among
// them.
func (s *sight) columnsOf(rounds int) int {
	n := 1
	for r := range rounds {
		n += s.model.Closed.Spec.Columns(r, s.model.Spec.Classes)
	}
	return n
}

// kept returns how many columns of round r are kept: a node's own features are computed when they are read.
func (s *sight) kept(r int) int {
	if r == 0 {
		return s.columnsOf(1) - s.model.Closed.Spec.OwnFeatures
	}
	return s.columnsOf(r+1) - s.columnsOf(r)
}

// rowsAtOnce is how many nodes a sum takes at a time: their columns and random features are some ten megabytes.
// Fewer would make more sums, whose rounding depends on their order.
const rowsAtOnce = 8192

// rows returns the columns of the given nodes up to round r and, behind them, the random features of head, if it has
// any. They are in all.
func (s *sight) rows(all *closed.Columns, r int, nodes []int32, head *closed.Head) mat.Dense {
	read, random := s.columnsOf(r+1), 0
	if head != nil && head.Freq != nil {
		random = head.Freq.Value.Cols
	}
	all.Clear(len(nodes), read+random)
	for k, x := range s.rounds[:r+1] {
		y := all.Next(x.Cols)
		kernels.GatherRows(x.Cols, nodes, x.Data, x.Stride, y.Data, y.Stride)
		if k == 0 && s.model.Closed.Own != nil {
			all.Add(s.model.Closed.OwnColumns(s.model.Encoder.Input(s.raw.Select(nodes))))
			s.shard.Forget()
		}
	}
	if random > 0 {
		head.RandomFeatures(all.Next(random), all.Written().ColRange(1, read))
	}
	return all.Written()
}

// each returns the rows, [Owned × width], that do makes of the columns that the head of round r reads, without the
// constant; rows of other nodes are zeros. Nodes come some at a time.
func (s *sight) each(r int, nodes []int32, width int, do func(columns mat.Dense) mat.Dense) mat.Dense {
	y := mat.New(s.shard.Owned, width)
	var all closed.Columns
	for some := range slices.Chunk(nodes, rowsAtOnce) {
		rows := do(s.rows(&all, r, some, nil).ColRange(1, s.columnsOf(r+1)))
		for k, i := range some {
			copy(y.Row(int(i)), rows.Row(k))
		}
	}
	return y
}

// logitsOf returns the logits of round r of the given nodes.
func (s *sight) logitsOf(r int, nodes []int32) mat.Dense {
	return s.each(r, nodes, s.model.Spec.Classes, s.model.Closed.Heads[r].Logits)
}

// look computes what round r reads of the logits of the best round before, or of the last one. Residuals are of
// training nodes: other nodes' logits are read only if they are sent.
func (t *Trainer) look(r int) {
	spec, nodes := t.model.Closed.Spec, t.train
	if !spec.Residual || spec.LogitHopsOf(r) > 0 || spec.Own > 0 {
		nodes = mat.EveryRow(t.shard.Owned)
	}
	of := max(t.At.BestRound, min(r, spec.Alone)-1)
	if t.within || spec.Own > 0 {
		of = r - 1
	}
	for _, s := range t.sights() {
		if s.logits = spec.Prior(t.shard.Owned, t.shares()); r > 0 {
			s.logits = s.logitsOf(of, nodes)
		}
	}
}

// tidy gives back the memory of matrices that nobody reads any more, if they are large: hops take the most memory, and
// what was before them must not come on top of it.
func (t *Trainer) tidy() {
	if t.shard.Owned > 1<<16 {
		debug.FreeOSMemory()
	}
}

// seenRound is what a round of class means sees in a sight.
type seenRound struct {
	ctx     context.Context
	trainer *Trainer
	sight   *sight
}

// Features returns what class means are made of, of own nodes.
func (v *seenRound) Features() graph.Features { return v.trainer.features() }

// Degrees returns the degrees of own nodes.
func (v *seenRound) Degrees() []float32 { return v.sight.Degree[:v.trainer.shard.Owned] }

// Aggregate writes into z the aggregate of x over the edges that the sight has. Before the first hop all peers agree on
// what is sent in each; a run that is resumed agrees on the same.
func (v *seenRound) Aggregate(z, x mat.Dense, what string) (err error) {
	t, s := v.trainer, v.sight
	if s.hop == nil {
		spec := t.model.Spec.Closed
		s.hop, err = t.sender.NewColumnHop(v.ctx, s.GraphView, *spec, spec.Rounds, t.config.Classes, t.config.Exchange)
		if err != nil {
			return err
		}
	}
	t.shard.Forget() // rows take the place of the file, which is read again when they are sent
	t.tidy()
	err = s.hop.Aggregate(v.ctx, z, x, what)
	if err == nil && t.Beyond != nil {
		err = t.beyond(v.ctx, s, x, z, what)
	}
	return err
}
