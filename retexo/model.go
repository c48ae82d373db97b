package retexo

import (
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
)

// NewModel returns the model that c describes, with the initial parameters of c.Seed: the same on every peer.
func NewModel(c Config) (*nn.Model, error) {
	return nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
}
