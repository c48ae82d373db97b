package figures

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Value is a measure, most often in [0, 1]. NaN, in JSON null, means that there is nothing to measure.
type Value float64

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	if v-v != 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Value(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}

// Figures measure a model's predictions over the labelled validation and test nodes of all peers. They come from the
// logits of predictions.csv, and do not depend on how the nodes are divided among peers.
type Figures struct {
	Metric eval.Metric `json:"metric"` // used for choices in the run
	// of two classes, the one that AUC, AP and Threshold measure (−1 = there are not two)
	Positive int `json:"positive"`
	// class that most training nodes have, which the baseline predicts (−1 = a node may have several, or numbers)
	Majority  int      `json:"majority"`
	Untrained []string `json:"untrained,omitempty"` // classes that no training node has
	// divides logits before the softmax, fitted on validation nodes (1 = logits stay)
	Temperature float64 `json:"temperature"`
	// if a node may have several classes: each class's, instead of Temperature
	Temperatures []float64   `json:"temperatures,omitempty"`
	Threshold    *Threshold  `json:"threshold,omitempty"`
	Thresholds   []Threshold `json:"thresholds,omitempty"` // if a node may have several classes: each class's
	// of numbers: mean, which the baseline predicts, and deviation of the training nodes, by column
	Units     []graph.Unit  `json:"units,omitempty"`
	Val       Set           `json:"val"`
	Test      Set           `json:"test"`
	Sites     []SiteFigures `json:"sites,omitempty"`     // of this process: all of a local run, else only this one
	Published []Published   `json:"published,omitempty"` // of other sites, which publish theirs
	Told      *Published    `json:"told,omitempty"`      // what this site sent the others of its own (nil = nothing)
	By        string        `json:"by,omitempty"`        // column by whose values test nodes are measured, too
	Groups    []Group       `json:"groups,omitempty"`    // the test nodes of all sites by these

	Sent  comm.Counts `json:"-"` // by all peers, before these figures were summed
	Edges int64       `json:"-"` // in-edges of the nodes of all peers: an undirected edge counts twice
}

// Threshold is the probability of the positive class, of two, or of one of several, from which on it is predicted.
type Threshold struct {
	Class       string  `json:"class"`
	Goal        string  `json:"goal"`        // of the plan, as f1 or recall@precision=0.9
	LogOdds     float64 `json:"log_odds"`    // calibrated: the class is predicted from here on
	Probability float64 `json:"probability"` // the same as a probability
	// the validation nodes can have what the goal asks for; else it is as near as they come
	Reached bool `json:"reached"`
}

// Set are the figures of some nodes. If there is a threshold, all of them use it.
type Set struct {
	Rows   int64 `json:"rows"`   // nodes with a label
	Metric Value `json:"metric"` // the run's
	Low    Value `json:"low"`    // bootstrap interval of 95 % of the metric
	High   Value `json:"high"`   //
	// the metric of always predicting the majority class, or the mean of the training nodes
	Baseline Value `json:"baseline"`
	// [label][predicted] nodes; nil if there are more than 50 classes, or a node may have several
	Confusion [][]int64 `json:"confusion,omitempty"`
	Classes   []Class   `json:"classes"`           // of numbers null, and all below it
	Targets   []Target  `json:"targets,omitempty"` // of numbers, by column

	// if classes are in order: by how many ranks predictions are off, on average (else nil)
	RankMAE *Value `json:"rank_mae,omitempty"`
	QWK     *Value `json:"qwk,omitempty"` // the same: quadratic weighted kappa

	Accuracy  Value `json:"accuracy"`
	MicroF1   Value `json:"micro_f1"`
	MacroF1   Value `json:"macro_f1"`        // mean over the classes
	Precision Value `json:"macro_precision"` // mean over the classes
	Recall    Value `json:"macro_recall"`    // mean over the classes
	AUC       Value `json:"auc"`             // of the positive class of two, exact or from bins; else NaN
	AP        Value `json:"ap"`              // the same

	// how far Metric is at most from what the scores of all rows give (NaN = not known)
	MetricBound Value `json:"metric_bound"`
	AUCBound    Value `json:"auc_bound"`
	APBound     Value `json:"ap_bound"`

	ECE        Value `json:"ece"`            // expected calibration error
	Calibrated Value `json:"ece_calibrated"` // the same at the temperatures
}

