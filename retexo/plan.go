package retexo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/nn"
)

// Plan is a model in a user's words; Spec turns it into layers.
type Plan struct {
	Model            string  // gcn, sage, sage-pool, gat or gin
	Encoder          string  // raw, pca:K (K components) or mlp
	Carry            string  // hidden: rows after norm and activation travel; scores: a row of C class scores does
	Layers           int     // graph layers, ≥ 1
	Hidden           int     // H, width of all layers but the last; also of the encoder mlp
	Hops             int     // aggregations before a layer, ≥ 1
	Heads            int     // gat: heads of all layers; their widths add up to Hidden
	Dropout          float32 // of each layer's input, [0, 1)
	AttentionDropout float32 // gat, [0, 1)
	UnitSum          bool    // the features of a node are divided by the sum of their magnitudes
	Residual         bool    // a layer's own input is added to its output
}

// maxLayers bounds what a plan, which others write, makes this peer take memory for.
const maxLayers = 1000

// Spec returns the layers of p over F features and C classes:
//
//	carry hidden (Retexo "convolution first"): conv → LayerNorm → ReLU, of width H; the last conv straight to C
//	carry scores (Retexo "MLP first"): conv to H → ReLU → linear map to C, in every layer
func (p Plan) Spec(task string, features, classes int) (nn.Spec, error) {
	s := nn.Spec{Task: task, Features: features, Classes: classes, Carry: p.Carry}
	kind, components, _ := strings.Cut(p.Encoder, ":")
	var errs []error
	switch kind {
	case "raw":
		s.Encoder = nn.EncoderSpec{Kind: kind, Out: features}
	case "pca":
		k, err := strconv.Atoi(components)
		if err != nil || k < 1 {
			errs = append(errs, fmt.Errorf("encoder: %q, want pca:K with K components, as pca:128", p.Encoder))
		}
		s.Encoder = nn.EncoderSpec{Kind: kind, Out: k}
	case "mlp":
		s.Encoder = nn.EncoderSpec{Kind: kind, Hidden: p.Hidden, Out: p.Hidden, Dropout: p.Dropout}
		if p.Carry == "scores" {
			s.Encoder.Out = classes
		}
	default:
		errs = append(errs, fmt.Errorf("encoder: %q, want raw, pca:K or mlp", p.Encoder))
	}
	if p.Layers < 1 || p.Layers > maxLayers || p.Hidden < 1 || p.Hops < 1 {
		errs = append(errs, fmt.Errorf("layers %d, hidden %d, hops %d: want at least 1 of each, and at most %d layers", p.Layers, p.Hidden, p.Hops, maxLayers))
	}
	if p.Carry != "hidden" && p.Carry != "scores" {
		errs = append(errs, fmt.Errorf("carry: %q, want hidden or scores", p.Carry))
	}
	if err := errors.Join(errs...); err != nil {
		return nn.Spec{}, err
	}
	s.Encoder.UnitSum = p.UnitSum
	in := s.Encoder.Out
	for k := range p.Layers {
		l := nn.LayerSpec{Conv: p.Model, In: in, Out: p.Hidden, Hops: p.Hops, Dropout: p.Dropout, Residual: p.Residual}
		last := k == p.Layers-1
		if p.Model == "gat" {
			l.Heads, l.AttentionDropout, l.Average = p.Heads, p.AttentionDropout, last
		}
		switch {
		case p.Carry == "scores":
			l.Act, l.Head, l.Average = "relu", []int{classes}, false
			in = classes
		case last:
			l.Out = classes
		default:
			l.Norm, l.Act = true, "relu"
			in = p.Hidden
		}
		s.Layers = append(s.Layers, l)
	}
	return s, nil
}
