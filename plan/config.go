package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/minibatch"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// task describes the data that a model is for.
type task struct {
	Kind      graph.TargetKind
	Features  int      // F
	Numbered  bool     // features say no more than which node it is
	Classes   int      // C
	Names     []string // [C] of the classes (nil = their numbers)
	Relations int      // of typed edges
	Edges     int      // columns of edges

	Links []string // for models of links: names of the relations that are predicted
	fault error    // of these
}

// taskOf describes the data of s and what p predicts of them.
func (p Plan) taskOf(s *shard.Shard) task {
	t := task{Kind: s.Labels.Kind(), Features: s.X.Cols(), Numbered: numbered(s), Classes: s.Labels.Classes,
		Names: s.Labels.Names, Relations: s.Typed.Count(), Edges: s.EdgeX.Cols}
	if t.Numbered && p.learned() > 0 {
		t.Features = 1 // a column of zeros (nn.Spec.Reads)
	}
	if p.Task.Links() {
		t.Kind, t.Classes = graph.Links, p.Gradient().Hidden
		t.Links, t.fault = links.Names(p.Task.Relations, s.Typed.Names)
	}
	return t
}

// narrowBits are the number formats whose sums fit only for a limited number of peers; widerFormats are the others.
var (
	narrowBits   = map[string]int{"int8": 8, "int4": 4}
	widerFormats = map[string]string{"int8": "int16 or float32", "int4": "int8, int16 or float32"}
)

// Check returns all faults of p for a run over these shards: all peers' shards, or one peer's.
func (p Plan) Check(shards []*shard.Shard) error {
	first := shards[0]
	if first.Labels.Classes == 0 && !p.Task.Links() {
		return fmt.Errorf("%s: at least one node must have a label (got none: all labels are -1 or empty)", first.Name)
	}
	_, err := p.Identify(first)
	errs := faults{err}
	switch numbers := first.Labels.Kind() == graph.Numbers; {
	case p.Task.Kind == "regression" && !numbers:
		errs.add("task must be auto (got regression): the labels of %s are classes already", first.Name)
	case p.Task.Kind == "classification" && numbers:
		errs.add("task must be auto (got classification): the labels of %s are numbers already", first.Name)
	}
	for _, s := range [][2]string{{"sums", p.Federation().Sums}, {"updates", p.LayerWise.Updates}} {
		if bits, narrow := narrowBits[s[1]]; narrow && first.Parts > comm.MaxMembers(bits) {
			errs.add("%s must be %s with more than %d peers (got %s with %d peers)",
				s[0], widerFormats[s[1]], comm.MaxMembers(bits), s[1], first.Parts)
		}
	}
	p.checkSums(first.Parts, &errs)
	if goal, err := eval.ParseGoal(p.Threshold); err != nil {
		errs = append(errs, err)
	} else if k := first.Labels.Kind(); goal != (eval.Goal{}) &&
		(p.Task.Links() || k != graph.Several && (first.Labels.Classes != 2 || k != graph.Single)) {
		why := first.Name + " has neither two classes, one a node, nor several a node"
		if p.Task.Links() {
			why = "links have no classes"
		}
		errs.add("threshold must be empty (got %s): %s", p.Threshold, why)
	} else if k == graph.Several && goal != (eval.Goal{}) && p.Metric == "accuracy" {
		errs.add("metric must be micro-f1, macro-f1, auc or ap with threshold where nodes have several classes " +
			"(got accuracy): a threshold of each class is chosen by sums of single classes, which do not say which " +
			"of them are right at the same node")
	}
	if n := first.Labels.Classes; p.Ordered() && first.Labels.Kind() == graph.Single && n > eval.MostOrdered {
		errs.add("classes must be at most %d to be in order (got %d)", eval.MostOrdered, n)
	}
	if p.FiguresBy != "" && p.Task.Links() {
		errs.add("figures_by must be empty (got %s): links have no test nodes", p.FiguresBy)
	} else if p.FiguresBy != "" {
		_, err := figures.GroupsOf(p.FiguresBy, first)
		errs = append(errs, err)
	}
	if p.Ordered() && p.Threshold != "" {
		errs.add("threshold must be empty with classes in order (got %s)", p.Threshold)
	}
	// A model that learns from a node's number learns nothing about other nodes.
	bare := numbered(first) && first.Owned > 0
	if p.Inductive && bare {
		errs.add("inductive must be false (got true): the nodes of %s have no features, only numbers, so that nothing "+
			"is learned of nodes that are absent while training", first.Name)
	}
	if bare && !slices.Contains([]string{"raw", "classes", "embedding"}, p.Encoder().Kind) {
		errs.add("encoder must be raw (got %s): the nodes of %s have no features, only numbers", p.Encoder(),
			first.Name)
	}
	if p.learned() > 0 && first.Owned > 0 && !bare && !someBare(first) {
		errs.add("encoder must be raw (got %s): all nodes of %s have features, and only nodes without "+
			"get a learned row", p.Encoder(), first.Name)
	}
	return errors.Join(errs...)
}