// Target are the figures of one column of numbers, in its units, and of the baseline, which predicts the mean of the
// training nodes.
type Target struct {
	Name string `json:"name"`
	R2   Value  `json:"r2"`   // NaN: all nodes have the same number
	MAE  Value  `json:"mae"`  // mean absolute error
	RMSE Value  `json:"rmse"` // root of the mean squared error

	BaselineR2   Value `json:"baseline_r2"`
	BaselineMAE  Value `json:"baseline_mae"`
	BaselineRMSE Value `json:"baseline_rmse"`
}

// Class are the figures of one class.
type Class struct {
	Name      string `json:"name"`
	Labelled  int64  `json:"labelled"`  // nodes that have it
	Predicted int64  `json:"predicted"` // nodes that were said to have it
	Precision Value  `json:"precision"` // NaN = it was never predicted
	Recall    Value  `json:"recall"`    // NaN = no node has it
	F1        Value  `json:"f1"`
}

// SiteFigures are the figures of the nodes of one site.
type SiteFigures struct {
	Name   string  `json:"name"`
	Val    Set     `json:"val"`
	Test   Set     `json:"test"`
	Groups []Group `json:"groups,omitempty"` // of the test nodes, with Figures.By
}

// Figures returns the figures of model m; name is this peer's name. It returns nil if there are no sums, neither from
// Run nor kept.
func (e *Exchange) Figures(name string, m *nn.Model) (*Figures, error) {
	if err := e.recall(digestOf(m)); err != nil || e.sums == nil {
		return nil, err
	}
	f, err := e.figures(e.sums)
	if err != nil || e.logits.Empty() {
		return f, err
	}
	own, counts := e.split(e.sums)
	sheet := eval.NewSheet(own.Labels, e.Goal)
	if e.sheets == nil {
		e.sheets = make([]int64, 2*sheet.Size())
		writeSheets(sheet, e.sheets, own, e.logits, f.Calibration())
	}
	val, test, err := tables(sheet, e.sheets)
	if err != nil {
		return nil, err
	}
	one := SiteFigures{Name: name, Val: e.set(val, f, counts), Test: e.set(test, f, counts)}
	groups, err := e.ownGroups(own, f)
	if err == nil {
		one.Groups, err = e.groups(groups, test.Rows())
	}
	if err != nil {
		return nil, err
	}
	one.Val.Exactly(e.Metric, e.Scored(graph.Val))
	one.Test.Exactly(e.Metric, e.Scored(graph.Test))
	f.Sites = []SiteFigures{one}
	return f, nil
}

// Scored returns the logits and labels of own nodes of a split, once there are figures; this process must have the
// logits.
func (e *Exchange) Scored(split graph.Split) eval.Scored {
	own, _ := e.split(e.sums)
	return eval.Scored{Scores: e.logits, Labels: own.Labels, Rows: append([]int32{}, own.NodesIn(split)...)}
}

// Logits returns the logits of own nodes, empty if this process has not computed them.
func (e *Exchange) Logits() mat.Dense { return e.logits }

// readTables reads the tables of validation and test nodes from s. Numbers that no rows give are an error.
func (e *Exchange) readTables(s *sums) (val, test *eval.Table, err error) {
	kind, classes := e.Shard.Labels.Kind(), e.Shard.Labels.Classes
	likelihoods, _ := eval.Likelihoods(kind, classes)
	if n := len(s.Labels) - train.LabelsLen(kind, classes); n != totals || len(s.Likelihoods) != likelihoods {
		return nil, nil, fmt.Errorf("there must be %d totals and %d likelihoods (got %d and %d)", totals, likelihoods,
			n, len(s.Likelihoods))
	}
	own, _ := e.split(s)
	if val, test, err = tables(eval.NewSheet(own.Labels, e.Goal), s.Sheets); err != nil {
		return nil, nil, err
	}
	if n := val.Rows() + test.Rows(); n > e.Shard.Nodes {
		return nil, nil, fmt.Errorf("there must be at most %d labelled validation and test nodes (got %d)",
			e.Shard.Nodes, n)
	}
	_, err = e.groups(s.Groups, test.Rows())
	return val, test, err
}

