package fullbatch

import "github.com/heddle-gnn/heddle/graph"

// view is what computing the scores of some nodes takes: of each unit, the edges it sees and the nodes it computes.
type view struct {
	input  graph.Features
	graphs []*graph.CSR // of each unit; nil: it sees no edge
	nodes  [][]int64    // of each unit, the global IDs of its input's rows
	rows   []int32      // places of the wanted nodes among the last unit's rows; nil: they are all of these
	labels graph.Labels // of the wanted nodes
}

// whole returns the view that computes every node and picks those wanted.
func (t *Trainer) whole(wanted []int32, inductive bool) *view {
	v := &view{input: t.input, rows: wanted, labels: t.shard.Labels.Select(wanted)}
	for _, u := range t.units {
		g := u.full
		if inductive {
			g = u.train
		}
		v.graphs, v.nodes = append(v.graphs, g), append(v.nodes, t.shard.Global)
	}
	return v
}

// blocks returns the view that computes the wanted nodes from the nodes within reach of them and no others: the scores
// of few nodes need few rows (a layer's message-flow block; Hamilton, Ying and Leskovec, NeurIPS 2017, algorithm 2).
// Where the blocks have most of the edges that the whole has, or a layer takes more than one hop, it is the whole.
func (t *Trainer) blocks(wanted []int32, inductive bool) *view {
	all := t.whole(wanted, inductive)
	v := &view{graphs: make([]*graph.CSR, len(t.units)), nodes: make([][]int64, len(t.units)), labels: all.labels}
	reach, edges, limit := wanted, 0, 0
	for k := len(t.units) - 1; k >= 0; k-- {
		if g := all.graphs[k]; g != nil {
			if t.units[k].layer.Spec.Hops > 1 {
				return all
			}
			v.graphs[k], reach = graph.Block(g, reach)
			edges, limit = edges+v.graphs[k].NumEdges(), limit+g.NumEdges()/2
		}
		v.nodes[k] = make([]int64, len(reach))
		for i, j := range reach {
			v.nodes[k][i] = t.shard.Global[j]
		}
	}
	if edges > limit {
		return all
	}
	v.input = t.input.Select(reach)
	return v
}
