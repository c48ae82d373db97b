// Package heddle trains one graph neural network across sites that cannot share their data.
//
// A Plan holds all settings of a run; Defaults makes one, ReadPlan reads one from YAML.
//
//   - Train trains over the parts of a graph, with a peer for each part in this process.
//   - Join takes part in a run on several machines, as one of the plan's members.
//   - Compare trains by several plans on one graph.
//   - Predict applies a trained model to a graph.
//
// A run reports what happens as Events and returns a Result: the model, its metrics and the bytes
// that were sent. Faults of a plan or of data are of type *InputError; all other errors are faults
// of the run, of which those of type *comm.PeerError name the peer.
package heddle
