package onnx

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/nn/pairs"
	"github.com/heddle-gnn/heddle/nn/smooth"
)

// fields returns the values of a field of a message.
func fields(t *testing.T, m []byte, field protowire.Number) (all [][]byte) {
	t.Helper()
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m = m[n:]
		n = protowire.ConsumeFieldValue(number, kind, m)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		if number == field && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(m)
			all = append(all, v)
		}
		m = m[n:]
	}
	return all
}

// names returns the texts of a field of each message.
func names(t *testing.T, messages [][]byte, field protowire.Number) (all []string) {
	t.Helper()
	for _, m := range messages {
		for _, v := range fields(t, m, field) {
			all = append(all, string(v))
		}
	}
	return all
}

// TestFiles: what each convolution writes is the same each time, declares its inputs, and every tensor that a node reads is
// an input, a constant or the output of a node before it. Python tests compare the values with those of peer predict.
func TestFiles(t *testing.T) {
	for name := range convolutions {
		preset, typed := name, slices.Contains([]string{"rgcn", "rsage", "rgat"}, name)
		if typed {
			preset = "gcn"
		}
		spec, err := nn.Preset(preset, "single", 5, 3, 8, 2)
		if err != nil {
			t.Fatal(err)
		}
		var more []string
		if name != "mlp" {
			more = []string{"edge_index", "edge_weight"}
		}
		if typed {
			more = append(more, "edge_type")
			for k := range spec.Layers {
				spec.Layers[k].Conv, spec.Layers[k].Relations = name, 4
				if name == "rgat" {
					spec.Layers[k].Heads = 1
				}
			}
		}
		checkFile(t, spec, more...)
		if name == "gine" || name == "gatv2" {
			for k := range spec.Layers {
				spec.Layers[k].EdgeColumns = 6
			}
			checkFile(t, spec, append(more, "edge_attr")...)
		}
	}
	mlp, err := nn.Preset("mlp", "single", 5, 3, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	mlp.CorrectSmooth = &smooth.CorrectSmooth{Steps: 2, Correct: 0.5, Smooth: 0.5}
	checkFile(t, mlp, "edge_index", "edge_weight", "labels")
	checkFile(t, nn.Spec{Task: "single", Features: 5, Classes: 3, LayerOutput: nn.Hidden, Encoder: nn.EncoderSpec{Kind: "closed", Out: 3},
		Closed: &closed.Layout{Rounds: 2, Hops: 1, LogitHops: 2, AllHops: true, Degree: true, Random: 4, LeaveOut: true, Coarse: 9, Components: 2}},
		"edge_index", "edge_weight", "labels", "train_mask", "sparse")
	checkFile(t, nn.Spec{Task: "single", Features: 5, Classes: 3, LayerOutput: nn.Hidden, Encoder: nn.EncoderSpec{Kind: "closed", Out: 3},
		Closed: &closed.Layout{Rounds: 4, Hops: 2, LogitHops: 2, AllHops: true, Residual: true, Alone: 2, WithholdFew: true}},
		"edge_index", "edge_weight", "sparse")
	checkFile(t, nn.Spec{Task: "single", Features: 5, Classes: 3, LayerOutput: nn.Hidden, Encoder: nn.EncoderSpec{Kind: "closed", Out: 3},
		Closed: &closed.Layout{Rounds: 2, Hops: 2, AllHops: true, Coarse: 6, OwnExact: true}},
		"edge_index", "edge_weight", "sparse")
	layer := nn.LayerSpec{Conv: "sage", In: 2 + 3, Out: 3, Hops: 1}
	checkFile(t, nn.Spec{Task: "single", Features: 5, Classes: 3, LayerOutput: nn.Hidden, Layers: []nn.LayerSpec{layer}, Encoder: nn.EncoderSpec{Kind: "pca",
		Out: 2 + 3, Classes: &closed.Layout{Rounds: 2, Hops: 1, AllHops: true, Degree: true, Random: 4, LeaveOut: true}}},
		"edge_index", "edge_weight", "labels", "train_mask")
}

// checkFile compares the inputs behind x with those that are given.
func checkFile(t *testing.T, spec nn.Spec, more ...string) {
	t.Helper()
	m, err := nn.New(spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	for _, w := range []io.Writer{&a, &b} {
		if err := Write(w, m, modelfile.Card{Dataset: "d", Temperature: 2, Classes: []string{"x", "y", "z"}}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same model must give the same bytes")
	}
	graph := fields(t, a.Bytes(), 7)[0]
	inputs := names(t, fields(t, graph, 11), 1)
	if must := append([]string{"x"}, more...); !slices.Equal(inputs, must) {
		t.Errorf("inputs are %q, must be %q", inputs, must)
	}
	if got := names(t, fields(t, graph, 12), 1); !slices.Equal(got, []string{"logits", "probabilities"}) {
		t.Errorf("outputs are %q", got)
	}
	known := map[string]bool{}
	for _, name := range slices.Concat(inputs, names(t, fields(t, graph, 5), 8)) {
		if known[name] {
			t.Errorf("%s is declared twice", name)
		}
		known[name] = true
	}
	for _, node := range fields(t, graph, 1) {
		for _, in := range names(t, [][]byte{node}, 1) {
			if !known[in] {
				t.Errorf("%q reads %s, which nothing gives", names(t, [][]byte{node}, 4), in)
			}
		}
		for _, out := range names(t, [][]byte{node}, 2) {
			known[out] = true
		}
	}
}

// TestTemperaturesOfClasses: the temperatures of several classes a node are a constant of the graph.
func TestTemperaturesOfClasses(t *testing.T) {
	spec, err := nn.Preset("mlp", "multi", 5, 3, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := nn.New(spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := Write(&file, m, modelfile.Card{Temperature: 2, Temperatures: []float64{0.5, 1, 4}}); err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, x := range []float32{0.5, 1, 4} {
		want = binary.LittleEndian.AppendUint32(want, math.Float32bits(x))
	}
	for _, constant := range fields(t, fields(t, file.Bytes(), 7)[0], 5) {
		if bytes.Equal(fields(t, constant, 9)[0], want) {
			return
		}
	}
	t.Errorf("no constant is %x", want)
}

// TestRefusals: what ONNX cannot express is refused by name.
func TestRefusals(t *testing.T) {
	gcn, err := nn.Preset("gcn", "single", 5, 3, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	own := gcn
	own.Layers = slices.Clone(gcn.Layers)
	own.Layers[1].Conv = "one of our own"
	for want, spec := range map[string]nn.Spec{"a model of links": {Decoder: &pairs.Spec{Kind: "dot"}}, "layer 2": own,
		"without features": {Closed: &closed.Layout{Adjacent: 3}}} {
		if err := Write(io.Discard, &nn.Model{Spec: spec}, modelfile.Card{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("must be refused for %q (got %v)", want, err)
		}
	}
}
