package fullbatch

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Label augmentation: labels of training nodes are inputs. In every step each training node randomly either shows its
// label as an input or learns it; inference shows all labels (Shi et al., IJCAI 2021, §3.2). The choice is a function
// of seed, epoch and node, so that a node's owner and the workers with the node in their halo agree.

// labelInputs are the labels in the input of the training view.
type labelInputs struct {
	node  []int64 // IDs of the nodes whose labels are inputs
	at    []int   // index of each label's value in the input
	class []int32 // classes of the wanted nodes, whether or not they are inputs
	other []float32
}

// findLabelInputs gives the training view its own copy of the input and finds the labels in it.
func (t *Trainer) findLabelInputs() {
	if t.Model.Spec.Encoder.Labels == 0 {
		return
	}
	v, first := t.train, t.Model.Spec.Features
	t.given = &labelInputs{class: slices.Clone(v.labels.Class)}
	h, nodes := t.given, v.parts[0].nodes
	if v.input.Sparse != nil {
		s := *v.input.Sparse
		s.Val = slices.Clone(s.Val)
		h.other = slices.Clone(s.Val)
		v.input = graph.Features{Sparse: &s}
		for i := range s.Rows {
			if end := s.RowPtr[i+1]; end > s.RowPtr[i] && int(s.Col[end-1]) >= first {
				h.node, h.at = append(h.node, nodes[i]), append(h.at, int(end-1))
			}
		}
		return
	}
	d := mat.New(v.input.Dense.Rows, v.input.Dense.Cols)
	d.CopyFrom(v.input.Dense)
	v.input = graph.Features{Dense: d}
	for i := range d.Rows {
		if k := slices.Index(d.Row(i)[first:], 1); k >= 0 {
			h.node, h.at = append(h.node, nodes[i]), append(h.at, i*d.Stride+first+k)
		}
	}
}

// drawLabelInputs samples which labels are inputs of this step; the other labels are learned.
func (t *Trainer) drawLabelInputs() {
	h, v := t.given, t.train
	if h == nil {
		return
	}
	key := t.key.FoldString("labels").Fold(uint64(t.At.Round))
	given := func(node int64) bool {
		return key.Float64(uint64(node)) < float64(t.Model.Spec.Encoder.Labels)
	}
	values := v.input.Dense.Data
	if s := v.input.Sparse; s != nil {
		s.Val, h.other = h.other, s.Val // a tape identifies values by address: changed values need a new one
		values = s.Val
	}
	for k, at := range h.at {
		values[at] = 0
		if given(h.node[k]) {
			values[at] = 1
		}
	}
	for k, i := range t.split[graph.Train] {
		v.labels.Class[k] = h.class[k]
		if given(t.shard.Global[i]) {
			v.labels.Class[k] = -1
		}
	}
}
