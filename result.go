package heddle

import (
	"encoding/json"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/train"
)

// Event is something that happened in a run. Bars, logs, reports and audit logs subscribe to the one stream of them.
type Event = train.Event

// Result is what a run gave. Its measures are those of all peers together.
type Result struct {
	train.Result // as this process, or its first peer, saw it

	Model  *nn.Model
	Card   modelfile.Card // of the model file: the same at every peer
	Config any            // of the trainer
	Metric eval.Metric
	Val    float64 // metric of the validation nodes; NaN: there are none
	Test   float64
	Rounds int // reductions of updates, or epochs

	Peers   []Traffic     // of this process
	Members []string      // names of all peers by rank; nil: they have none
	Load    netsim.Load   // on the network: of the peer with most of each
	Link    *netsim.Table // that was simulated; nil: none
}

// Traffic is what a peer sent, in bytes.
type Traffic struct {
	Name string
	comm.Counts
	Wire int64 // as the network carried it; 0 in memory
}

// Total is what the peers of this process sent together.
func (r *Result) Total() (sum Traffic) {
	for _, p := range r.Peers {
		sum.Halo, sum.Reduce, sum.Control, sum.Wire = sum.Halo+p.Halo, sum.Reduce+p.Reduce, sum.Control+p.Control, sum.Wire+p.Wire
	}
	return sum
}

// Save writes the model to a file that Load, and peer predict, read.
func (r *Result) Save(path string) error { return modelfile.Write(path, r.Model, r.Card) }

// InputError is a fault of the plan or of the data, as opposed to one of the run.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Err }

// input marks err as a fault of what was given; nil stays nil.
func input(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{err}
}

// resultOf makes a result of what a trainer measured.
func resultOf(p Plan, own *shard.Shard, model *nn.Model, config any, metric eval.Metric, measured train.Result) (*Result, error) {
	r := &Result{Result: measured, Model: model, Config: config, Metric: metric, Val: math.NaN(), Test: math.NaN()}
	for _, s := range measured.Stages {
		r.Rounds += max(1, len(s.Curve)) // of a stage that was solved at once there is no curve
		r.Val, r.Test = s.Val, s.Test
	}
	setting, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	// What differs between peers, or after a resume, stays out: all of them write the same file.
	r.Card = modelfile.Card{Dataset: own.Name, Nodes: own.Nodes, Mode: p.Mode, Peers: own.Parts, Seed: p.Seed, Setting: setting,
		Metric: string(metric), Val: finite(r.Val), Test: finite(r.Test), Classes: own.Labels.Names, Encoding: own.Encoding}
	return r, nil
}

// finite is x for a model card, whose figures are numbers: 0 where there was nothing to measure.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}
