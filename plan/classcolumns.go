package plan

import (
	"fmt"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// mostColumns is how many classes may have columns next to components: each round of class means has regressions of 5·C
// columns more than the one before.
const mostColumns = 50

// enoughLabels is the number of training labels from which on layers with columns of classes train without weight
// decay, by default. A step's loss is a mean over the labels, so that more of them need less decay. Decay shrinks first
// the weights of components, whose values are smaller than the columns' values: docs/measurements/accuracy.md.
const enoughLabels = 5000

// classColumns returns the rounds of class means whose logits the layers of p see of t, or why they see none (nil, and
// empty where p does not ask for any). They are three rounds of soft labels over four hops, which all are run,
// whatever they validate: docs/adr/0075-trained-layers-see-classes.md.
func (p Plan) classColumns(t task) (c *classmeans.Config, why string) {
	switch {
	case !p.LayerWise.Encoder.Classes:
		return nil, ""
	case t.Kind != graph.Single:
		return nil, "they are made for nodes of one class each"
	case t.Classes > mostColumns:
		return nil, fmt.Sprintf("they are made for up to %d classes (got %d)", mostColumns, t.Classes)
	case t.Numbered:
		return nil, "the nodes have no features"
	case p.Inductive:
		return nil, "with inductive the graphs of training and of prediction would each need their own"
	}
	c = &classmeans.Config{Seed: p.Seed, Task: t.Kind.String(), Features: t.Features, Classes: t.Classes,
		Metric: p.metric(t), RowNorm: p.rowNorm(t), Target: "labels", LeaveOut: "true", ClassRounds: 3, Hops: 4,
		Random: 128, Shrink: 3, MinClass: p.Federation().MinClass, Lambdas: classmeans.Lambdas(), Exchange: Auto,
		Sums: p.Federation().Sums, Rows: p.Coding()}
	c.ClassWeights, c.Balanced = p.classWeights(t, &faults{})
	c.Positive = p.positive(t, &faults{})
	if p.Federation().Sums == Auto {
		c.Sums = "int16" // as the sums of components
	}
	if p.Federation().Exchange != Auto {
		c.Exchange = "halo"
	}
	c.Rows.Columns = c.Rows.Values == "int8" || c.Rows.Values == "int4"
	return c, ""
}

// ClassHops returns over how many hops the columns of classes are aggregated that layers see (0 = they see none),
// whatever the data.
func (p Plan) ClassHops() int {
	if c, _ := p.classColumns(task{Classes: 2}); c != nil {
		return c.Hops
	}
	return 0
}

// layoutOf returns the layout of c, nil if c is nil.
func layoutOf(c *classmeans.Config) *closed.Layout {
	if c == nil {
		return nil
	}
	l := c.Layout()
	return &l
}
