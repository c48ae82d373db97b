package classmeans

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Messages returns what a run of these members sends if all rounds are run and that fraction of all nodes has labels: a
// list for each option that its first rounds may choose.
func (c Config) Messages(m train.Members, labelled float64) (lists []*train.Messages) {
	kind, _ := graph.KindNamed(c.Task)
	options := c.Options(labelled, 1)
	for _, run := range options {
		l := train.NewMessages(m)
		l.AddLabels(kind, c.Classes)
		l.AddView(c.Inductive)
		for _, option := range options {
			if first := option.First(); len(options) > 1 {
				first.AddRounds(l, first.ClassRounds)
			}
		}
		run.AddRounds(l, run.Layout().Rounds)
		// the first two if as many training nodes are of each class
		if first, second, sites := c.ShareCounts(); first > 0 {
			l.AddShares(int64(first), int64(second), int64(sites), 0)
		}
		counts, wide := c.Measured()
		l.Count("finished model", "validation and test metrics", 1, 2*int64(counts), 2*int64(wide))
		figures.AddMessages(l, kind, c.Classes)
		lists = append(lists, l)
	}
	return lists
}

// AddRounds adds that many rounds.
func (c Config) AddRounds(l *train.Messages, rounds int) {
	spec := c.Layout()
	sums := train.FormatOf(c.SumBits(l.Peers))
	features := int64(c.Inputs())
	views := int64(1)
	if c.Inductive {
		views = 2
	}
	means := train.FormatOf(c.MeansBits(l.Peers, float64(l.Train)))
	statistics, asked := "sum and sum of squares of each feature, and number of nodes", int64(1)
	if c.AsksForEdges(l.Peers) {
		statistics, asked = statistics+" and of peers with edges to others", 2
	}
	if sums == "float32" || spec.OwnFeatures > 0 {
		l.Sum("column statistics", statistics, 1, 2*features, asked)
	} else { // rare columns are small compared with frequent ones
		l.Fixed("column statistics", statistics, 1, 2*features, 2, asked, asked, "int16")
	}
	if c.Exchange != "halo" && c.Hops > 0 {
		// A cover is asked for only if it saves more bytes of rows in the hops of the first two rounds than it takes.
		l.AddCovers("covers of rows", views)
	}
	columns := 1
	for r := range rounds {
		width, wide := spec.Width(c.Classes), spec.MapWidth(r, c.Classes)
		directions := spec.Directions > 0 && r >= spec.Alone
		what := "sums of features over each class, and its training nodes"
		if r > 0 {
			what = "sums of features, weighted by soft labels or residuals"
		}
		if !directions || !spec.DirectionsOnly {
			counts := int64(width)
			if spec.Residual {
				counts = 0
			}
			l.Fixed("class means", what, 1, features*int64(width), int64(width), counts, counts, means)
		}
		if directions {
			what := "products of the means of features over neighbours at the same site, with one another " +
				"and with residuals"
			l.Sum("directions", what, 1, int64(linear.PartLen(int(features)+1, int(features)+1, width)), 0)
			l.Sum("digests of directions", "agreement on the directions", 1, 0, 0)
		}
		moments, nodes := "sum and sum of squares of each column", int64(0)
		if l.Phones {
			moments, nodes = moments+", and number of nodes", 1
		}
		l.Sum("deviations", moments, 1, 2*int64(wide), nodes)
		if spec.TrainLead && r > 0 || spec.Sums(r) && spec.LeaveOut && !spec.Residual {
			l.Sum("leads", "columns of training and validation nodes at their own class", 1, 2*int64(width),
				2*int64(width))
		}
		l.AddClassRows(spec, r, views, c.Classes, c.Rows)
		if spec.Sums(r) {
			l.SendExact(fmt.Sprintf("class rows of round %d", r+1),
				"soft labels of the node; readers use sums of them with noise", 1, c.Classes, true)
		}
		added := spec.Columns(r, c.Classes)
		if columns += added; l.Phones { // other members than the round before
			added = columns
		} else if r == 0 {
			added++ // the constant
		}
		l.Sum("normal equations", "ZᵀZ and ZᵀY of the columns", 1, int64(linear.PartLen(columns, added, c.Classes)), 0)
		random := spec.RandomOf(columns - 1)
		name, what := "normal equations of random features", "ZᵀZ and ZᵀY of random features"
		if n := int64(linear.PartLen(columns+random, random, c.Classes)); random > 0 && sums == "float32" {
			l.Sum(name, what, 1, n, 0)
		} else if random > 0 {
			l.Fixed(name, what, 1, n, 1, 0, 0, train.FormatOf(c.RandomBits(l.Peers, float64(l.Train))))
		}
		counts, of := c.Compared()
		l.Count("validation", "validation counts of each penalty", 1, int64(counts)+1, int64(of))
	}
}
