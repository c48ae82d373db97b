package traffic

import (
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/sample"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/minibatch"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Sampled returns what a run of such members by c sends at most: if no two samples have a node in common, and all that a batch
// reads belongs to other peers than its seeds. Any node may be sampled, not those alone that have edges to other peers. A batch of
// links has twice as many as on average at most.
func Sampled(c minibatch.Config, members Members) (List, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := begin(members)
	epochs := int64(c.Rounds) // or rounds of so many steps
	steps := (members.Train + int64(c.BatchSize) - 1) / int64(c.BatchSize)
	if c.RoundSteps > 0 {
		steps = int64(c.RoundSteps)
	}
	size := int64(max(1, c.Group)) // of a group: where it is open, a small one sends most
	groups := (steps + size - 1) / size
	validations := (epochs+int64(c.EvalEvery)-1)/int64(c.EvalEvery) + 2
	params := int64(0)
	if c.Links == nil {
		l.labels(c.Spec.Kind(), c.Spec.Classes)
		l.add(Message{What: "ID of each node, and whether it trains", Kind: Rows, Times: 1, Numbers: 1, Format: "int64", payload: 10, head: 2*comm.HeaderLen + 8})
	} else {
		l.links(c.Config, 0, validations)
		for _, p := range m.Decoder.Params() {
			params += int64(len(p.Value.Data))
		}
	}
	if c.Inductive {
		l.rows("whether a node is held out", 1, 1, false, exactly)
	}
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
	relations, columns := int64(1), int64(0)
	for _, layer := range c.Spec.Layers {
		relations, columns = max(relations, int64(layer.Relations)), max(columns, int64(layer.EdgeColumns))
	}
	read := l.samples(c, epochs*steps, relations, columns)
	what := Message{Kind: Rows, Times: epochs * groups, Numbers: int64(c.Spec.Features), Format: formatOf(c.Rows), Fresh: true,
		most: size * read, payload: int64(c.Rows.RowLen(c.Spec.Features)), head: 2*comm.HeaderLen + 8}
	what.What = "features"
	l.add(what)
	l.add(Message{What: "which features are wanted", Kind: Rows, Times: epochs * groups, Format: "float32", most: what.most, payload: 4, head: 2*comm.HeaderLen + 16})
	if c.Group == 0 {
		l.add(Message{What: "latency, and batches of a group", Kind: Rows, Times: 1, Format: "float32", head: 8 * comm.HeaderLen})
	}
	l.sum("gradients of all layers", epochs*steps, params, 2*eval.RealLen)
	if c.Links != nil {
		l.ranks(m, validations)
		return l.List, nil
	}
	metric, final, wide := accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l.counts("losses and validation counts", validations, metric, wide)
	l.counts("validation and test metrics", 1, 2*final, 2*wide)
	l.figures(c.Spec.Kind(), c.Spec.Classes)
	return l.List, nil
}

// samples adds what the samples of so many steps take, and returns how many nodes of other peers a batch has, at all peers
// together.
func (l *sending) samples(c minibatch.Config, steps, relations, columns int64) (read int64) {
	message := func(what string, most, k int64) {
		l.add(Message{What: "sampled neighbours of the node, " + what, Kind: Rows, Times: steps, Numbers: (2+columns)*k + 1, Format: "float32", Fresh: true,
			most: most, payload: 4 + 10*relations + (8+4*columns)*k + 4, head: 4*comm.HeaderLen + 16})
	}
	seeds := int64(c.BatchSize)
	read = seeds        // nodes whose edges a batch draws in a hop, its seeds among them
	if c.Links != nil { // of which all may be other peers'
		seeds, read = 0, min(2*read*int64(2+c.Links.Negatives), l.Nodes*int64(l.Peers))
	}
	for hop := range c.Sample.Fanouts {
		k := relations * mostDrawn(c.Sample, hop, l.Nodes)
		if hop > 0 || c.Links != nil { // seeds that are labels are sampled by their owners
			message(over(hop+1), read-seeds, k)
		}
		read = min(read+read*k, l.Nodes*int64(l.Peers))
	}
	return read - seeds
}

// mostDrawn returns the most in-edges of a relation that a hop draws of one of so many nodes.
func mostDrawn(c sample.Config, hop int, nodes int64) int64 {
	k := int64(c.Fanouts[hop])
	if k < 0 || c.Kind != "neighbour" { // labor draws so many on average
		return nodes
	}
	return min(nodes, k)
}
