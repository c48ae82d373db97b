package classmeans

import (
	"context"
	"crypto/rand"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/train"
)

// Method is training by class means at one peer. With Epsilon, all its trainings are one release of the peer's edges.
type Method struct {
	Config
	Leaves    bool `json:"-"` // whether sums have parts of leaves (package leaf)
	LeafEdges bool `json:"-"` // whether edges connect leaves

	edges *dp.PrivateEdges
}

// Messages implements train.Method: as few or as many nodes have labels.
func (m *Method) Messages(members train.Members) ([]*train.Messages, error) {
	lists := m.Config.Messages(members, 0)
	if m.Residual(0, 1) != m.Residual(1, 1) {
		lists = append(lists, m.Config.Messages(members, 1)...)
	}
	return lists, nil
}

// Train implements train.Method.
func (m *Method) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	if m.Epsilon > 0 && m.edges == nil {
		var secret [32]byte
		rand.Read(secret[:])
		var err error
		if m.edges, err = m.mechanism(secret); err != nil {
			return nil, train.Input(err)
		}
		m.edges.Spend = at.Spend
	}
	t, err := New(m.Config, own)
	if err != nil {
		return nil, train.Input(err)
	}
	t.edges, t.Leaves = m.edges, m.Leaves
	if all, ok := at.Sums.(Neighbours); ok && m.LeafEdges {
		t.Beyond = all
	}
	here := *at
	if m.Leaves {
		here.Checkpoints = nil // sums are kept instead of states: leaf.Journal
	}
	trained, err := train.RunTrainer(ctx, &here, t, m.Config)
	if trained != nil && m.edges != nil {
		s := m.edges.Statement()
		trained.Privacy = &s
	}
	return trained, err
}
