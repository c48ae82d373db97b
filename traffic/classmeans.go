package traffic

import (
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train/linear"
)

// ClassMeans returns what a run of m by c sends if all rounds are run and that share of all nodes has labels: a list for
// each option that its first rounds may choose.
func ClassMeans(c classmeans.Config, m Members, labelled float64) (lists []List) {
	kind, _ := target.Named(c.Task)
	options := c.Options(labelled, 1)
	for _, run := range options {
		l := begin(m)
		l.labels(kind, c.Classes)
		if c.Inductive {
			l.rows("whether a node is held out, and its degree without such nodes", 1, 2, false, exactly)
		}
		for _, option := range options {
			if first := option.First(); len(options) > 1 {
				l.classRounds(first, first.ClassRounds)
			}
		}
		l.classRounds(run, run.Layout().Rounds)
		l.finished(c, kind)
		lists = append(lists, l.List)
	}
	return lists
}

// formats are those of sums, by the bits of a number.
var formats = map[int]string{0: "float32", 4: "int4", 8: "int8", 16: "int16", 32: "int32"}

// classRounds adds that many rounds of c.
func (l *sending) classRounds(c classmeans.Config, rounds int) {
	spec := c.Layout()
	sums := formats[c.SumBits(l.Peers)]
	features := int64(c.Inputs())
	views := int64(1)
	if c.Inductive {
		views = 2
	}
	means := formats[c.MeansBits(l.Peers, float64(l.Train))]
	if what := "sum and sum of squares of each feature"; sums == "float32" || spec.OwnFeatures > 0 {
		l.sum(what, 1, 2*features, 0)
	} else {
		l.parts(what, 1, 2*features, 2, "int16") // rare columns are small beside frequent ones
	}
	if c.AsksForEdges(l.Peers) {
		l.sum("numbers of nodes, and of peers with edges to others", 1, 0, 2)
	} else {
		l.sum("number of nodes", 1, 0, 1)
	}
	if c.Exchange != "halo" && c.Hops > 0 {
		// A cover is asked for only where the hops of the first two rounds repay it, in rows that do not cross.
		l.add(Message{What: "which rows are wanted as sums", Kind: Rows, Times: views, Format: "float32", head: 2 * comm.HeaderLen})
	}
	columns := 1
	for r := range rounds {
		width, wide := spec.Width(c.Classes), spec.MapWidth(r, c.Classes)
		directions := spec.Directions > 0 && r >= spec.Alone
		what := "sums of features over each class"
		if r > 0 {
			what = "sums of features, weighted by soft labels or residuals"
		}
		if !directions || !spec.DirectionsOnly {
			l.parts(what, 1, features*int64(width), int64(width), means)
			l.sum("training nodes of each class", 1, 0, int64(c.Classes))
		}
		if directions {
			l.sum("products of the means of features over neighbours at the same site, with one another and with residuals", 1,
				int64(linear.PartLen(int(features)+1, int(features)+1, width)), 0)
		}
		l.sum("sum and sum of squares of each column", 1, 2*int64(wide), 0)
		if spec.TrainLead && r > 0 || spec.Sums(r) && spec.LeaveOut && !spec.Residual {
			l.sum("columns of training and validation nodes at their own class", 1, 2*int64(width), 2*int64(width))
		}
		l.columnRows(spec.HopsOf(r), views, wide, c.Rows)
		if spec.Sums(r) {
			l.rows("soft labels of the node, of which readers use sums with noise", 1, c.Classes, true, exactly)
		}
		l.logitRows(spec, r, views, width, c.Rows)
		added := spec.Columns(r, c.Classes)
		if columns += added; r == 0 {
			added++ // the constant
		}
		l.sum("ZᵀZ and ZᵀY of the columns", 1, int64(linear.PartLen(columns, added, c.Classes)), 0)
		random := spec.RandomOf(columns - 1)
		if n := int64(linear.PartLen(columns+random, random, c.Classes)); random > 0 && sums == "float32" {
			l.sum("ZᵀZ and ZᵀY of random features", 1, n, 0)
		} else if random > 0 {
			format := formats[c.RandomBits(l.Peers, float64(l.Train))]
			l.parts("ZᵀZ and ZᵀY of random features", 1, n, 1, format)
		}
		l.penalties(c)
	}
}

// finished adds what is counted of the finished model.
func (l *sending) finished(c classmeans.Config, kind target.Kind) {
	if first, second, sites := c.ShareCounts(); first > 0 { // the first two if as many training nodes are of each class
		l.moves(int64(first), int64(second), int64(sites), 0)
	}
	counts, wide := c.Measured()
	l.counts("validation and test metrics", 1, 2*int64(counts), 2*int64(wide))
	l.figures(kind, c.Classes)
}

// moves adds the sums that correct logits for the shares of the classes, with a number of likelihoods among the
// first.
func (l *sending) moves(first, second, sites, likelihoods int64) {
	l.counts("classes that the model gives to validation nodes and to nodes without a label", 1, first, likelihoods)
	l.counts("right validation nodes of each class, after each move of the logits", 1, second, 0)
	l.counts("right validation nodes after each move to the shares of each site", 1, sites, 0)
}

// penalties adds the validation of a round.
func (l *sending) penalties(c classmeans.Config) {
	counts, wide := c.Compared()
	l.counts("validation counts of each penalty", 1, int64(counts)+1, int64(wide))
}

// logitRows adds the logits of the round before r, and their aggregates. Beside the columns that they are made of they tell
// nothing new.
func (l *sending) logitRows(spec closed.Layout, r int, views int64, width int, rows wire.Coding) {
	hops := int64(spec.LogitHopsOf(r))
	switch {
	case hops > 0 && spec.Hops == 0:
		l.rows("logits of the node in the round before", views, width, true, rows)
		if hops--; hops > 0 {
			l.rows("aggregates of these logits", views*hops, width, false, rows)
		}
	case hops > 0:
		l.rows("logits of the round before, and their aggregates", views*hops, width, false, rows)
	}
}

// columnRows adds the rows that cross before each of so many hops of a round.
func (l *sending) columnRows(n int, views int64, width int, rows wire.Coding) {
	for hop := range n {
		what := "columns of the node"
		if hop > 0 {
			what = "columns aggregated " + over(hop)
		}
		l.rows(what, views, width, hop == 0, rows)
	}
}
