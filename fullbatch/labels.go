package fullbatch

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Label augmentation: labels of training nodes are inputs. At every step each training node is chosen anew to show its
// label as an input or to learn it; inference shows all (Shi et al., IJCAI 2021, §3.2). The choice is a function of
// seed, epoch and node, so that a node's owner and the workers with it in their halo agree.

// labelInputs are the labels in the input of the training view.
type labelInputs struct {
	node  []int64 // whose labels they are
	at    []int   // where their values lie
	class []int32 // of the wanted nodes, whether given or not
	other []float32
}

// findLabelInputs makes the training view's input its own and finds the labels in it.
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

// drawLabelInputs draws which labels are inputs of this step, and leaves the others to be learned.
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
		s.Val, h.other = h.other, s.Val // a tape knows values by their address: what changes must lie elsewhere
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
