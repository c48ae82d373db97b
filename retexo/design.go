package retexo

import (
	"errors"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// Design describes a model that is trained layer by layer in a user's terms; Spec turns it into layers. nn.Architecture
// is its counterpart for models that are trained end to end.
type Design struct {
	Model      string // the name of an nn.Convolution that is trained layer by layer
	Encoder    string // "raw", "pca" (Components columns) or "mlp"
	Components int    // encoder pca; at least 1
	// "hidden" sends rows of width Hidden, after norm and activation; "logits" sends rows of C logits
	LayerOutput      string
	Layers           int     // graph layers, 1 to 1000
	Hidden           int     // H, width of encoder mlp and of all layers except the last; at least 1
	Hops             int     // aggregations before a layer, at least 1
	Heads            int     // attention heads of each layer; their widths add up to Hidden
	Dropout          float32 // dropout of each layer's input, [0, 1)
	AttentionDropout float32 // [0, 1)
	RowNorm          string  // norm that divides a node's features: "l1", "l2"; else none
	Residual         bool    // a layer's own input is added to its output
	EdgeColumns      int     // columns of the edges, for convolutions that read them
	// encoder pca: the closed form whose logits are columns next to the components (nil = none)
	Classes *closed.Layout
}

// maxLayers bounds the memory that a design from another peer can make this one allocate.
const maxLayers = 1000

// Spec returns the layers of d over F features and C classes:
//
//	layer output hidden (Retexo "convolution first"): conv → LayerNorm → ReLU, of width H; the last conv to C
//	layer output logits (Retexo "MLP first"): conv to H → ReLU → linear map to C, in every layer
func (d Design) Spec(task string, features, classes int) (nn.Spec, error) {
	if err := d.validate(); err != nil {
		return nn.Spec{}, err
	}
	logits := d.LayerOutput == "logits"
	s := nn.Spec{Task: task, Features: features, Classes: classes, LayerOutput: nn.Hidden,
		Encoder: nn.EncoderSpec{Kind: d.Encoder, L1Norm: d.RowNorm == "l1", L2Norm: d.RowNorm == "l2"}}
	switch e := &s.Encoder; d.Encoder {
	case "raw":
		e.Out = features
	case "pca":
		if e.Out, e.Classes = d.Components, d.Classes; d.Classes != nil {
			e.Out += classes
		}
	case "mlp":
		e.Hidden, e.Out, e.Dropout = d.Hidden, d.Hidden, d.Dropout
		if logits {
			e.Out = classes
		}
	}
	if logits {
		s.LayerOutput = nn.Logits
	}
	conv, _ := nn.ConvolutionNamed(d.Model)
	in := s.Encoder.Out
	for k := range d.Layers {
		l := nn.LayerSpec{Conv: d.Model, In: in, Out: d.Hidden, Hops: d.Hops, Dropout: d.Dropout, Residual: d.Residual}
		last := k == d.Layers-1
		if conv.EdgeColumns {
			l.EdgeColumns = d.EdgeColumns
		}
		if conv.Heads {
			l.Heads, l.AttentionDropout, l.Average = d.Heads, d.AttentionDropout, last
		}
		switch {
		case logits:
			l.Act, l.Head, l.Average = "relu", []int{classes}, false
			in = classes
		case last:
			l.Out = classes
		default:
			l.Norm, l.Act = true, "relu"
			in = d.Hidden
		}
		s.Layers = append(s.Layers, l)
	}
	return s, nil
}

func (d Design) validate() error {
	var errs train.ConfigFaults
	fault := errs.If
	fault(d.Encoder != "raw" && d.Encoder != "pca" && d.Encoder != "mlp", "encoder must be raw, pca or mlp (got %q)",
		d.Encoder)
	fault(d.Encoder == "pca" && d.Components < 1, "components must be at least 1 with encoder pca (got %d)",
		d.Components)
	fault(d.LayerOutput != "hidden" && d.LayerOutput != "logits", "layer_output must be hidden or logits (got %q)",
		d.LayerOutput)
	fault(d.Layers < 1 || d.Layers > maxLayers, "layers must be 1 to %d (got %d)", maxLayers, d.Layers)
	fault(d.Hidden < 1, "hidden must be at least 1 (got %d)", d.Hidden)
	fault(d.Hops < 1, "hops must be at least 1 (got %d)", d.Hops)
	return errors.Join(errs...)
}