// someBare reports whether nodes of some type may have no features, or one column that is 1.
func someBare(s *shard.Shard) bool {
	for k := range s.Types.Count() {
		if lo, hi := s.Types.Columns(k, s.X.Cols()); hi-lo <= 1 {
			return true
		}
	}
	return false
}

// numbered reports whether the features only identify the node.
func numbered(s *shard.Shard) bool {
	numbers, ok := s.X.Numbers()
	return ok && int64(s.X.Cols()) == s.Nodes && slices.Equal(numbers, s.Global[:s.Owned])
}

// Layerwise returns the configuration of the peer that owns s with method layer-wise, or all faults of p.
func (p Plan) Layerwise(s *shard.Shard) (retexo.Config, error) { return p.layerwise(p.taskOf(s)) }

// ClosedForm returns the configuration of the peer that owns s in rounds of class means, or all faults of p.
func (p Plan) ClosedForm(s *shard.Shard) (classmeans.Config, error) {
	return p.closedFormConfig(p.taskOf(s))
}

// closedFormConfig returns the configuration of rounds of class means for t, or all faults of p.
func (p Plan) closedFormConfig(t task) (classmeans.Config, error) {
	q, errs := p.sound()
	c := classmeans.Config{Task: t.Kind.String(), Features: t.Features, Classes: t.Classes, Metric: q.metric(t),
		RowNorm: q.rowNorm(t), Hops: q.ClassMeans.Hops, Lambdas: classmeans.Lambdas()}
	if t.Numbered {
		c.Adjacent = min(t.Features, closed.MostAdjacent)
	}
	if c.Few = !t.Numbered && t.Features <= classmeans.MostFew && q.ClassMeans.Leaves == 0 &&
		q.ClassMeans.Epsilon == 0; q.RowNorm == Auto {
		c.RowNorm = Auto
	}
	q.fill(&c)
	if q.ClassMeans.Leaves > 0 {
		q.fitLeaves(&c, &errs)
	}
	c.ClassWeights, c.Balanced = q.classWeights(t, &errs)
	c.Positive = q.positive(t, &errs)
	c.Rows = q.Coding()
	c.Rows.Columns = c.Rows.Values == "int8" || c.Rows.Values == "int4"
	if err := errors.Join(append(errs, c.Validate())...); err != nil {
		return classmeans.Config{}, err
	}
	return c, nil
}

// MetricOf returns the metric of a model that predicts k, whatever the data.
func (p Plan) MetricOf(k graph.TargetKind) eval.Metric { return p.metric(task{Kind: k}) }