// figures returns what follows from s.
func (e *Exchange) figures(s *sums) (*Figures, error) {
	val, test, err := e.readTables(s)
	if err != nil {
		return nil, err
	}
	own, counts := e.split(s)
	sent := s.Labels[train.LabelsLen(own.Labels.Kind(), own.Labels.Classes):]
	temperatures := eval.FitTemperatures(s.Likelihoods, own.Labels.Kind(), own.Labels.Classes)
	f := &Figures{Metric: e.Metric, Positive: counts.Positive(), Majority: -1, Temperature: temperatures.Shared,
		Temperatures: temperatures.Classes, Sent: comm.Counts{Halo: sent[0], Reduce: sent[1], Control: sent[2]},
		Edges: sent[3]}
	if own.Labels.Kind() == graph.Single {
		f.Majority = slices.Index(counts.Classes, slices.Max(counts.Classes))
	}
	if own.Labels.Kind() != graph.Numbers {
		for c, n := range counts.Classes {
			if n == 0 {
				f.Untrained = append(f.Untrained, own.Labels.Name(c))
			}
		}
	}
	f.Units = counts.Units
	if e.Goal != (eval.Goal{}) && val.Rows() > 0 {
		f.Thresholds = thresholds(val, e.Goal)
		for k := range f.Thresholds {
			f.Thresholds[k].Class = own.Labels.Name(max(k, f.Positive))
		}
		if own.Labels.Kind() == graph.Single {
			f.Threshold, f.Thresholds = &f.Thresholds[0], nil
		}
	}
	f.Val, f.Test = e.set(val, f, counts), e.set(test, f, counts)
	if f.Groups, err = e.groups(s.Groups, test.Rows()); f.Groups != nil {
		f.By = e.By.Column
	}
	for _, one := range s.Told {
		if one.Rank == e.Shard.Rank {
			f.Told = &one
		} else {
			f.Published = append(f.Published, one)
		}
	}
	return f, err
}

// thresholds returns those that serve g best on the rows of val.
func thresholds(val *eval.Table, g eval.Goal) (all []Threshold) {
	bins, ok := val.Choose(g)
	for k, bin := range bins {
		edge := max(eval.CurveEdge(bin), -math.MaxFloat64) // JSON has no infinity
		all = append(all, Threshold{Goal: g.String(), LogOdds: edge, Probability: 1 / (1 + math.Exp(-edge)),
			Reached: ok[k]})
	}
	return all
}

// PositiveName is the class of two that AUC, AP and Threshold are of (empty = there are not two).
func (f *Figures) PositiveName() string {
	if f.Positive < 0 {
		return ""
	}
	return f.Test.Classes[f.Positive].Name
}

// Calibration returns what logits are divided by for probabilities.
func (f *Figures) Calibration() eval.Temperatures {
	return eval.Temperatures{Shared: f.Temperature, Classes: f.Temperatures}
}

// Cuts returns the log-odds from which on classes are predicted; with two classes, class 1. It is nil if the more
// probable class is predicted.
func (f *Figures) Cuts() (all eval.Cuts) {
	if f.Threshold != nil && f.Positive == 0 {
		return eval.Cuts{eval.Mirrored(f.Threshold.LogOdds)}
	}
	if f.Threshold != nil {
		return eval.Cuts{f.Threshold.LogOdds}
	}
	for _, t := range f.Thresholds {
		all = append(all, t.LogOdds)
	}
	return all
}

