package classmeans

import (
	"context"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// sight is what one purpose sees of the graph, with what was computed from it of own nodes.
type sight struct {
	train.GraphView
	hop     *train.Hop // nil until the first
	columns mat.Dense  // [Owned × 1 + D] the constant, and the columns of all rounds so far, in all
	all     mat.Dense  // [Owned × width] has space for the columns of all rounds, from the first put on
	width   int
	logits  mat.Dense // [Owned × C] of the last round
}

// newSight returns what g has before the first round, of `owned` own nodes that get `columns` columns in all rounds.
func newSight(g train.GraphView, owned, columns int, logits mat.Dense) *sight {
	return &sight{GraphView: g, columns: ones(owned), width: 1 + columns, logits: logits}
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
	all := []graph.Features{{Dense: s.columns.Select(nodes)}}
	if head != nil && head.Freq != nil {
		all = append(all, graph.Features{Dense: head.RandomFeatures(withoutConstant(all[0].Dense))})
	}
	return graph.Columns(all).Dense
}

// seenRound is what a round of class means sees in a sight.
type seenRound struct {
	ctx     context.Context
	trainer *Trainer
	sight   *sight
}

// Features returns what class means are made of, of own nodes.
func (v *seenRound) Features() graph.Features { return v.trainer.x }

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
	z, err = s.hop.Aggregate(v.ctx, x, what)
	if err == nil && t.Beyond != nil {
		err = t.beyond(v.ctx, s, x, z, what)
	}
	return z, err
}
