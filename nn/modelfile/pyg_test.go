package modelfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// TestPyG: the layers of a state dict become a model's, with inputs as rows; tensors that do not fit are named.
// The Python tests compare the logits with PyG's.
func TestPyG(t *testing.T) {
	spec := nn.Spec{Task: "single", Features: 3, Classes: 2, LayerOutput: nn.Hidden,
		Encoder: nn.EncoderSpec{Kind: "raw", Out: 3},
		Layers:  []nn.LayerSpec{{Conv: "sage", In: 3, Out: 2, Hops: 1}}}
	state := func() archive {
		return archive{tensors: []tensor{
			{"convs.0.lin_l.weight", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}},
			{"convs.0.lin_l.bias", []int{2}, []float32{7, 8}},
			{"convs.0.lin_r.weight", []int{2, 3}, []float32{-1, -2, -3, -4, -5, -6}},
		}}
	}
	read := func(a archive, spec nn.Spec) (*nn.Model, error) {
		b, err := a.encode()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "pyg.safetensors")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := nn.New(spec, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		s, err := ReadPyG(path)
		if err == nil {
			err = s.Fill(m)
		}
		return m, err
	}
	m, err := read(state(), spec)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float32{}
	for _, p := range m.Params() {
		got[p.Name] = p.Value.Clone().Data
	}
	for name, want := range map[string][]float32{"layer1.nbr.weight": {1, 4, 2, 5, 3, 6}, "layer1.nbr.bias": {7, 8},
		"layer1.self.weight": {-1, -4, -2, -5, -3, -6}} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for want, change := range map[string]func(*archive, *nn.Spec){
		"mlp.weight must be a tensor of a graph layer of PyG": func(a *archive, _ *nn.Spec) {
			a.tensors[0].name = "mlp.weight"
		},
		"must have the 1 layers of the run (got 2)": func(a *archive, _ *nn.Spec) {
			a.tensors = append(a.tensors, tensor{"convs.1.bias", []int{1}, []float32{1}})
		},
		"has no convs.0.lin_l.weight, which layer1 of sage reads": func(a *archive, _ *nn.Spec) {
			a.tensors = a.tensors[1:]
		},
		"convs.0.lin_l.weight must have the shape [2 3], as layer1 of the run (got [3 2])": func(a *archive,
			_ *nn.Spec) {
			a.tensors[0].shape = []int{3, 2}
		},
		"convs.0.lin_l.bias must have 2 values, as layer1 of the run (got 1)": func(a *archive, _ *nn.Spec) {
			a.tensors[1] = tensor{a.tensors[1].name, []int{1}, []float32{7}}
		},
		"convs.0.eps must be 0 or absent: layer1 of sage has no such parameter": func(a *archive, _ *nn.Spec) {
			a.tensors = append(a.tensors, tensor{"convs.0.eps", []int{1}, []float32{1}})
		},
		"needs encoder raw, which has no parameters (got pca)": func(_ *archive, s *nn.Spec) {
			s.Encoder = nn.EncoderSpec{Kind: "pca", Out: 3}
		},
		"has no layers of mlp": func(_ *archive, s *nn.Spec) { s.Layers[0].Conv = "mlp" },
	} {
		a, s := state(), spec
		s.Layers = slices.Clone(spec.Layers)
		change(&a, &s)
		if _, err := read(a, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