// tables returns the tables that the sheets of validation and test nodes describe.
func tables(sheet eval.Sheet, v []int64) (val, test *eval.Table, err error) {
	if len(v) != 2*sheet.Size() {
		return nil, nil, fmt.Errorf("two sheets must have %d numbers (got %d)", 2*sheet.Size(), len(v))
	}
	if val, err = sheet.Read(v[:sheet.Size()]); err == nil {
		test, err = sheet.Read(v[sheet.Size():])
	}
	return val, test, err
}

// set returns the figures of a table by f's thresholds.
func (e *Exchange) set(t *eval.Table, f *Figures, counts train.LabelCounts) Set {
	t = t.Cut(f.Cuts())
	s := measured(t, e.Metric, e.Shard.Labels, e.Draw.Seed)
	s.Baseline = Value(t.Baseline(e.Metric, counts.Classes, counts.Labelled))
	for c := range s.Targets {
		one := &s.Targets[c]
		for m, at := range map[eval.Metric]*Value{"r2": &one.BaselineR2, "mae": &one.BaselineMAE,
			"rmse": &one.BaselineRMSE} {
			_, baseline := t.Column(m, c)
			*at = Value(baseline)
		}
	}
	return s
}

// Of(metric, l, logits, …) returns the figures of the rows of logits [N×C] that l labels. Classes are predicted as a
// model file does: at its temperatures and from its cuts on. Baseline is NaN, because it needs the labels in training.
func Of(metric eval.Metric, l graph.Labels, logits mat.Dense, temperatures eval.Temperatures,
	cuts eval.Cuts) (Set, error) {
	any := eval.Goal{}
	if len(cuts) > 0 {
		any.Best = "f1"
	}
	sheet := eval.NewSheet(l, any)
	v := make([]int64, sheet.Size())
	sheet.Write(v, logits, l, temperatures)
	t, err := sheet.Read(v)
	if err != nil {
		return Set{}, err
	}
	s := measured(t.Cut(cuts), metric, l, 0)
	s.Exactly(metric, eval.Scored{Scores: logits, Labels: l})
	return s, nil
}

// StandardError returns about the standard error of metric m, if it is x, over the nodes of s; positive is the positive
// class of two, else −1.
func (s *Set) StandardError(m eval.Metric, positive int, x float64) float64 {
	var sides [][2]float64
	for k, c := range s.Classes {
		if positive < 0 || k == positive {
			sides = append(sides, [2]float64{float64(c.Labelled), float64(s.Rows - c.Labelled)})
		}
	}
	return m.StandardError(x, float64(s.Rows), sides...)
}

// Rank makes x, which is off by at most bound, the metric m of s, AUC or AP, with its interval; positive is the
// positive class of two, else −1.
func (s *Set) Rank(m eval.Metric, positive int, x, bound float64) {
	s.Metric, s.MetricBound, s.Low, s.High = Value(x), Value(bound), Value(math.NaN()), Value(math.NaN())
	if positive < 0 {
		return
	}
	half := 1.96 * s.StandardError(m, positive, x)
	s.Low, s.High = Value(max(x-half, 0)), Value(min(x+half, 1))
	if m == "auc" {
		s.AUC, s.AUCBound = s.Metric, s.MetricBound
	} else {
		s.AP, s.APBound = s.Metric, s.MetricBound
	}
}

// mostRanked is the most scores for exact AUC and AP: more take much memory, and bins are then close.
const mostRanked = 1 << 25

// Exactly replaces what s has from bins by what the scores of all its rows give.
func (s *Set) Exactly(m eval.Metric, all ...eval.Scored) {
	positive := all[0].Labels.Positive()
	if s.Rows*int64(all[0].Labels.Classes) > mostRanked {
		return
	}
	if positive >= 0 {
		s.AUC, s.AP = Value(eval.Metric("auc").Pooled(all...)), Value(eval.Metric("ap").Pooled(all...))
		s.AUCBound, s.APBound = 0, 0
	}
	if m.Ranks() {
		s.Rank(m, positive, m.Pooled(all...), 0)
	}
}

