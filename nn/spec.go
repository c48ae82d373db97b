package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// ReadsEdges reports whether the model computes a node's logits from the rows of its neighbours, too.
func (s Spec) ReadsEdges() bool {
	if c := s.Closed; c != nil {
		return c.Hops > 0 || c.LogitHops > 0 || c.Own > 0 || c.Adjacent > 0
	}
	return s.CorrectSmooth != nil || slices.ContainsFunc(s.Layers, func(l LayerSpec) bool {
		c, _ := ConvolutionNamed(l.Conv)
		return c.Aggregates
	})
}

// ReadsEdgeColumns reports whether a layer reads the columns of edges.
func (s Spec) ReadsEdgeColumns() bool {
	return slices.ContainsFunc(s.Layers, func(l LayerSpec) bool { return l.EdgeColumns > 0 })
}

// Kind returns what the labels are that the model predicts.
func (s Spec) Kind() graph.TargetKind {
	k, _ := graph.KindNamed(s.Task)
	return k
}

// ReadsLabels reports whether the labels of training nodes, and of validation nodes, are an input of the model.
func (s Spec) ReadsLabels() (train, val bool) {
	classes := s.Encoder.Classes
	train = s.Closed != nil && s.Closed.LeaveOut || classes != nil && classes.LeaveOut || s.Encoder.Labels > 0
	return train || s.CorrectSmooth != nil, s.SiteShares != nil
}

// Unlabelled returns a warning if the model reads labels that no node has (empty = it has all that it reads).
func (s Spec) Unlabelled(l graph.Labels, split []graph.Split) string {
	var lacks []string
	train, val := s.ReadsLabels()
	lack := func(reads bool, of graph.Split, name string) {
		for i := range split {
			reads = reads && !(split[i] == of && l.Has(i))
		}
		if reads {
			lacks = append(lacks, name)
		}
	}
	lack(train, graph.Train, "training")
	lack(val, graph.Val, "validation")
	if lacks == nil {
		return ""
	}
	return fmt.Sprintf("the model reads the labels of %s nodes, and no such node has one: "+
		"predictions for the nodes of the training run differ from the run's", strings.Join(lacks, " and "))
}

// Given returns the labels and splits of n nodes as the model reads them. There may be none, or without names of
// classes none of the last ones.
func (s Spec) Given(l graph.Labels, split []graph.Split, n int) (graph.Labels, []graph.Split, error) {
	if split == nil || l.Classes == 0 {
		split = make([]graph.Split, n)
	}
	train, val := s.ReadsLabels()
	switch fits := l.Kind() == s.Kind(); {
	case !train && !val:
	case l.Classes == 0:
		l = graph.Labels{Classes: s.Classes}.None(s.Kind(), n)
	case fits && s.Kind() == graph.Single && l.Names == nil && l.Classes < s.Classes:
		l.Classes = s.Classes
	case !fits || l.Classes != s.Classes:
		return l, split, fmt.Errorf("nodes must have labels of %d classes for task %s, or none: the model reads "+
			"them (got %d, %s)",
			s.Classes, s.Task, l.Classes, l.Kind())
	}
	return l, split, nil
}

// faults returns all that is wrong with s.
func (s LayerSpec) faults() (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	c, ok := ConvolutionNamed(s.Conv)
	if !ok {
		bad("conv must be one of %q (got %q)", Convolutions(nil), s.Conv)
	}
	bound(bad, "in", s.In, maxWidth)
	bound(bad, "out", s.Out, maxWidth)
	if s.Hops < 0 || s.Hops > 1 && !c.Hops || s.Hops > maxHops {
		several := Convolutions(func(c Convolution) bool { return c.Hops })
		bad("hops must be 1, or up to %d for %s (got %d)", maxHops, strings.Join(several, ", "), s.Hops)
	}
	switch {
	case !c.Heads && (s.Heads != 0 || s.Average || s.AttentionDropout != 0):
		bad("heads, average and attention_dropout do not belong to %s, which has no attention", s.Conv)
	case c.Heads && !bound(bad, "heads", s.Heads, 1024):
	case c.Heads && !s.Average && s.Out%s.Heads != 0:
		bad("out must be a multiple of the %d heads (got %d)", s.Heads, s.Out)
	}
	switch {
	case !c.Restarts() && s.Alpha != 0:
		bad("alpha (teleport) does not belong to %s, which does not propagate with restarts", s.Conv)
	case c.Restarts() && !(s.Alpha > 0 && s.Alpha <= 1):
		bad("alpha (teleport) must be above 0 and at most 1 (got %g)", s.Alpha)
	}
	if c.Typed {
		all = append(all, faultsOfTyped(s)...)
	} else if s.Relations != 0 || s.Bases != 0 {
		bad("relations and bases do not belong to %s, which reads untyped edges", s.Conv)
	}
	if s.EdgeColumns < 0 || s.EdgeColumns > maxWidth || s.EdgeColumns > 0 && !c.EdgeColumns {
		readers := Convolutions(func(c Convolution) bool { return c.EdgeColumns })
		bad("edge_columns must be 0, or up to %d for %s (got %d)", maxWidth, strings.Join(readers, ", "), s.EdgeColumns)
	}
	if c.faults != nil {
		all = append(all, c.faults(s)...)
	}
	return append(all, s.commonFaults()...)
}

