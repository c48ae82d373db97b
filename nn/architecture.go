package nn

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
)

// Architecture describes a model that is trained end to end in a user's terms: layers of one convolution on raw
// features; the last one gives the classes. Numbers have a linear head instead, since a mean over neighbours of one
// column has little information about them. Spec turns it into layers.
type Architecture struct {
	Model    string       // the name of a Convolution
	Task     string       // as in Spec
	Decoder  *DecoderSpec // for link prediction
	Features int          // F
	// width of learned rows of nodes without features, which their owners keep (encoder embedding; 0 = the encoder is
	// raw)
	Learned  int
	Classes  int    // C
	Layers   int    // 1 to 1000
	Hidden   int    // width of all layers except the last, with all heads
	Hops     int    // aggregations of the first layer, or of the only one that propagates (0 = 1)
	Norm     string // after each layer that does not give the classes: "", "none", "layer" or "batch"
	Residual bool   // a layer's input is added to its output
	Dropout  float32

	Heads            int     // attention heads of all layers except the last, which averages one head
	AttentionDropout float32 // dropout probability of attention coefficients
	Alpha            float32 // restart probability of a convolution that has one
	Relations        int     // number of the graph's relations, for a typed convolution
	Bases            int     // bases of its matrices
	EdgeColumns      int     // number of columns of the graph's edges
}

// Spec returns the layers of a; it ignores settings that its convolution does not have.
func (a Architecture) Spec() (Spec, error) {
	s := Spec{
		Task: a.Task, Features: a.Features, Classes: a.Classes, LayerOutput: Hidden, Decoder: a.Decoder,
		Encoder: EncoderSpec{Kind: "raw", Out: a.Features},
	}
	if a.Layers < 1 || a.Layers > 1000 {
		return Spec{}, fmt.Errorf("layers must be 1 to 1000 (got %d)", a.Layers)
	}
	switch a.Norm {
	case "", "none", "layer", "batch":
	default:
		return Spec{}, fmt.Errorf("norm must be none, layer or batch (got %q)", a.Norm)
	}
	c, ok := ConvolutionNamed(a.Model)
	if !ok {
		return Spec{}, fmt.Errorf("model must be one of %q (got %q)", Convolutions(nil), a.Model)
	}
	in := a.Features
	if a.Learned > 0 {
		in = a.Learned
		s.Encoder = EncoderSpec{Kind: "embedding", Hidden: in, Out: in}
	}
	for k := range a.Layers {
		s.Layers = append(s.Layers, a.layer(c, in, k == a.Layers-1))
		in = a.Hidden
	}
	if c.arrange != nil {
		c.arrange(&s, a)
	} else if a.Hops != 0 {
		s.Layers[0].Hops = a.Hops
	}
	if a.Learned > 0 && s.Encoder.Kind != "embedding" {
		return Spec{}, fmt.Errorf("encoder must be raw for model %s (got embedding): it reads sums of features "+
			"over several hops", a.Model)
	}
	return s, s.Validate()
}

// layer returns a layer of in columns.
func (a Architecture) layer(c Convolution, in int, last bool) LayerSpec {
	l := LayerSpec{Conv: a.Model, In: in, Out: a.Hidden, Hops: 1, Act: "relu", Dropout: a.Dropout, Residual: a.Residual}
	if last && c.Aggregates && c.arrange == nil && a.Task == graph.Numbers.String() {
		l.Head, last = []int{a.Classes}, false
	}
	l.Norm, l.BatchNorm = a.Norm == "layer" && !last, a.Norm == "batch" && !last
	if c.Heads {
		l.Act, l.Heads, l.AttentionDropout = "elu", a.Heads, a.AttentionDropout
	}
	if c.Typed {
		l.Relations, l.Bases = a.Relations, a.Bases
	}
	if c.EdgeColumns {
		l.EdgeColumns = a.EdgeColumns
	}
	if last {
		l.Out, l.Act = a.Classes, ""
		if c.Heads {
			l.Heads, l.Average = 1, true
		}
	}
	return l
}

// Preset returns the Architecture of a model without normalisation, with all other settings of its
// Recipe. A typed convolution has no preset, because its relations are a graph's.
func Preset(model, task string, features, classes, hidden, layers int) (Spec, error) {
	c, _ := ConvolutionNamed(model)
	r := c.Recipe
	return Architecture{
		Model: model, Task: task, Features: features, Classes: classes, Layers: layers, Hidden: hidden, Hops: r.Hops,
		Dropout: r.Dropout, Heads: r.Heads, AttentionDropout: r.AttentionDropout, Alpha: r.Alpha,
	}.Spec()
}
