package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// convs are the values of LayerSpec.Conv.
var convs = []string{"gcn", "sage", "sage-pool", "gat", "gin", "rgcn", "appnp", "sign", "mlp"}

// faults returns all that is wrong with s.
func (s LayerSpec) faults() (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if !slices.Contains(convs, s.Conv) {
		bad("conv is %q, want one of %q", s.Conv, convs)
	}
	if s.In < 1 || s.In > maxWidth {
		bad("in is %d, want 1 to %d", s.In, maxWidth)
	}
	if s.Out < 1 || s.Out > maxWidth {
		bad("out is %d, want 1 to %d", s.Out, maxWidth)
	}
	if s.Hops < 0 || s.Hops > 1 && !slices.Contains([]string{"gcn", "sage", "gin", "appnp", "sign"}, s.Conv) || s.Hops > maxHops {
		bad("hops is %d, want 1, or up to %d for gcn, sage, gin, appnp or sign", s.Hops, maxHops)
	}
	if s.Conv == "gat" {
		if s.Heads < 1 || s.Heads > 1024 {
			bad("heads is %d, want 1 to 1024", s.Heads)
		} else if !s.Average && s.Out%s.Heads != 0 {
			bad("out is %d, want a multiple of %d heads side by side", s.Out, s.Heads)
		}
	} else if s.Heads != 0 || s.Average || s.AttentionDropout != 0 {
		bad("heads, average and attention_dropout belong to gat, not to %s", s.Conv)
	}
	if s.Conv == "sign" && (s.Hops < 1 || s.In%(s.Hops+1) != 0 || s.Out%(s.Hops+1) != 0) {
		bad("hops is %d and the widths are %d and %d, want at least 1 hop and multiples of one more", s.Hops, s.In, s.Out)
	}
	if s.Conv == "appnp" && !(s.Teleport > 0 && s.Teleport <= 1) || s.Conv != "appnp" && s.Teleport != 0 {
		bad("teleport is %g, want more than 0 and at most 1 for appnp, and 0 for others", s.Teleport)
	}
	if s.Conv == "rgcn" {
		if s.Relations < 1 || s.Relations > graph.MaxRelations {
			bad("relations is %d, want 1 to %d: rgcn sees the typed edges of a graph that has relations", s.Relations, graph.MaxRelations)
		}
		if s.Bases < 0 || s.Bases > s.Relations {
			bad("bases is %d, want 0 (none) to the %d relations", s.Bases, s.Relations)
		}
	} else if s.Relations != 0 || s.Bases != 0 {
		bad("relations and bases belong to rgcn, not to %s", s.Conv)
	}
	if s.Norm && s.BatchNorm {
		bad("norm and batch_norm are both true, want one of them")
	}
	if !slices.Contains([]string{"", "relu", "elu"}, s.Act) {
		bad(`act is %q, want "", "relu" or "elu"`, s.Act)
	}
	if !(s.Dropout >= 0 && s.Dropout < 1) {
		bad("dropout is %g, want at least 0 and less than 1", s.Dropout)
	}
	if !(s.AttentionDropout >= 0 && s.AttentionDropout < 1) {
		bad("attention_dropout is %g, want at least 0 and less than 1", s.AttentionDropout)
	}
	for k, w := range s.Head {
		if w < 1 || w > maxWidth {
			bad("head[%d] is %d, want 1 to %d", k, w, maxWidth)
		}
	}
	return all
}

const maxHops = 1000

const maxWidth = 1 << 24 // of any row: what comes from a file is bounded before anything is allocated