// measured returns the figures of a table except the baseline.
func measured(t *eval.Table, metric eval.Metric, l graph.Labels, seed uint64) Set {
	if l.Kind() == graph.Numbers {
		return numbers(t, metric, l, seed)
	}
	s := Set{Rows: t.Rows(), Metric: Value(t.Of(metric)), Confusion: t.Matrix, Baseline: Value(math.NaN()),
		Accuracy: Value(t.Of("accuracy")), MicroF1: Value(t.Of("micro-f1")), MacroF1: Value(t.Of("macro-f1")),
		AUC: Value(t.Of("auc")), AP: Value(t.Of("ap")), AUCBound: Value(t.Bound("auc")), APBound: Value(t.Bound("ap"))}
	if l.Ordered {
		off, kappa := Value(t.Of("rank-mae")), Value(t.Of("qwk"))
		s.RankMAE, s.QWK = &off, &kappa
	}
	low, high := t.Interval(metric, rng.New(seed).FoldString("bootstrap"))
	before, after := t.Errors()
	s.Low, s.High, s.ECE, s.Calibrated = Value(low), Value(high), Value(before), Value(after)
	precision, recall, n := 0.0, 0.0, 0.0
	for k := range l.Classes {
		right, wrong, missed := t.Class(k)
		c := Class{Name: l.Name(k), Labelled: right + missed, Predicted: right + wrong,
			Precision: share(right, right+wrong), Recall: share(right, right+missed),
			F1: share(2*right, 2*right+wrong+missed)}
		s.Classes = append(s.Classes, c)
		if right+wrong+missed > 0 { // as in macro-F1; what is never predicted counts 0
			precision, recall, n = precision+orZero(c.Precision), recall+orZero(c.Recall), n+1
		}
	}
	s.Precision, s.Recall = Value(precision/n), Value(recall/n)
	if metric.Ranks() {
		s.Rank(metric, l.Positive(), float64(s.Metric), t.Bound(metric))
	}
	return s
}

// numbers is measured of a table of numbers.
func numbers(t *eval.Table, metric eval.Metric, l graph.Labels, seed uint64) Set {
	none := Value(math.NaN())
	s := Set{Rows: t.Rows(), Metric: Value(t.Of(metric)), Baseline: none, Accuracy: none, MicroF1: none, MacroF1: none,
		Precision: none, Recall: none, AUC: none, AP: none, AUCBound: none, APBound: none, ECE: none, Calibrated: none}
	low, high := t.Interval(metric, rng.New(seed))
	s.Low, s.High = Value(low), Value(high)
	for c := range l.Classes {
		one := Target{Name: l.Name(c), BaselineR2: none, BaselineMAE: none, BaselineRMSE: none}
		for m, at := range map[eval.Metric]*Value{"r2": &one.R2, "mae": &one.MAE, "rmse": &one.RMSE} {
			x, _ := t.Column(m, c)
			*at = Value(x)
		}
		s.Targets = append(s.Targets, one)
	}
	return s
}

func share(a, b int64) Value {
	if b == 0 {
		return Value(math.NaN())
	}
	return Value(float64(a) / float64(b))
}

func orZero(v Value) float64 {
	if v-v != 0 {
		return 0
	}
	return float64(v)
}

// fewOfClass is how many nodes of a class a set needs, since figures of fewer are mostly chance.
const fewOfClass = 10

// tryInstead is what may do better than the baseline.
func (f *Figures) tryInstead() string {
	switch {
	case f.Metric == "accuracy" && f.Positive >= 0 && f.Threshold != nil:
		return "try metric: auc or class_weights: balanced"
	case f.Metric == "accuracy" && f.Positive >= 0:
		return "try metric: auc, class_weights: balanced or threshold: f1"
	case f.Metric == "accuracy":
		return "try metric: macro-f1 or class_weights: balanced"
	case f.Metric == "micro-f1" && f.Threshold == nil && f.Thresholds == nil:
		return "try threshold: f1, more labels or other columns"
	}
	return "try more labels, other columns or another method"
}