func (p Plan) metric(t task) eval.Metric {
	switch {
	case p.Metric != "":
		return eval.Metric(p.Metric)
	case t.Kind == graph.Numbers:
		return "r2"
	case t.Kind == graph.Links:
		return "mrr"
	case t.Kind == graph.Several:
		return "micro-f1"
	case t.Classes == 2 && p.ClassMeans.Leaves == 0:
		// a phone knows how many numbers it sends before labels are counted
		return eval.Auto
	}
	return "accuracy"
}

// positive returns which class of t is the positive one, counted from 1 (0 = the rarer one). Faults go to errs.
func (p Plan) positive(t task, errs *faults) int {
	class := slices.Index(t.Names, p.Positive)
	if n, err := strconv.Atoi(p.Positive); t.Names == nil && err == nil && n < t.Classes {
		class = n
	}
	switch {
	case p.Positive == "":
	case t.Kind != graph.Single || t.Classes != 2:
		errs.add("positive must be empty unless each node has one of two classes (got %s)", p.Positive)
	case class < 0 && t.Names == nil:
		errs.add("positive must be class 0 or 1 (got %q)", p.Positive)
	case class < 0:
		errs.add("positive must be %q, the classes of the data (got %q)", t.Names, p.Positive)
	default:
		return class + 1
	}
	return 0
}

// Ordered reports whether p takes classes for ranks: its metric does.
func (p Plan) Ordered() bool { return eval.Metric(p.Metric).OfOrder() }

// InOrder returns s with labels that are in order if p takes classes for ranks.
func (p Plan) InOrder(s *shard.Shard) *shard.Shard {
	if !p.Ordered() {
		return s
	}
	one := *s
	one.Labels.Ordered = true
	return &one
}

// classWeights returns what a label of each class of t counts (nil = all alike), or that classes are balanced. Faults
// go to errs.
func (p Plan) classWeights(t task, errs *faults) (weights []float32, balanced bool) {
	switch {
	case len(p.ClassWeights) == 0:
		return nil, false
	case t.Kind == graph.Numbers:
		errs.add("class_weights must be empty where nodes have numbers (got %s)", strings.Join(p.ClassWeights, ","))
		return nil, false
	case len(p.ClassWeights) == 1 && p.ClassWeights[0] == "balanced":
		return nil, true
	case t.Kind == graph.Several && p.Method == ClassMeans:
		errs.add("class_weights must be empty with method class-means if a node may have several classes (got %s)",
			strings.Join(p.ClassWeights, ","))
		return nil, false
	}
	weights = slices.Repeat([]float32{1}, t.Classes)
	given := make([]bool, t.Classes)
	for _, one := range p.ClassWeights {
		name, text, ok := cutWeight(one)
		class := slices.Index(t.Names, name)
		if n, err := strconv.Atoi(name); t.Names == nil && err == nil && n < t.Classes {
			class = n
		}
		weight, err := strconv.ParseFloat(text, 32)
		switch {
		case !ok || err != nil:
			errs.add("class_weights must be CLASS=WEIGHT (got %q)", one)
		case class < 0 && t.Names == nil:
			errs.add("class_weights must name classes 0 to %d (got %q)", t.Classes-1, name)
		case class < 0:
			errs.add("class_weights must name classes of the data, such as %q (got %q)", t.Names[0], name)
		case given[class]:
			errs.add("class_weights must name a class once (got %q twice)", name)
		default:
			weights[class], given[class] = float32(weight), true
		}
	}
	return weights, false
}

// cutWeight cuts CLASS=WEIGHT in two.
func cutWeight(text string) (class, weight string, ok bool) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		return "", "", false
	}
	return strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:]), true
}

// fill sets those fields of a trainer's configuration, a pointer to a struct, that a setting's tag
// to names.
func (p *Plan) fill(config any) {
	for _, s := range settings(p.Method) {
		if s.to == "" {
			continue
		}
		at := reflect.ValueOf(config).Elem()
		for name := range strings.SplitSeq(s.to, ".") {
			if at = at.FieldByName(name); !at.IsValid() {
				break // of the other trainer
			}
		}
		if at.IsValid() {
			at.Set(p.value(s).Convert(at.Type()))
		}
	}
}