// Validate returns all that is wrong with s, each fault naming its field, or nil.
func (s Spec) Validate() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf("nn: "+format, args...)) }
	if s.Task != "single" && s.Task != "multi" {
		bad(`task is %q, want "single" or "multi"`, s.Task)
	}
	if s.Features < 1 || s.Features > maxWidth {
		bad("features is %d, want 1 to %d", s.Features, maxWidth)
	}
	if s.Classes < 1 || s.Classes > maxWidth {
		bad("classes is %d, want 1 to %d", s.Classes, maxWidth)
	}
	scores := s.Carry == "scores"
	if !scores && s.Carry != "hidden" {
		bad(`carry is %q, want "hidden" or "scores"`, s.Carry)
	}
	e := s.Encoder
	switch e.Kind {
	case "raw":
		want := s.Features
		if e.Labels != 0 {
			want += s.Classes
		}
		if e.Out != want {
			bad("encoder.out is %d, want the %d features (%d with the classes as labels are given)", e.Out, s.Features, s.Features+s.Classes)
		}
	case "sign":
		if e.Hops < 1 || e.Hops > maxHops || e.Out != (e.Hops+1)*s.Features {
			bad("encoder.hops is %d and encoder.out %d, want 1 to %d hops, and one more times the %d features", e.Hops, e.Out, maxHops, s.Features)
		}
	case "pca":
		if e.Out < 1 || e.Out > s.Features {
			bad("encoder.out is %d, want 1 to the %d features", e.Out, s.Features)
		}
	case "mlp":
		if e.Hidden < 1 || e.Hidden > maxWidth {
			bad("encoder.hidden is %d, want 1 to %d", e.Hidden, maxWidth)
		}
		want := e.Hidden
		if scores {
			want = s.Classes
		}
		if e.Out != want {
			bad("encoder.out is %d, want %d as carry is %q", e.Out, want, s.Carry)
		}
	default:
		bad(`encoder.kind is %q, want "raw", "sign", "pca" or "mlp"`, e.Kind)
	}
	if !(e.Labels >= 0 && e.Labels < 1) || e.Labels > 0 && (e.Kind != "raw" || s.Task != "single") {
		bad("encoder.labels is %g, want at least 0 and less than 1, and 0 unless the encoder is raw and a node has one class", e.Labels)
	}
	if e.Hops != 0 && e.Kind != "sign" {
		bad("encoder.hops is %d, want 0 for %q", e.Hops, e.Kind)
	}
	if !(e.Dropout >= 0 && e.Dropout < 1) {
		bad("encoder.dropout is %g, want at least 0 and less than 1", e.Dropout)
	}
	if len(s.Layers) == 0 && e.Kind != "mlp" {
		bad("layers is empty, want one at least where the encoder is %q", e.Kind)
	}
	if c := s.CorrectSmooth; c != nil {
		if err := c.Validate(); err != nil {
			bad("%w", err)
		}
		if s.Task != "single" {
			bad("correct_smooth is of one class a node, not of several")
		}
	}
	width := e.Out
	for k, l := range s.Layers {
		for _, err := range l.faults() {
			bad("layers[%d].%w", k, err)
		}
		if l.Conv == "sign" && (k > 0 || l.Hops != e.Hops) {
			bad("layers[%d].conv is sign of %d hops, want it first, behind an encoder of as many (it has %d)", k, l.Hops, e.Hops)
		}
		if l.In != width {
			bad("layers[%d].in is %d, want %d, what comes before hands on", k, l.In, width)
		}
		width = l.Out
		if n := len(l.Head); n > 0 && (scores || k == len(s.Layers)-1) {
			width = l.Head[n-1]
		}
		if n := len(l.Head); n > 0 && l.Head[n-1] != s.Classes {
			bad("layers[%d].head ends in %d, want the %d classes", k, l.Head[n-1], s.Classes)
		} else if (scores || k == len(s.Layers)-1) && width != s.Classes {
			bad("layers[%d].out is %d, want the %d classes or a head", k, width, s.Classes)
		}
	}
	return errors.Join(all...)
}

// BatchNormed reports whether a layer has a BatchNorm: its scores in training then depend on all rows together.
func (s Spec) BatchNormed() bool {
	return slices.ContainsFunc(s.Layers, func(l LayerSpec) bool { return l.BatchNorm })
}

// Preset returns the ordinary end-to-end architecture of a model (gcn, sage, sage-pool, gat, gin, mlp): the given number of
// layers on raw features, the last one straight to the classes. For gat, hidden is the width of 8 heads together and
// the last layer averages one head (Veličković et al., ICLR 2018, §3.3).
func Preset(model, task string, features, classes, hidden, layers int) (Spec, error) {
	s := Spec{
		Task: task, Features: features, Classes: classes, Carry: "hidden",
		Encoder: EncoderSpec{Kind: "raw", Out: features},
	}
	if layers < 1 || layers > 1000 {
		return Spec{}, fmt.Errorf("nn: layers is %d, want 1 to 1000", layers)
	}
	in := features
	for k := range layers {
		l := LayerSpec{Conv: model, In: in, Out: hidden, Hops: 1, Act: "relu", Dropout: 0.5}
		if model == "gat" {
			l.Heads, l.Act, l.Dropout, l.AttentionDropout = 8, "elu", 0.6, 0.6
		}
		if k == layers-1 {
			l.Out, l.Act = classes, ""
			if model == "gat" {
				l.Heads, l.Average = 1, true
			}
		}
		s.Layers = append(s.Layers, l)
		in = hidden
	}
	return s, s.Validate()
}

// PresetAPPNP returns layers without edges, the last of which propagates what it puts out: so many hops, each with
// that share of teleport (Klicpera, Bojchevski and Günnemann, ICLR 2019).
func PresetAPPNP(task string, features, classes, hidden, layers, hops int, teleport float32) (Spec, error) {
	s, err := Preset("mlp", task, features, classes, hidden, layers)
	if err != nil {
		return Spec{}, err
	}
	last := &s.Layers[layers-1]
	last.Conv, last.Hops, last.Teleport = "appnp", hops, teleport
	return s, s.Validate()
}

// PresetSIGN returns layers without edges on features beside which stand their aggregates of 1 to hops hops: the first has a
// matrix for each, the hidden width being that of one, the others see all (Frasca et al., 2020, arXiv 2004.11198).
func PresetSIGN(task string, features, classes, hidden, layers, hops int) (Spec, error) {
	if layers < 2 || hops < 1 || hops > maxHops {
		return Spec{}, fmt.Errorf("nn: layers is %d and hops is %d, want at least 2 layers and 1 to %d hops for sign", layers, hops, maxHops)
	}
	s, err := Preset("mlp", task, features, classes, hidden, layers)
	if err != nil {
		return Spec{}, err
	}
	s.Encoder = EncoderSpec{Kind: "sign", Hops: hops, Out: (hops + 1) * features}
	first := &s.Layers[0]
	first.Conv, first.Hops, first.In, first.Out = "sign", hops, s.Encoder.Out, (hops+1)*hidden
	s.Layers[1].In = first.Out
	return s, s.Validate()
}
