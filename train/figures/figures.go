package figures

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/labels"
)

// Value is a measure, most often in [0, 1]; NaN, in JSON null: there is nothing to measure.
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

// Figures are what a model's predictions are worth, over the labelled validation and test nodes of all peers. They come from
// the logits of predictions.csv, and do not depend on how the nodes are divided among peers.
type Figures struct {
	Metric       eval.Metric   `json:"metric"`                 // by which the run chose
	Majority     int           `json:"majority"`               // class that most training nodes have, which the baseline predicts; −1: a node may have several, or numbers
	Untrained    []string      `json:"untrained,omitempty"`    // classes that no training node has
	Temperature  float64       `json:"temperature"`            // by which logits are divided for probabilities, fitted on validation nodes; 1: they are as they were
	Temperatures []float64     `json:"temperatures,omitempty"` // of several classes a node: that of each class, in place of Temperature
	Threshold    *Threshold    `json:"threshold,omitempty"`
	Thresholds   []Threshold   `json:"thresholds,omitempty"` // of several classes a node: that of each class
	Units        []target.Unit `json:"units,omitempty"`      // of numbers: mean, which the baseline predicts, and deviation of the training nodes, by column
	Val          Set           `json:"val"`
	Test         Set           `json:"test"`
	Sites        []Site        `json:"sites,omitempty"`     // of this process: of a local run all, else this site alone
	Published    []Published   `json:"published,omitempty"` // of other sites, which publish theirs
	Told         *Published    `json:"told,omitempty"`      // what this site told the others of itself; nil: nothing

	Sent  comm.Counts `json:"-"` // by all peers, before these figures were summed
	Edges int64       `json:"-"` // in-edges of the nodes of all peers: an undirected edge counts twice
}

// Threshold is the probability of class 1, of two, or of one of several, from which on it is predicted.
type Threshold struct {
	Goal        string  `json:"goal"`
	LogOdds     float64 `json:"log_odds"`    // calibrated: the class is predicted from here on
	Probability float64 `json:"probability"` // the same as a probability
	Reached     bool    `json:"reached"`     // the validation nodes can have what the goal asks for; else it is as near as they come
}

// Set are the figures of some nodes. All of them are by the threshold, where there is one.
type Set struct {
	Rows      int64     `json:"rows"`                // nodes with a label
	Metric    Value     `json:"metric"`              // that of the run
	Low       Value     `json:"low"`                 // bootstrap interval of 95 % of the metric
	High      Value     `json:"high"`                //
	Baseline  Value     `json:"baseline"`            // the metric of whoever predicts the majority class, or the mean of the training nodes
	Confusion [][]int64 `json:"confusion,omitempty"` // [label][predicted] nodes; nil: more than 50 classes, or several a node
	Classes   []Class   `json:"classes"`             // of numbers null, and all below it
	Targets   []Target  `json:"targets,omitempty"`   // of numbers, by column

	RankMAE *Value `json:"rank_mae,omitempty"` // of classes in order: by how many ranks predictions are off, on average; nil: they are in none
	QWK     *Value `json:"qwk,omitempty"`      // the same: quadratic weighted kappa

	Accuracy  Value `json:"accuracy"`
	MicroF1   Value `json:"micro_f1"`
	MacroF1   Value `json:"macro_f1"`
	Precision Value `json:"macro_precision"`
	Recall    Value `json:"macro_recall"`
	AUC       Value `json:"auc"` // of class 1, where there are two, from bins; else NaN
	AP        Value `json:"ap"`  // the same

	ECE        Value `json:"ece"`            // expected calibration error
	Calibrated Value `json:"ece_calibrated"` // the same at the temperatures
}

// Target are the figures of one column of numbers, in its units, and those of whoever predicts the mean of the training nodes.
type Target struct {
	Name string `json:"name"`
	R2   Value  `json:"r2"` // NaN: all nodes have the same number
	MAE  Value  `json:"mae"`
	RMSE Value  `json:"rmse"`

	BaselineR2   Value `json:"baseline_r2"`
	BaselineMAE  Value `json:"baseline_mae"`
	BaselineRMSE Value `json:"baseline_rmse"`
}

// Class are the figures of one class.
type Class struct {
	Name      string `json:"name"`
	Labelled  int64  `json:"labelled"`  // nodes that have it
	Predicted int64  `json:"predicted"` // nodes that were said to have it
	Precision Value  `json:"precision"` // NaN: it was never predicted
	Recall    Value  `json:"recall"`    // NaN: no node has it
	F1        Value  `json:"f1"`
}

// Site are the figures of the nodes of one site.
type Site struct {
	Name string `json:"name"`
	Val  Set    `json:"val"`
	Test Set    `json:"test"`
}

