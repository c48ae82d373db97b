package links

import (
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// What the exchanges of rows are called.
const (
	ofEnds = "ends of links" // that train
	ofHeld = "links that are held out"
)

// AddMessages adds the messages for the two ends of links, if each node is read at each step by each peer that may read
// it: peers with edges from it or, if pairs are sampled from all nodes, all peers.
func AddMessages(l *train.Messages, c train.Config, steps, validations int64) {
	l.Sum("counts of links", "counts of links", 1, 0, 3)
	l.AddOwners()
	l.Ask("nodes of "+ofEnds, "which ends of links are wanted", steps)
	l.Ask("nodes of "+ofHeld, "which ends of links are wanted", 2)
	width := c.Spec.Classes
	l.Send(ofHeld, "rows of ends of links", validations+2, width, true, c.Rows)
	if steps > 0 {
		l.Send(ofEnds, "rows of ends of links", steps, width, true, c.Rows)
		l.Return("gradients of "+ofEnds, "gradients of others' rows of ends of links", steps, width, c.Rows)
	}
}

// AddRanks adds the sums that rank held-out links, including the sums of the result.
func AddRanks(l *train.Messages, m *nn.Model, validations int64) {
	l.Sum("validation", "ranks of links that are held out", validations-1, 0,
		int64(len(eval.NewRanking(train.SelectionBins).Vector())))
	l.Sum("result", "ranks of links that are held out, at last", 2, 0,
		int64(len(m.Decoder.Spec.Relations)*len(eval.NewRanking(eval.DefaultBins).Vector())))
}

// AddTypes adds the types of boundary nodes, if there are several.
func AddTypes(l *train.Messages) {
	if l.Types > 1 {
		l.SendExact("types of nodes", "type of the node", 1, 1, false)
	}
}