// commonFaults returns what is wrong with the parts around the convolution.
func (s LayerSpec) commonFaults() (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if s.Norm && s.BatchNorm {
		bad("norm and batch_norm must not both be true")
	}
	if !slices.Contains([]string{"", "relu", "elu"}, s.Act) {
		bad(`act must be "", "relu" or "elu" (got %q)`, s.Act)
	}
	probability(bad, "dropout", s.Dropout)
	probability(bad, "attention_dropout", s.AttentionDropout)
	for k, w := range s.Head {
		bound(bad, fmt.Sprintf("head[%d]", k), w, maxWidth)
	}
	return all
}

// bound reports whether v, a width or a number of something, is 1 to most.
func bound(bad func(format string, args ...any), field string, v, most int) bool {
	if v < 1 || v > most {
		bad("%s must be 1 to %d (got %d)", field, most, v)
		return false
	}
	return true
}

// probability reports a fault unless p is a probability below 1.
func probability(bad func(format string, args ...any), field string, p float32) {
	if !(p >= 0 && p < 1) {
		bad("%s must be at least 0 and less than 1 (got %g)", field, p)
	}
}

const maxHops = 1000

const maxWidth = 1 << 24 // of any row: what comes from a file is bounded before anything is allocated

// Validate returns all that is wrong with s, each fault naming its field, or nil.
func (s Spec) Validate() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(""+format, args...)) }
	if _, ok := graph.KindNamed(s.Task); !ok {
		bad(`task must be "single", "multi", "regression" or "links" (got %q)`, s.Task)
	}
	if n := len(s.Units); n > 0 && (s.Kind() != graph.Numbers || n != s.Classes) {
		bad("units must be one for each of %d columns of numbers (got %d for task %s)", s.Classes, n, s.Task)
	}
	for _, u := range s.Units {
		if !(u.Deviation > 0 && u.Deviation <= math.MaxFloat32 && math.Abs(u.Mean) <= math.MaxFloat32) {
			bad("units must have a finite mean and a deviation above 0 (got %g and %g)", u.Mean, u.Deviation)
		}
	}
	bound(bad, "features", s.Features, maxWidth)
	bound(bad, "classes", s.Classes, maxWidth)
	if s.LayerOutput != Hidden && s.LayerOutput != Logits {
		bad("layer output (carry) must be %q or %q (got %q)", Hidden, Logits, s.LayerOutput)
	}
	if c := s.Closed; c != nil && c.Numbers != (s.Kind() == graph.Numbers) {
		bad("closed.numbers must be true for task regression only (got %t for %s)", c.Numbers, s.Task)
	}
	if d := s.Decoder; (d != nil) != (s.Kind() == graph.Links) {
		bad("decoder is only for links (got %t for %s)", d != nil, s.Task)
	} else if d != nil {
		if err := d.Validate(); err != nil {
			bad("decoder.%w", err)
		}
		if d.Width != s.Classes {
			bad("decoder.width must be the %d columns of the last layer (got %d)", s.Classes, d.Width)
		}
	}
	if closed := s.Encoder.Kind == "closed"; closed != (s.Closed != nil) || closed && len(s.Layers) > 0 {
		bad("closed and the encoder \"closed\" must be given together, without layers (got %t, %q, %d layers)",
			s.Closed != nil, s.Encoder.Kind, len(s.Layers))
	} else if closed {
		for _, err := range s.Closed.Faults(s.Features) {
			bad("%w", err)
		}
	} else if len(s.Layers) == 0 && s.Encoder.Kind != "mlp" {
		bad("layers must have at least one layer where the encoder is %q", s.Encoder.Kind)
	}
	if c := s.CorrectSmooth; c != nil {
		if err := c.Validate(); err != nil {
			bad("%w", err)
		}
		if s.Task != "single" {
			bad("correct_smooth needs one class a node (got task %s)", s.Task)
		}
	}
	if c := s.SiteShares; c != nil && (s.Task != "single" || !c.Valid()) {
		bad("site_shares must have a scale and a temperature above 0, at most %d, and task single (got %g, %g and %s)",
			eval.MostShares, c.Scale, c.Temperature, s.Task)
	}
	for _, err := range s.encoderFaults() {
		bad("encoder.%w", err)
	}
	for _, err := range s.chainFaults() {
		bad("%w", err)
	}
	return errors.Join(all...)
}

