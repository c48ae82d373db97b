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

// Messages returns the most that a run of these members sends. It assumes that no two samples share a node, and all
// nodes that a batch reads belong to other peers than its seeds. Any node may be sampled, not only nodes with edges to
// other peers. A batch of links is assumed to be at most twice its average.
func (c Config) Messages(members train.Members) ([]*train.Messages, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := train.NewMessages(members)
	epochs := int64(c.Rounds) // or rounds, each of RoundSteps steps
	steps := (members.Train + int64(c.BatchSize) - 1) / int64(c.BatchSize)
	if c.RoundSteps > 0 {
		steps = int64(c.RoundSteps)
	}
	size := int64(max(1, c.Group)) // batches of a group: if Group is 0, the smallest group sends most
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

// addSamples adds the messages of the samples of some steps, and returns how many nodes of other peers a batch has,
// summed over the peers.
func (c Config) addSamples(l *train.Messages, steps, relations, columns int64) (read int64) {
	seeds := int64(c.BatchSize)
	read = seeds        // nodes whose edges a batch samples in a hop, including its seeds
	if c.Links != nil { // all of these may be other peers' nodes
		seeds, read = 0, min(2*read*int64(2+c.Links.Negatives), l.Nodes*int64(l.Peers))
	}
	for hop := range c.Sample.Fanouts {
		k := relations * mostDrawn(c.Sample, hop, l.Nodes)
		if hop > 0 || c.Links != nil { // labelled seeds are sampled by their owners
			l.SendSamples(fmt.Sprintf("sampled edges of hop %d", hop), "sampled neighbours of the node, "+
				train.OverHops(hop+1),
				steps, read-seeds, k, relations, columns)
		}
		read = min(read+read*k, l.Nodes*int64(l.Peers))
	}
	return read - seeds
}

// mostDrawn returns how many in-edges of one relation a hop samples of a node at most.
func mostDrawn(c Sampling, hop int, nodes int64) int64 {
	k := int64(c.Fanouts[hop])
	if k < 0 || c.Kind != "neighbour" { // labor samples k edges on average only
		return nodes
	}
	return min(nodes, k)
}
