package classmeans

import (
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// sight is what one purpose sees of the graph, with what was computed from it of own nodes.
type sight struct {
	train.GraphView
	hop     *train.Hop // nil until the first
	columns mat.Dense  // [Owned × 1 + D] the constant, and the columns of all rounds so far, in all; no own features
	all     mat.Dense  // [Owned × width] has space for the columns of all rounds, from the first put on
	width   int
	logits  mat.Dense // [Owned × C] of the round before, of nodes that this round reads (Trainer.look)

	model  *nn.Model
	raw    graph.Features // Trainer.raw
	before int            // how many columns come before the node's own features, which are computed when read
}

// newSight returns what t's model sees of g before the first round.
func (t *Trainer) newSight(g train.GraphView) *sight {
	form := t.model.Closed
	s := &sight{GraphView: g, columns: ones(t.shard.Owned), model: t.model, raw: t.raw}
	s.width = s.columnsOf(form.Spec.Rounds) - form.Spec.OwnFeatures
	s.before = s.columnsOf(1) - form.Spec.OwnFeatures
	return s
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

// put copies x into the columns of all from `at` on, and returns the columns up to these.
func (s *sight) put(at int, x mat.Dense) mat.Dense {
	if s.all.Empty() {
		// Not before the first round: settings that are compared have a sight each, and space for two at once would be
		// the peak of a run's memory.
		s.all = mat.New(x.Rows, s.width)
		s.all.ColRange(0, s.columns.Cols).CopyFrom(s.columns)
	}
	s.all.ColRange(at, at+x.Cols).CopyFrom(x)
	return s.all.ColRange(0, at+x.Cols)
}

// rowsAtOnce is how many nodes a sum takes at a time: their columns and random features are some ten megabytes.
// Fewer would make more sums, whose rounding depends on their order.
const rowsAtOnce = 8192

// rows returns the columns of the given nodes and, behind them, the random features of head, if it has any.
func (s *sight) rows(nodes []int32, head *closed.Head) mat.Dense {
	kept := s.columns.Select(nodes)
	all := []graph.Features{{Dense: kept}}
	if s.model.Closed.Own != nil {
		own := s.model.Closed.OwnColumns(s.model.Encoder.Input(s.raw.Select(nodes)))
		all = []graph.Features{{Dense: kept.ColRange(0, s.before)}, {Dense: own}}
		if kept.Cols > s.before {
			all = append(all, graph.Features{Dense: kept.ColRange(s.before, kept.Cols)})
		}
	}
	if head != nil && head.Freq != nil {
		read := graph.Columns(all).Dense
		all = []graph.Features{{Dense: read}, {Dense: head.RandomFeatures(read.ColRange(1, read.Cols))}}
	}
	return graph.Columns(all).Dense
}

// each returns the rows, [Owned × width], that do makes of the columns that the head of round r reads, without the
// constant; rows of other nodes are zeros. Nodes come some at a time.
func (s *sight) each(r int, nodes []int32, width int, do func(columns mat.Dense) mat.Dense) mat.Dense {
	y := mat.New(s.columns.Rows, width)
	for some := range slices.Chunk(nodes, rowsAtOnce) {
		rows := do(s.rows(some, nil).ColRange(1, s.columnsOf(r+1)))
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

// Aggregate returns the aggregate of x over the edges that the sight has. Before the first hop all peers agree on what
// is sent in each; a run that is resumed agrees on the same.
func (v *seenRound) Aggregate(x mat.Dense, what string) (z mat.Dense, err error) {
	t, s := v.trainer, v.sight
	if s.hop == nil {
		spec := t.model.Spec.Closed
		s.hop, err = t.sender.NewColumnHop(v.ctx, s.GraphView, *spec, spec.Rounds, t.config.Classes, t.config.Exchange)
		if err != nil {
			return z, err
		}
	}
	t.shard.Forget() // rows take the place of the file, which is read again when they are sent
	z, err = s.hop.Aggregate(v.ctx, x, what)
	if err == nil && t.Beyond != nil {
		err = t.beyond(v.ctx, s, x, z, what)
	}
	return z, err
}
