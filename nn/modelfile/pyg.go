package modelfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// ErrForeign is the error of Read for tensors that another program wrote, as ReadPyG reads.
var ErrForeign = errors.New(`the metadata must have the key "heddle": these are tensors of another program`)

// PyG has the layers of a state dict of PyTorch Geometric. It lacks what a model file has besides tensors, a
// specification and a card: a run makes its model by its plan, and Fill compares the shapes.
type PyG struct {
	layers []pygLayer
	Print  [32]byte // SHA-256 of the file
}

// pygLayer has the tensors of one layer by their names in it. The name of the layer ends with a dot, or is empty.
type pygLayer struct {
	name    string
	tensors map[string]tensor
}

// pygTensor matches the end of the name of a tensor of a graph layer of PyG. A module may call its layers as it likes:
// what is before it is the layer's name.
var pygTensor = regexp.MustCompile(`(^|\.)(lin(_l|_r|_rel|_root|_src|_dst|_edge)?\.(weight|bias)|att(_src|_dst)?|` +
	`bias|nn\.(lins\.)?[0-9]+\.(weight|bias)|eps)$`)

// pygNames has, for each convolution, the tensors of a layer, and for each of them PyG's names in its versions. GINConv
// has a module of the user's: an MLP of PyG or a Sequential of two linear maps with a function between them.
var pygNames = map[string][][]string{
	"gcn":  {{"nbr.weight", "lin.weight"}, {"nbr.bias", "bias"}},
	"sage": {{"nbr.weight", "lin_l.weight"}, {"nbr.bias", "lin_l.bias"}, {"self.weight", "lin_r.weight"}},
	"sage-sum": {{"nbr.weight", "lin_rel.weight"}, {"nbr.bias", "lin_rel.bias"},
		{"self.weight", "lin_root.weight"}},
	"gat": {{"pre.weight", "lin.weight", "lin_src.weight"}, {"attention.src", "att_src"},
		{"attention.dst", "att_dst"}, {"post.bias", "bias"}},
	"gatv2": {{"pre.weight", "lin_l.weight"}, {"pre.bias", "lin_l.bias"}, {"dst.weight", "lin_r.weight"},
		{"dst.bias", "lin_r.bias"}, {"attention.vector", "att"}, {"attention.edge", "lin_edge.weight"},
		{"post.bias", "bias"}},
	"gin": {{"nbr.weight", "nn.lins.0.weight", "nn.0.weight"}, {"nbr.bias", "nn.lins.0.bias", "nn.0.bias"},
		{"post.weight", "nn.lins.1.weight", "nn.2.weight"}, {"post.bias", "nn.lins.1.bias", "nn.2.bias"}},
}

// ReadPyG reads a safetensors file with the state dict of a model of PyG's graph layers, in the dict's order.
func ReadPyG(path string) (*PyG, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &PyG{Print: sha256.Sum256(b)}
	// decode returns tensors in the order of their data, which is the order of the dict, and so of the layers.
	for _, t := range a.tensors {
		at := pygTensor.FindStringSubmatchIndex(t.name)
		if at == nil {
			return nil, fmt.Errorf("%s: %s must be a tensor of a graph layer of PyG (got one of another module)", path,
				t.name)
		}
		if err := finite(t); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		name := t.name[:at[4]]
		k := slices.IndexFunc(s.layers, func(l pygLayer) bool { return l.name == name })
		if k < 0 {
			k = len(s.layers)
			s.layers = append(s.layers, pygLayer{name, map[string]tensor{}})
		}
		s.layers[k].tensors[t.name[at[4]:]] = t
	}
	return s, nil
}

// Fill copies the tensors to the layers of m, which must be as many and of the same kinds, and leaves m's other
// parameters, such as norms and heads, at their random values. An error names the tensor that is missing, of another
// shape, or none of the layer's.
func (s *PyG) Fill(m *nn.Model) error {
	if len(s.layers) != len(m.Layers) {
		return fmt.Errorf("the state dict must have the %d layers of the run (got %d)", len(m.Layers), len(s.layers))
	}
	// Components of pca are computed only for models that start at random, and an encoder is no layer of PyG.
	if len(m.Encoder.Params()) > 0 {
		return fmt.Errorf("a state dict of graph layers needs encoder raw, which has no parameters (got %s)",
			m.Spec.Encoder.Kind)
	}
	params := map[string]*tape.Param{}
	for _, p := range m.Params() {
		params[p.Name] = p
	}
	for k, l := range s.layers { // in the order of the dict, which is the order in which a module registers them
		if err := l.fill(fmt.Sprintf("layer%d", k+1), m.Spec.Layers[k].Conv, params); err != nil {
			return err
		}
	}
	return nil
}

// fill copies the tensors of l to the layer of that name among params. It checks shapes, not only sizes, of matrices: a
// map of 16 columns to 8 has as many values as its inverse.
func (l pygLayer) fill(layer, conv string, params map[string]*tape.Param) error {
	names, ok := pygNames[conv]
	if !ok {
		return fmt.Errorf("a state dict of PyG has no layers of %s", conv)
	}
	used := map[string]bool{} // names in l
	for _, n := range names {
		p := params[layer+"."+n[0]]
		if p == nil { // a layer without a bias, or without columns of edges
			continue
		}
		k := slices.IndexFunc(n[1:], func(name string) bool { return l.tensors[name].data != nil })
		if k < 0 {
			return fmt.Errorf("the state dict has no %s%s, which %s of %s reads", l.name, n[1], layer, conv)
		}
		t := l.tensors[n[1+k]]
		used[n[1+k]] = true
		rows, cols := p.Value.Rows, p.Value.Cols
		if strings.HasSuffix(n[0], ".weight") || n[0] == "attention.edge" { // PyG has the outputs as rows
			if !slices.Equal(t.shape, []int{cols, rows}) {
				return fmt.Errorf("%s must have the shape %v, as %s of the run (got %v)", t.name, []int{cols, rows},
					layer, t.shape)
			}
			for i := range rows {
				for j := range cols {
					p.Value.Set(i, j, t.data[j*rows+i])
				}
			}
			continue
		}
		if len(t.data) != rows*cols {
			return fmt.Errorf("%s must have %d values, as %s of the run (got %d)", t.name, rows*cols, layer,
				len(t.data))
		}
		p.Value.CopyFrom(mat.View(rows, cols, t.data)) // a vector for each head, one after the other, in both
	}
	// What is not read may only be what changes nothing: eps of a GINConv, a bias that was never learned.
	for _, name := range slices.Sorted(maps.Keys(l.tensors)) {
		t := l.tensors[name]
		// PyG before 2.5 lists the one map of both ends of a GATConv twice.
		twice := name == "lin_dst.weight" && slices.Equal(t.data, l.tensors["lin_src.weight"].data)
		if !used[name] && !twice && slices.ContainsFunc(t.data, func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("%s must be 0 or absent: %s of %s has no such parameter", t.name, layer, conv)
		}
	}
	return nil
}