// rare returns the warnings that the rarer of two classes calls for.
func (f *Figures) rare() (all []string) {
	var few []string
	for _, one := range []struct {
		name string
		set  Set
	}{{"validation", f.Val}, {"test", f.Test}} {
		for _, c := range one.set.Classes {
			if one.set.Rows > 0 && c.Labelled < fewOfClass {
				few = append(few, fmt.Sprintf("%d of the %d %s nodes are of class %s", c.Labelled, one.set.Rows,
					one.name, c.Name))
			}
			if one.set.Rows > 0 && c.Labelled == one.set.Rows && f.Metric.Ranks() {
				text := fmt.Sprintf("%s %s is undefined, since all %d nodes are of class %s", one.name, f.Metric,
					one.set.Rows, c.Name)
				if one.name == "validation" {
					text += ": it chose nothing, and training ended as it does without validation nodes"
				}
				all = append(all, text)
			}
		}
	}
	if len(few) > 0 {
		all = append(all, fmt.Sprintf("%s: too few to choose a model by, or to say how good it is. "+
			"Label more of them, or mark more for validation and test", strings.Join(few, ", ")))
	}
	return all
}

// below returns why the metric of set is not surely better than its baseline; empty if it is.
func (f *Figures) below(set Set) string {
	worst, how := set.Low, "its 95 % interval begins at "
	if f.Metric.Gain(1, 0) < 0 {
		worst, how = set.High, "its 95 % interval ends at "
	}
	if worst-worst != 0 {
		worst, how = set.Metric, "it is "
	}
	if f.Metric.Gain(float64(worst), float64(set.Baseline)) <= 0 {
		return how + f.Metric.Text(float64(worst))
	}
	return ""
}

// BeatsBaseline reports whether the test nodes or, without any, the validation nodes show that the model is better than
// its baseline.
func (f *Figures) BeatsBaseline() bool {
	return f.below(f.Measured()) == ""
}

// Measured returns the figures of the test nodes or, without any, of the validation nodes.
func (f *Figures) Measured() Set {
	if f.Test.Rows == 0 {
		return f.Val
	}
	return f.Test
}

// Warnings returns what readers of the figures must know first.
func (f *Figures) Warnings() (all []string) {
	if len(f.Untrained) > 0 {
		all = append(all, fmt.Sprintf("no training node has a class that the data have, so the model "+
			"cannot predict it: %s", strings.Join(f.Untrained, ", ")))
	}
	set, name := f.Test, "test"
	if set.Rows == 0 {
		set, name = f.Val, "validation"
	}
	if set.Rows == 0 {
		return all
	}
	said := 0
	only := Class{}
	for _, c := range set.Classes {
		if c.Predicted > 0 {
			said, only = said+1, c
		}
	}
	if said == 1 && f.Majority >= 0 {
		text := fmt.Sprintf("the model predicts one class only, %s, for all %d %s nodes, "+
			"which is right for %.1f %% of them: try class_weights: balanced",
			only.Name, set.Rows, name, 100*float64(only.Labelled)/float64(set.Rows))
		if f.Positive >= 0 && f.Threshold == nil {
			text += " or threshold: f1"
		}
		all = append(all, text)
	}
	if how := f.below(set); how != "" {
		all = append(all, fmt.Sprintf("%s %s is not better than the baseline of %s: %s; %s", name, f.Metric,
			f.Metric.Text(float64(set.Baseline)), how, f.tryInstead()))
	}
	if f.Positive >= 0 {
		all = append(all, f.rare()...)
	}
	if t := f.Threshold; t != nil && !t.Reached {
		all = append(all, fmt.Sprintf("no threshold has what %s asks for on the validation nodes; the nearest is taken",
			t.Goal))
	}
	var short []string
	for k, t := range f.Thresholds {
		if !t.Reached {
			short = append(short, set.Classes[k].Name)
		}
	}
	if len(short) > 0 {
		all = append(all, fmt.Sprintf("of %d classes no validation node reaches what %s asks for, or none has them: %s",
			len(short), f.Thresholds[0].Goal, strings.Join(short, ", ")))
	}
	return all
}
