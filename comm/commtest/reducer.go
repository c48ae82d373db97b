package commtest

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/rng"
)

// Noise makes the reducers of one member, over all generations of a run. They do what a private reducer may do: each
// member adds noise to its Update before it is summed. An ID that comes a second time fails the test.
type Noise struct {
	T      testing.TB
	Amount float64 // standard deviation of the noise, times the largest magnitude of the Update

	mu   sync.Mutex
	seen map[comm.ReduceID]bool
}

// Over returns the member's reducer over g.
func (n *Noise) Over(g *comm.Group) comm.Reducer { return noisy{g, n} }

type noisy struct {
	*comm.Group
	noise *Noise
}

func (r noisy) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	r.noise.note(c.ID)
	largest := 0.0
	for _, v := range c.Update {
		largest = max(largest, math.Abs(float64(v)))
	}
	key := rng.New(uint64(r.Rank())).FoldString(c.ID.String())
	for i := range c.Update {
		c.Update[i] += float32(r.noise.Amount * largest * key.Normal(uint64(i)))
	}
	c.UpdateLimit = nil // noise is beyond it
	sums, err := r.Group.Reduce(ctx, c)
	if r.noise.Amount > 0 {
		sums.Error = []float64{math.Inf(1)}
	}
	return sums, err
}

func (n *Noise) note(id comm.ReduceID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id.Kind == "" || id.Generation == 0 || n.seen[id] {
		n.T.Errorf("a reduction must have its own name: %v (a second time: %t)", id, n.seen[id])
	}
	if n.seen == nil {
		n.seen = map[comm.ReduceID]bool{}
	}
	n.seen[id] = true
}

// Reductions returns how many there were of each kind.
func (n *Noise) Reductions() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	kinds := map[string]int{}
	for id := range n.seen {
		kinds[id.Kind]++
	}
	return kinds
}
