package traffic

import (
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/minibatch"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Sampled returns what a run of such members by c sends at most: if all nodes are training nodes with labels, and each node
// is in each batch of each other peer. Any node may be sampled, not those alone that have edges to other peers.
func Sampled(c minibatch.Config, members Members) (List, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := begin(members)
	epochs := int64(c.Rounds)
	steps := (members.Nodes + int64(c.BatchSize) - 1) / int64(c.BatchSize)
	groups := (steps + int64(c.Group) - 1) / int64(c.Group)
	metric, final, wide := accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l.labels(c.Spec.Kind(), c.Spec.Classes)
	l.add(Message{What: "ID of each node, and whether it trains", Kind: Rows, Times: 1, Numbers: 1, Format: "int64", Over: 1, payload: 10, head: 2*comm.HeaderLen + 8})
	if c.Inductive {
		l.rows("whether a node is held out", 1, 1, false, exactly)
	}
	validations := (epochs+int64(c.EvalEvery)-1)/int64(c.EvalEvery) + 2
	params := int64(0)
	for k, layer := range m.Layers {
		for _, p := range layer.Params() {
			params += int64(len(p.Value.Data))
		}
		if layer.Head != nil {
			for _, p := range layer.Head.Params() {
				params += int64(len(p.Value.Data))
			}
		}
		l.rows("rows of "+layer.Name+", to validate", validations, infer.Config{Rows: c.Rows}.SentWidth(m, k, false), true, c.Rows)
	}
	if m.Layers[0].Edges == graph.GCN {
		l.rows("degrees of the nodes", validations+1, 1, false, exactly)
	}
	requests := 4 * members.Nodes // to another peer: at most all of its nodes
	for hop, k := range c.Sample.Fanouts {
		if hop == 0 {
			continue // seeds are sampled by their owners
		}
		most := min(members.Nodes, int64(k))
		if k < 0 {
			most = members.Nodes
		}
		l.add(Message{What: "sampled neighbours of the node, " + over(hop+1), Kind: Rows, Times: epochs * steps, Numbers: 2*most + 1, Format: "float32", Fresh: true, Over: 1,
			payload: 10 + 8*most + 4, head: 4*comm.HeaderLen + 16 + requests})
	}
	l.rows("features", epochs*groups, c.Spec.Features, true, c.Rows)
	l.add(Message{What: "which features are wanted", Kind: Rows, Times: epochs * groups, Format: "float32", Over: 1, head: 2*comm.HeaderLen + 16 + requests})
	l.sum("gradients of all layers", epochs*steps, params, 2*eval.RealLen)
	l.counts("losses and validation counts", validations, metric, wide)
	l.counts("validation and test metrics", 1, 2*final, 2*wide)
	l.figures(c.Spec.Kind(), c.Spec.Classes)
	return l.List, nil
}
