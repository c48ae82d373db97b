package heddle

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Result is the outcome of a run. Metrics are over the nodes of all peers.
type Result struct {
	train.Result // stages and bytes as this peer, or peer 0 of a local run, saw them

	Model  *nn.Model
	Card   modelfile.Card // the model file's record of the run: the same at every peer
	Config any            // of the trainer: retexo.Config, classmeans.Config, fullbatch.Config or minibatch.Config
	Metric eval.Metric
	Val    float64 // metric of the validation nodes (NaN = there are none)
	Test   float64 // of the test nodes, in the same way

	ValBound, TestBound float64 // how far Val and Test, if they are AUC or AP of several processes, are off at most

	Rounds int // reductions of updates, or epochs, of all stages

	Seconds float64 // in sessions, without interruptions; of the slowest peer in a local run
	Waited  float64 // of these seconds, in operations with other peers: waiting for latency, bytes and slower peers

	// Figures measure the predictions, next to a baseline and with intervals. It is nil if the run was stopped early,
	// or a peer failed between the end of training and these sums.
	Figures *figures.Figures

	// Own are predictions for the nodes of the peers of this process, by rank, computed with the rows of neighbours at
	// other peers. Val and Test are their metrics. A peer that received the model from another peer has no logits.
	Own []Predictions

	// Hidden has, by rank, the rows of the same nodes that the model's last linear map reads (infer.Run), [Owned × H];
	// empty unless Embed of Site or Local asked for them and this process has computed them.
	Hidden []mat.Dense

	// Links are the ranks of held-out links; nil if nodes have labels, or this process has not ranked them.
	Links *eval.RankedLinks

	Peers   []Traffic // of this process, by rank
	Members []string  // names of all peers by rank (nil = they have none)
	Load    comm.Load // largest load of any peer of this process on the network
	Link    string    // network that was simulated (empty = none)

	Sums    plan.SumTerms  // who sees what of the sums over the peers
	Privacy *train.Privacy // what the run kept private, and how (nil = nothing)

	Plan Plan // with which the model was trained

	// if the plan has several: by seed, this one among them, the others without hidden rows (nil = one run)
	Runs []*Result

	// nodes that validate, and test nodes, of each peer of this process that has their logits
	scored     [2][]eval.Scored
	unmeasured string // why there are no figures (empty = there are, or nobody tried)
}

// add adds what another peer of this process sent, has and measured by itself.
func (r *Result) add(o *Result) {
	r.Peers, r.Own, r.Hidden = append(r.Peers, o.Peers...), append(r.Own, o.Own...), append(r.Hidden, o.Hidden...)
	for k := range r.scored {
		r.scored[k] = append(r.scored[k], o.scored[k]...)
	}
	if r.Figures != nil && o.Figures != nil {
		r.Figures.Sites = append(r.Figures.Sites, o.Figures.Sites...)
	}
	if r.Links != nil && o.Links != nil {
		r.Links.Sites = append(r.Links.Sites, o.Links.Sites...)
	}
}

// Traffic counts what a peer sent: bytes by purpose and, in Wire, as the network carried them.
type Traffic struct {
	Name string
	comm.Counts
	Wire     int64 // with headers, encryption and what was sent again; 0 in memory
	Messages int64 // each to one other peer
}

// Total returns the sum over the peers of this process.
func (r *Result) Total() (sum Traffic) {
	for _, p := range r.Peers {
		sum.Counts, sum.Wire, sum.Messages = sum.Plus(p.Counts), sum.Wire+p.Wire, sum.Messages+p.Messages
	}
	return sum
}

// Validated returns the validation metric for comparing plans. It is Val, unless logits were moved to the classes'
// shares of all nodes: validation nodes that were sampled by class have other shares, and predict less about the plan
// after the move than before.
func (r *Result) Validated() float64 {
	if before := bestOf([]train.StageResult{r.Final()}); r.Metric == "accuracy" && before > r.Val {
		return before
	}
	return r.Val
}

// Save writes the model to a file that modelfile.Read and heddle predict read.
func (r *Result) Save(path string) error { return modelfile.Write(path, r.Model, r.Card) }

// input marks err as a fault of what was given; nil stays nil.
func input(err error) error { return train.Input(err) }

// resultOf completes what a trainer measured to a result.
func resultOf(p Plan, own *shard.Shard, model *nn.Model, config any, metric eval.Metric,
	measured train.Result) (*Result, error) {
	if metric == eval.Auto { // without figures only own labels say
		metric, _ = train.LocalLabels(own).Metric(metric, nil)
	}
	r := &Result{Plan: p, Result: measured, Model: model, Config: config, Metric: metric, Val: math.NaN(),
		Test: math.NaN()}
	for _, s := range measured.Stages {
		r.Rounds += max(1, len(s.Curve)) // a stage that was solved at once has no curve
	}
	if last := measured.Final(); last.Ended {
		r.Val, r.Test = last.Val, last.Test
		if !p.Task.Links() {
			r.ValBound, r.TestBound = last.ValBound, last.TestBound
		}
	}
	setting, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	r.Sums = p.SumTerms(own.Parts)
	// What differs between peers, or after a resume, stays out: all of them write the same file.
	r.Card = modelfile.Card{Dataset: own.Name, Nodes: own.Nodes, Method: p.Method, Peers: own.Parts, Seed: p.Seed,
		Setting: setting, Sums: r.Sums.Trust,
		Ordered: p.Ordered(), Metric: string(metric), Val: finite(r.Val), Test: finite(r.Test), Encoding: own.Encoding}
	if model.Spec.Kind() != graph.Links { // links have no classes, whatever their nodes have
		r.Card.Classes = own.Labels.Names
	}
	return r, nil
}