// Figures returns those of model m, of whose peers this one has that name. nil: there are no sums, neither by Run nor kept.
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
	v := make([]int64, 2*sheet.Size())
	write(sheet, v, own, e.logits, f.Calibration())
	val, test, err := tables(sheet, v)
	if err != nil {
		return nil, err
	}
	f.Sites = []Site{{name, e.set(val, f, counts), e.set(test, f, counts)}}
	return f, nil
}

// Logits returns those of own nodes; empty: this process has not computed them.
func (e *Exchange) Logits() mat.Dense { return e.logits }

// read returns what s says of the validation and test nodes. Numbers that no rows give are an error.
func (e *Exchange) read(s *sums) (val, test *eval.Table, err error) {
	kind, classes := e.Shard.Labels.Kind(), e.Shard.Labels.Classes
	likelihoods, _ := eval.Likelihoods(kind, classes)
	if n := len(s.Labels) - labels.Len(kind, classes); n != totals || len(s.Likelihoods) != likelihoods {
		return nil, nil, fmt.Errorf("there must be %d totals and %d likelihoods (got %d and %d)", totals, likelihoods, n, len(s.Likelihoods))
	}
	own, _ := e.split(s)
	if val, test, err = tables(eval.NewSheet(own.Labels, e.Goal), s.Sheets); err != nil {
		return nil, nil, err
	}
	if n := val.Rows() + test.Rows(); n > e.Shard.Nodes {
		return nil, nil, fmt.Errorf("there must be at most %d labelled validation and test nodes (got %d)", e.Shard.Nodes, n)
	}
	return val, test, nil
}

// figures returns what follows from s.
func (e *Exchange) figures(s *sums) (*Figures, error) {
	val, test, err := e.read(s)
	if err != nil {
		return nil, err
	}
	own, counts := e.split(s)
	sent := s.Labels[labels.Len(own.Labels.Kind(), own.Labels.Classes):]
	temperatures := eval.FitTemperatures(s.Likelihoods, own.Labels.Kind(), own.Labels.Classes)
	f := &Figures{Metric: e.Metric, Majority: -1, Temperature: temperatures.Shared, Temperatures: temperatures.Classes,
		Sent: comm.Counts{Halo: sent[0], Reduce: sent[1], Control: sent[2]}, Edges: sent[3]}
	if own.Labels.Kind() == target.Single {
		f.Majority = slices.Index(counts.Classes, slices.Max(counts.Classes))
	}
	if own.Labels.Kind() != target.Numbers {
		for c, n := range counts.Classes {
			if n == 0 {
				f.Untrained = append(f.Untrained, className(own.Labels, c))
			}
		}
	}
	f.Units = counts.Units
	if e.Goal != (eval.Goal{}) && val.Rows() > 0 {
		f.Thresholds = thresholds(val, e.Goal)
		if own.Labels.Kind() == target.Single {
			f.Threshold, f.Thresholds = &f.Thresholds[0], nil
		}
	}
	f.Val, f.Test = e.set(val, f, counts), e.set(test, f, counts)
	for _, one := range s.Told {
		if one.Rank == e.Shard.Rank {
			f.Told = &one
		} else {
			f.Published = append(f.Published, one)
		}
	}
	return f, nil
}

// thresholds returns those that serve g best on the rows of val.
func thresholds(val *eval.Table, g eval.Goal) (all []Threshold) {
	bins, ok := val.Choose(g)
	for k, bin := range bins {
		edge := max(eval.CurveEdge(bin), -math.MaxFloat64) // JSON has no infinity
		all = append(all, Threshold{g.String(), edge, 1 / (1 + math.Exp(-edge)), ok[k]})
	}
	return all
}

// Calibration returns what logits are divided by for probabilities.
func (f *Figures) Calibration() eval.Temperatures {
	return eval.Temperatures{Shared: f.Temperature, Classes: f.Temperatures}
}

// Cuts returns the log-odds from which on classes are predicted; nil: the more probable class is predicted.
func (f *Figures) Cuts() (all eval.Cuts) {
	if f.Threshold != nil {
		return eval.Cuts{f.Threshold.LogOdds}
	}
	for _, t := range f.Thresholds {
		all = append(all, t.LogOdds)
	}
	return all
}

// tables returns what the sheets of validation and test nodes say.
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
func (e *Exchange) set(t *eval.Table, f *Figures, counts labels.Counts) Set {
	t = t.Cut(f.Cuts())
	s := measured(t, e.Metric, e.Shard.Labels, e.Draw.Seed)
	s.Baseline = Value(t.Baseline(e.Metric, counts.Classes, counts.Labelled))
	for c := range s.Targets {
		one := &s.Targets[c]
		for m, at := range map[eval.Metric]*Value{"r2": &one.BaselineR2, "mae": &one.BaselineMAE, "rmse": &one.BaselineRMSE} {
			_, baseline := t.Column(m, c)
			*at = Value(baseline)
		}
	}
	return s
}