// encoderFaults returns what is wrong with the encoder.
func (s Spec) encoderFaults() (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	e := s.Encoder
	switch e.Kind {
	case "raw":
		want := s.Features
		if e.Labels != 0 {
			want += s.Classes
		}
		if e.Out != want {
			bad("out must be the %d features, or %d with the classes where labels are inputs (got %d)",
				s.Features, s.Features+s.Classes, e.Out)
		}
	case "closed":
		if e.Out != s.Classes {
			bad("out must be the %d classes (got %d)", s.Classes, e.Out)
		}
	case "sign":
		if bound(bad, "hops", e.Hops, maxHops) && e.Out != (e.Hops+1)*s.Features {
			bad("out must be %d times the %d features (got %d)", e.Hops+1, s.Features, e.Out)
		}
	case "pca":
		if k := e.Components(s.Classes); k < 1 || k > s.Features {
			bad("out must be 1 to the %d features (got %d)", s.Features, k)
		}
		if e.Classes != nil {
			for _, err := range e.Classes.Faults(s.Features) {
				bad("classes.%w", err)
			}
		}
	case "embedding":
		bound(bad, "hidden", e.Hidden, maxWidth)
		if e.Out != e.Hidden || s.LayerOutput != Hidden || s.Task == "links" {
			bad("out must be hidden, the layer output %q and the task not links for embedding "+
				"(got %d of %d, %q and %s)", Hidden, e.Out, e.Hidden, s.LayerOutput, s.Task)
		}
	case "mlp":
		bound(bad, "hidden", e.Hidden, maxWidth)
		want := e.Hidden
		if s.LayerOutput == Logits {
			want = s.Classes
		}
		if e.Out != want {
			bad("out must be %d where the layer output is %q (got %d)", want, s.LayerOutput, e.Out)
		}
	default:
		bad(`kind must be "raw", "sign", "pca", "mlp", "embedding" or "closed" (got %q)`, e.Kind)
	}
	if !(e.Labels >= 0 && e.Labels < 1) || e.Labels > 0 && (e.Kind != "raw" || s.Task != "single") {
		bad("labels must be in [0, 1), and 0 unless the encoder is raw and a node has one class (got %g)",
			e.Labels)
	}
	if e.L1Norm && e.L2Norm {
		bad("unit_sum and l2_norm must not both be true")
	}
	if c := e.Classes; c != nil && (e.Kind != "pca" || s.Task != "single" || c.Adjacent > 0 || c.Own > 0 ||
		c.Residual) {
		bad("classes must be soft labels of nodes with features and one class, next to components "+
			"(got encoder %q, task %s)", e.Kind, s.Task)
	}
	if e.Hops != 0 && e.Kind != "sign" {
		bad("hops must be 0 for %q (got %d)", e.Kind, e.Hops)
	}
	probability(bad, "dropout", e.Dropout)
	return all
}

// chainFaults returns what is wrong with the layers, and where one does not take what the one
// before it puts out.
func (s Spec) chainFaults() (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	logits, width := s.LayerOutput == Logits, s.Encoder.Out
	for k, l := range s.Layers {
		for _, err := range l.faults() {
			bad("layers[%d].%w", k, err)
		}
		last := k == len(s.Layers)-1
		if l.convolution().First && (k > 0 || last || l.Hops != s.Encoder.Hops) {
			const must = "layers[%d].conv is %s, which must be the first of several layers behind an encoder " +
				"of as many hops (got layer %d of %d, %d hops behind %d)"
			bad(must, k, l.Conv, k+1, len(s.Layers), l.Hops, s.Encoder.Hops)
		}
		if l.In != width {
			bad("layers[%d].in must be %d, the width before it (got %d)", k, width, l.In)
		}
		width = l.Out
		if n := len(l.Head); n > 0 && (logits || last) {
			width = l.Head[n-1]
		}
		if n := len(l.Head); n > 0 && l.Head[n-1] != s.Classes {
			bad("layers[%d].head must end in the %d classes (got %d)", k, s.Classes, l.Head[n-1])
		} else if (logits || last) && width != s.Classes {
			bad("layers[%d].out must be the %d classes, or the layer must have a head (got %d)", k, s.Classes, width)
		}
	}
	return all
}

// BatchNormed reports whether a layer has a BatchNorm: its output in training then depends on all
// rows together.
func (s Spec) BatchNormed() bool {
	return slices.ContainsFunc(s.Layers, func(l LayerSpec) bool { return l.BatchNorm })
}