// measure completes r by the figures of its model.
func (r *Result) measure(f *figures.Figures) {
	if r.Figures = f; f == nil {
		return
	}
	r.Metric, r.Card.Metric = f.Metric, string(f.Metric)
	if f.Positive >= 0 {
		r.Card.Positive = graph.Labels{Names: r.Card.Classes}.Name(f.Positive)
	}
	r.Card.Temperature, r.Card.Temperatures = f.Temperature, f.Temperatures
	cuts := f.Cuts()
	switch {
	case f.Threshold != nil:
		r.Card.Threshold, r.Card.Goal = &cuts[0], f.Threshold.Goal
	case len(f.Thresholds) > 0:
		r.Card.Thresholds, r.Card.Goal = cuts, f.Thresholds[0].Goal
	}
	for k := range r.Own {
		r.Own[k] = r.Own[k].By(r.Card)
	}
	for _, one := range []struct {
		x, bound *float64
		set      *figures.Set
	}{{&r.Val, &r.ValBound, &f.Val}, {&r.Test, &r.TestBound, &f.Test}} {
		switch {
		case cuts != nil && !r.Metric.Ranks():
			*one.x = float64(one.set.Metric)
		case r.Metric.Ranks(): // the trainer's bins are finer
			if s := one.set; *one.bound == 0 { // of a stage before a restart: the figures' bins bound it
				*one.bound = math.Abs(*one.x-float64(s.Metric)) + float64(s.MetricBound)
			}
			one.set.Rank(r.Metric, f.Positive, *one.x, *one.bound)
		}
	}
	r.Card.Val, r.Card.Test = finite(r.Val), finite(r.Test)
}

// exact replaces figures from bins by exact ones if this process has the logits of all peers.
func (r *Result) exact() {
	if len(r.scored[0]) < r.Card.Peers || r.Figures == nil {
		return
	}
	r.Figures.Val.Exactly(r.Metric, r.scored[0]...)
	r.Figures.Test.Exactly(r.Metric, r.scored[1]...)
	if r.Metric.Ranks() {
		r.Val, r.Test = float64(r.Figures.Val.Metric), float64(r.Figures.Test.Metric)
		r.ValBound, r.TestBound = float64(r.Figures.Val.MetricBound), float64(r.Figures.Test.MetricBound)
		r.Card.Val, r.Card.Test = finite(r.Val), finite(r.Test)
		for i := range r.Stages {
			if s := &r.Stages[i]; s.Stage == r.Ends {
				s.Val, s.Test = r.Val, r.Test
			}
		}
	}
}

// Warnings returns what readers of the result must know first: only one class is predicted, the metric is not better
// than the baseline, there are no figures, or a layer before the last one validated better and KeepLast took the last.
func (r *Result) Warnings() (all []string) {
	if r.Figures != nil {
		all = r.Figures.Warnings()
	}
	if r.unmeasured != "" {
		all = append(all, "there is no baseline, confusion matrix or calibration, since the peers could not sum them: "+
			r.unmeasured)
	}
	last := r.Final()
	for _, s := range r.Stages {
		if s.Ended && r.Plan.LayerWise.KeepLast && r.Metric.Gain(s.Val, r.Validated()) > 0 {
			all = append(all, fmt.Sprintf("%s validated better than %s (%s %s and %s); keep_last took %s",
				s.Name, last.Name, r.Metric, r.Metric.Text(s.Val), r.Metric.Text(r.Validated()), last.Name))
			break
		}
	}
	return all
}

// warn reports the warnings.
func (r *Result) warn(onEvent func(Event)) {
	for _, text := range r.Warnings() {
		onEvent(Event{Kind: train.Warning, Text: text})
	}
}

// keeps adds to r what the run kept private.
func (r *Result) keeps(s train.Privacy) (err error) {
	r.Privacy = &s
	r.Card.Privacy, err = json.Marshal(s)
	return err
}

// finite is x for a model card, whose figures are numbers: 0 if nothing was measured.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// bestOf is the best validation metric in the rounds of stages (NaN = nothing was validated).
func bestOf(stages []train.StageResult) float64 {
	best := math.NaN()
	for _, s := range stages {
		for _, q := range s.Curve {
			if !(q.Val <= best) {
				best = q.Val
			}
		}
	}
	return best
}