// Coding is how the values of rows are sent. Its names are the settings' choices.
func (p Plan) Coding() (c comm.Coding) {
	if p.Rows != "float32" {
		c.Values = p.Rows
	}
	if p.Compress != "none" {
		c.Compress = p.Compress
	}
	return c
}

// Halved returns half of the columns if p keeps more components than that, otherwise 0. Rows with as many components as
// columns would be the features.
func (p Plan) Halved(features int) int {
	if most := max(1, features/2); p.LayerWise.Encoder.Kind == "pca" && p.LayerWise.Encoder.K > most {
		return most
	}
	return 0
}

// layerwise returns the configuration of layer-wise training of t, or all faults of p.
func (p Plan) layerwise(t task) (retexo.Config, error) {
	q, errs := p.sound()
	if most := q.Halved(t.Features); most > 0 {
		if q.LayerWise.Encoder != Defaults(LayerWise, "").LayerWise.Encoder {
			errs.add("encoder must be pca:%d or less, half of the %d columns (got %s): more components "+
				"give back features", most, t.Features, q.LayerWise.Encoder)
		}
		q.LayerWise.Encoder.K = most
	}
	columns, without := q.classColumns(t)
	l := q.LayerWise
	spec, err := retexo.Design{Model: l.Model, Encoder: l.Encoder.Kind, Components: l.Encoder.K,
		LayerOutput: l.LayerOutput, Layers: l.Layers,
		Hidden: l.Hidden, Hops: l.Hops, Heads: l.Heads, AttentionDropout: l.AttentionDropout, Dropout: l.Dropout,
		Residual: l.Residual, EdgeColumns: t.Edges, RowNorm: q.rowNorm(t),
		Classes: layoutOf(columns)}.Spec(t.Kind.String(), t.Features, t.Classes)
	if spec.Decoder = p.decoder(t); err == nil {
		err = spec.Validate()
	}
	c := retexo.Defaults(spec)
	c.Optimizer = optim.Config{} // betas are those that the optimiser takes for zero
	q.fill(&c)
	q.train(&c.Config, t, &errs)
	c.Schedule.Total = l.Rounds * l.LocalSteps
	c.Classes, c.WithoutClasses = columns, without
	if columns != nil && l.Decay == Defaults(LayerWise, "").LayerWise.Decay {
		c.EnoughLabels = enoughLabels
	}
	for _, format := range []*string{&c.Sums, &c.Updates} {
		if *format == "float32" {
			*format = ""
		}
	}
	if err := errors.Join(append(errs, err, c.Validate())...); err != nil {
		return retexo.Config{}, err
	}
	return c, nil
}

// train sets the fields that all trainers of layers take and that are not plain settings. Faults go to errs.
func (p Plan) train(c *train.Config, t task, errs *faults) {
	c.ClassWeights, c.Balanced = p.classWeights(t, errs)
	c.Positive = p.positive(t, errs)
	c.Metric, c.Optimizer.Name, c.Rows = p.metric(t), p.Gradient().Solver, p.Coding()
}

// endToEndConfig returns the configuration of training all layers of a model of t at once, or all
// faults of p.
func (p Plan) endToEndConfig(t task) (fullbatch.Config, error) {
	q, spec, errs := p.joint(t)
	c := fullbatch.Defaults(spec)
	q.fill(&c)
	q.train(&c.Config, t, &errs)
	c.Schedule.Total = q.FullBatch.Rounds
	c.Memory = int64(q.FullBatch.Memory) << 20
	c.Links = q.links(t, &errs)
	if err := errors.Join(append(errs, c.Validate())...); err != nil {
		return fullbatch.Config{}, err
	}
	return c, nil
}

