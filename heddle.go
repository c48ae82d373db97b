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
// A run reports what happens as Events and returns a Result: the model, its metrics and the bytes
// that were sent. Faults of a plan or of data are of type *InputError; all other errors are faults
// of the run. Errors of type *comm.PeerError name the peer.
package heddle

import "github.com/heddle-gnn/heddle/plan"

// Plan has the settings of a run, on which all sites agree, and its members. Package plan
// declares it.
type Plan = plan.Plan

// Auto, as Plan.Peers, leaves the number of peers to policy and partition.
const Auto = plan.AutoPeers

// Defaults returns the default settings of a method and, of one that trains layers, of a model. Empty, they are
// class-means and gcn.
func Defaults(method, model string) Plan { return plan.Defaults(method, model) }

// ReadPlan reads a plan from YAML text and from settings given by name, as plan.Read does.
func ReadPlan(text []byte, given map[string]string, rest any) (*Plan, error) {
	return plan.Read(text, given, rest)
}
