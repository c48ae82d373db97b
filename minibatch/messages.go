package minibatch

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Messages returns what a run of these members sends at most: if no two samples have a node in common, and all that a
// batch reads belongs to other peers than its seeds. Any node may be sampled, not only nodes that have edges to other
// peers. A batch of links has twice as many as on average at most.
func (c Config) Messages(members train.Members) ([]*train.Messages, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := train.NewMessages(members)
	epochs := int64(c.Rounds) // or rounds of RoundSteps steps
	steps := (members.Train + int64(c.BatchSize) - 1) / int64(c.BatchSize)
	if c.RoundSteps > 0 {
		steps = int64(c.RoundSteps)
	}
	size := int64(max(1, c.Group)) // of a group: if it is open, a small one sends most
	groups := (steps + size - 1) / size
	validations := (epochs+int64(c.EvalEvery)-1)/int64(c.EvalEvery) + 2
	params := int64(0)
	if c.Links == nil {
		l.AddLabels(c.Spec.Kind(), c.Spec.Classes)
		l.AddOwners()
	} else {
		links.AddMessages(l, c.Config, 0, validations)
		params += train.NumbersOf(m.Decoder.Params())
	}
	l.AddView(c.Inductive)
	for k, layer := range m.Layers {
		params += train.NumbersOf(layer.Params())
		if layer.Head != nil {
			params += train.NumbersOf(layer.Head.Params())
		}
		width := infer.Config{Rows: c.Rows}.SentWidth(m, k, false)
		l.Send(infer.RowsName(m, k, 0), "rows of "+layer.Name+", to validate", validations, width, true, c.Rows)
	}
	if m.Layers[0].Edges == graph.GCN {
		l.AddDegrees(validations + 1)
	}
	relations, columns := int64(1), int64(0)
	for _, layer := range c.Spec.Layers {
		relations, columns = max(relations, int64(layer.Relations)), max(columns, int64(layer.EdgeColumns))
	}
	read := c.addSamples(l, epochs*steps, relations, columns)
	l.SendMost("features of sampled nodes", "features", epochs*groups, size*read, c.Spec.Features, c.Rows)
	l.Ask("nodes whose features are needed", "which features are wanted", epochs*groups)
	if c.Group == 0 {
		l.Ask("latency", "latency, and batches of a group", 1)
	}
	l.Sum(ofGradient, "gradients of all layers", epochs*steps, params, 2*eval.RealLen)
	if c.Links != nil {
		links.AddRanks(l, m, validations)
		return []*train.Messages{l}, nil
	}
	metric, final, wide := train.Accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l.Count(ofValidation, "losses and validation counts", validations, metric, wide)
	l.Count(ofResult, "validation and test metrics", 2, final, wide)
	figures.AddMessages(l, c.Spec.Kind(), c.Spec.Classes)
	return []*train.Messages{l}, nil
}

// addSamples adds what the samples of some steps take, and returns how many nodes of other peers a batch has, at all
// peers together.
func (c Config) addSamples(l *train.Messages, steps, relations, columns int64) (read int64) {
	seeds := int64(c.BatchSize)
	read = seeds        // nodes whose edges a batch samples in a hop, its seeds among them
	if c.Links != nil { // all of these may be other peers'
		seeds, read = 0, min(2*read*int64(2+c.Links.Negatives), l.Nodes*int64(l.Peers))
	}
	for hop := range c.Sample.Fanouts {
		k := relations * mostDrawn(c.Sample, hop, l.Nodes)
		if hop > 0 || c.Links != nil { // seeds that are labels are sampled by their owners
			l.SendSamples(fmt.Sprintf("sampled edges of hop %d", hop), "sampled neighbours of the node, "+
				train.OverHops(hop+1),
				steps, read-seeds, k, relations, columns)
		}
		read = min(read+read*k, l.Nodes*int64(l.Peers))
	}
	return read - seeds
}

// mostDrawn returns the most in-edges of a relation that a hop samples of a node.
func mostDrawn(c Sampling, hop int, nodes int64) int64 {
	k := int64(c.Fanouts[hop])
	if k < 0 || c.Kind != "neighbour" { // labor samples this number on average
		return nodes
	}
	return min(nodes, k)
}