// sampledConfig returns the configuration of training by sampled mini-batches, or all faults of p.
func (p Plan) sampledConfig(t task) (minibatch.Config, error) {
	q, spec, errs := p.joint(t)
	c := minibatch.Config{Config: train.Config{Spec: spec}}
	q.fill(&c)
	q.train(&c.Config, t, &errs)
	c.Exchange = Auto // nothing reads it
	m := q.MiniBatch
	c.Cache, c.Memory = int64(m.FeatureCache)<<20, int64(m.Memory)<<20
	c.Links = q.links(t, &errs)
	if c.Sample.Fanouts = slices.Clone(m.Fanouts); len(m.Fanouts) == 1 {
		c.Sample.Fanouts = slices.Repeat(m.Fanouts, m.Layers)
	}
	if err := errors.Join(append(errs, c.Validate())...); err != nil {
		return minibatch.Config{}, err
	}
	return c, nil
}

// joint returns p with the default instead of each setting that is at fault, its layers if all are trained at once, and
// the faults.
func (p Plan) joint(t task) (q Plan, spec nn.Spec, errs faults) {
	q, errs = p.sound()
	if g := q.Gradient(); q.learned() > 0 {
		if t.Kind == graph.Links {
			errs.add("encoder must be raw for the links task (got %s): a model file, which recommends links, "+
				"has no learned row of a node", q.Encoder())
		} else if q.FullBatch.LabelInputs != 0 || g.Solver == "sgd" {
			errs.add("label_inputs must be 0 and solver adam or adamw with encoder embedding (got %g and %s)",
				q.FullBatch.LabelInputs, g.Solver)
		}
	}
	if len(errs) > 0 {
		q.FullBatch.Encoder = Encoder{Kind: "raw"}
	}
	if t.Kind == graph.Numbers && !t.Numbered {
		q.numeric()
	}
	if t.Numbered {
		q.bare()
		if q.Task.Links() {
			instead(&q.Gradient().Dropout, dotDropout, 0)
		}
	} else if t.Kind != graph.Links && q.learned() == 0 { // no grid was run over these
		q.wide(t.Features)
	}
	if conv, _ := nn.ConvolutionNamed(q.Gradient().Model); conv.Typed && t.Relations == 0 {
		errs.add("model %s needs typed edges (got a graph without relations)", q.Gradient().Model)
		q.Gradient().Model, q.Joint().Bases = "gcn", 0
	}
	spec, err := q.endToEndSpec(t)
	if err == nil {
		err = spec.Validate()
	}
	return q, spec, append(errs, err)
}

// learned is the width of learned rows of nodes (0 = no node has one).
func (p Plan) learned() int { return p.FullBatch.Encoder.K }

// endToEndSpec returns the layers of a model that is trained end to end.
func (p Plan) endToEndSpec(t task) (nn.Spec, error) {
	j := p.Joint()
	spec, err := nn.Architecture{
		Model: j.Model, Task: t.Kind.String(), Features: t.Features, Classes: t.Classes, Layers: j.Layers,
		Hidden: j.Hidden, Hops: j.Hops, Norm: j.Norm, Residual: j.Residual, Dropout: j.Dropout, Heads: j.Heads,
		AttentionDropout: j.AttentionDropout, Alpha: j.Alpha, Relations: t.Relations, Bases: j.Bases,
		EdgeColumns: t.Edges, Decoder: p.decoder(t), Learned: p.learned(),
	}.Spec()
	if err != nil {
		return spec, err
	}
	norm := p.rowNorm(t)
	spec.Encoder.L1Norm, spec.Encoder.L2Norm = norm == "l1", norm == "l2"
	f := p.FullBatch
	if f.LabelInputs != 0 {
		spec.Encoder.Labels = f.LabelInputs
		spec.Encoder.Out += t.Classes
		spec.Layers[0].In += t.Classes
	}
	if f.CorrectSmooth != 0 {
		spec.CorrectSmooth = &nn.CorrectSmooth{Steps: f.CorrectSmooth, Correct: f.CorrectAlpha, Smooth: f.SmoothAlpha}
	}
	return spec, nil
}
