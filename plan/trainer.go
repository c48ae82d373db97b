package plan

import (
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/train"
)

// Configure returns p's method for the peer that owns s, or all faults of p.
func (p Plan) Configure(s *shard.Shard) (train.Method, error) { return p.configure(p.taskOf(s)) }

// Identify returns a hash of what the peers of a run by p must agree on, or all faults of p. Peers
// whose hashes differ refuse each other.
func (p Plan) Identify(s *shard.Shard) ([32]byte, error) { return p.identify(p.taskOf(s)) }

func (p Plan) identify(t task) ([32]byte, error) {
	m, err := p.configure(t)
	return m.Fingerprint(), err
}

// configure returns p's method for t, or all faults of p.
func (p Plan) configure(t task) (train.Method, error) {
	switch {
	case p.Method == FullBatch:
		return p.endToEndConfig(t)
	case p.Method == MiniBatch:
		return p.sampledConfig(t)
	case p.Method == LayerWise && p.Task.Links():
		return p.linkwise(t)
	case p.Method == LayerWise:
		return p.layerwise(t)
	}
	c, err := p.closedFormConfig(t)
	return &classmeans.Method{Config: c, Leaves: p.ClassMeans.Leaves > 0, LeafEdges: p.ClassMeans.LeafEdges}, err
}
