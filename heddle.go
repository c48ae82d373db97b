// Package heddle trains one graph neural network across sites that cannot share their data.
//
// A Plan has all settings of a run; Defaults makes one, ReadPlan reads one from YAML.
//
//   - Train trains over the parts of a graph, with a peer for each part in this process.
//   - Join takes part in a run on several machines, as one of the plan's members.
//   - Compare trains by several plans on one graph.
//   - Predict applies a trained model to a graph.
//   - Infer computes predictions with the other members, as Join trains with them.
//
// A run reports what happens as Events and returns a Result: the model, its metrics and the bytes that were sent.
//
// Errors have a type that errors.As finds: *InputError for faults of a plan, of data or of a site's files, *PeerError
// for a site that failed or has another plan, *WaitError for sites that did not come. All others are faults of this
// machine.
package heddle

import (
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// Plan has the settings of a run, on which all sites agree, and its members. Package plan
// declares it.
type Plan = plan.Plan

// Defaults returns the default settings of a method and, of one that trains layers, of a model. Empty, they are
// class-means and gcn.
func Defaults(method, model string) Plan { return plan.Defaults(method, model) }

// InputError is a fault of the plan, of the data or of a site's files, which only a change of them removes.
type InputError = train.InputError

// PeerError is a fault of another peer, by rank and name: it failed, or its plan or part is of another run.
type PeerError = comm.PeerError

// WaitError has the names of peers that did not come before Site.Wait was over.
type WaitError = comm.WaitError

// ReadPlan reads a plan from YAML text and from settings given by name, as plan.Read does. The error is an *InputError.
func ReadPlan(text []byte, given map[string]string, rest any) (*Plan, error) {
	p, err := plan.Read(text, given, rest)
	return p, input(err)
}