// Of returns the figures of the rows of logits [N×C] that l labels, of which all classes are predicted as a model file says:
// at its temperatures and from its cuts on. Of the labels in training, which the
// baseline needs, they know nothing: it is NaN.
func Of(metric eval.Metric, l graph.Labels, logits mat.Dense, temperatures eval.Temperatures, cuts eval.Cuts) (Set, error) {
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
	return measured(t.Cut(cuts), metric, l, 0), nil
}

// measured returns the figures of a table but for the baseline.
func measured(t *eval.Table, metric eval.Metric, l graph.Labels, seed uint64) Set {
	if l.Kind() == target.Numbers {
		return numbers(t, metric, l, seed)
	}
	s := Set{Rows: t.Rows(), Metric: Value(t.Of(metric)), Confusion: t.Matrix, Baseline: Value(math.NaN()),
		Accuracy: Value(t.Of("accuracy")), MicroF1: Value(t.Of("micro-f1")), MacroF1: Value(t.Of("macro-f1")), AUC: Value(t.Of("auc")), AP: Value(t.Of("ap"))}
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
		c := Class{Name: className(l, k), Labelled: right + missed, Predicted: right + wrong,
			Precision: share(right, right+wrong), Recall: share(right, right+missed), F1: share(2*right, 2*right+wrong+missed)}
		s.Classes = append(s.Classes, c)
		if right+wrong+missed > 0 { // as in macro-F1; what is never predicted counts 0
			precision, recall, n = precision+orZero(c.Precision), recall+orZero(c.Recall), n+1
		}
	}
	s.Precision, s.Recall = Value(precision/n), Value(recall/n)
	return s
}

// numbers is measured of a table of numbers.
func numbers(t *eval.Table, metric eval.Metric, l graph.Labels, seed uint64) Set {
	none := Value(math.NaN())
	s := Set{Rows: t.Rows(), Metric: Value(t.Of(metric)), Baseline: none, Accuracy: none, MicroF1: none, MacroF1: none, Precision: none,
		Recall: none, AUC: none, AP: none, ECE: none, Calibrated: none}
	low, high := t.Interval(metric, rng.New(seed))
	s.Low, s.High = Value(low), Value(high)
	for c := range l.Classes {
		one := Target{Name: className(l, c), BaselineR2: none, BaselineMAE: none, BaselineRMSE: none}
		for m, at := range map[eval.Metric]*Value{"r2": &one.R2, "mae": &one.MAE, "rmse": &one.RMSE} {
			x, _ := t.Column(m, c)
			*at = Value(x)
		}
		s.Targets = append(s.Targets, one)
	}
	return s
}

// className is the name of class k, or its number.
func className(l graph.Labels, k int) string {
	if k < len(l.Names) {
		return l.Names[k]
	}
	return fmt.Sprint(k)
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

// Warnings returns what whoever reads the figures must know first.
func (f *Figures) Warnings() (all []string) {
	if len(f.Untrained) > 0 {
		all = append(all, fmt.Sprintf("no training node has a class that the data have, so the model cannot predict it: %s",
			strings.Join(f.Untrained, ", ")))
	}
	set, name := f.Test, "test"
	if set.Rows == 0 {
		set, name = f.Val, "validation"
	}
	if set.Rows == 0 {
		return all
	}
	said := 0
	only := ""
	for _, c := range set.Classes {
		if c.Predicted > 0 {
			said, only = said+1, c.Name
		}
	}
	if said == 1 && f.Majority >= 0 {
		all = append(all, fmt.Sprintf("the model predicts one class only, %s, for all %d %s nodes", only, set.Rows, name))
	}
	worst, how := set.Low, "its 95 % interval begins at "
	if f.Metric.Gain(1, 0) < 0 {
		worst, how = set.High, "its 95 % interval ends at "
	}
	if worst-worst != 0 {
		worst, how = set.Metric, "it is "
	}
	if f.Metric.Gain(float64(worst), float64(set.Baseline)) <= 0 {
		all = append(all, fmt.Sprintf("%s %s is not better than the baseline of %s: %s%s", name, f.Metric, f.Metric.Text(float64(set.Baseline)),
			how, f.Metric.Text(float64(worst))))
	}
	if t := f.Threshold; t != nil && f.Majority == 1 && len(set.Classes) == 2 {
		all = append(all, fmt.Sprintf("%s is of class %s, which most nodes have: if it is meant of class %s, give the classes names whose order is the other way round",
			t.Goal, set.Classes[1].Name, set.Classes[0].Name))
	}
	if t := f.Threshold; t != nil && !t.Reached {
		all = append(all, fmt.Sprintf("no threshold has what %s asks for on the validation nodes; the nearest is taken", t.Goal))
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
