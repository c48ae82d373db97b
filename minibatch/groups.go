package minibatch

import (
	"context"

	"github.com/heddle-gnn/heddle/graph/sample"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// group is some batches of an epoch, ready to be computed.
type group struct {
	first   int       // step
	seeds   [][]int32 // [batch] own training nodes, by ID
	batches []sample.Batch
	inputs  *inputs
}

// groups prepares groups, one while the one before is computed.
type groups struct {
	key      rng.Key
	dir      *directory
	batch    int // labels of a step
	steps    int // of an epoch
	size     int // batches of a group
	epochs   int
	relay    *relay
	features *features

	order []int32 // of training nodes in that epoch
	epoch int     // of order, plus one
	ahead chan prepared
}

type prepared struct {
	epoch, first int
	group        *group
	err          error
}

// next returns the group that begins with a step of an epoch, and lets the one after it be prepared meanwhile. All peers
// ask for the same ones.
func (p *groups) next(ctx context.Context, epoch, first int) (*group, error) {
	var got prepared
	if p.ahead != nil {
		got = <-p.ahead
		p.ahead = nil
	}
	if got.err != nil {
		return nil, got.err
	}
	if got.group == nil || got.epoch != epoch || got.first != first {
		if got.group, got.err = p.prepare(ctx, epoch, first); got.err != nil {
			return nil, got.err
		}
	}
	if first += p.size; first >= p.steps {
		epoch, first = epoch+1, 0
	}
	if epoch < p.epochs {
		ahead := make(chan prepared, 1)
		p.ahead = ahead
		go func() {
			g, err := p.prepare(ctx, epoch, first)
			ahead <- prepared{epoch, first, g, err}
		}()
	}
	return got.group, nil
}

// wait waits until nothing is prepared.
func (p *groups) wait() {
	if p.ahead != nil {
		<-p.ahead
		p.ahead = nil
	}
}

// prepare samples a group and fetches its features.
func (p *groups) prepare(ctx context.Context, epoch, first int) (*group, error) {
	if p.epoch != epoch+1 {
		p.order = p.key.FoldString("batches").Fold(uint64(epoch)).Perm(len(p.dir.train))
		p.epoch = epoch + 1
	}
	g := &group{first: first}
	var keys []rng.Key
	for step := first; step < min(first+p.size, p.steps); step++ {
		g.seeds = append(g.seeds, p.own(step))
		keys = append(keys, p.key.FoldString("sample").Fold(uint64(epoch)).Fold(uint64(step)))
	}
	var err error
	if g.batches, err = p.relay.sample(ctx, keys, g.seeds); err != nil {
		return nil, err
	}
	g.inputs, err = p.features.fetch(ctx, g.batches)
	return g, err
}

// own returns the seeds of a step that this peer owns.
func (p *groups) own(step int) (seeds []int32) {
	for _, k := range p.order[step*p.batch : min((step+1)*p.batch, len(p.order))] {
		if id := p.dir.train[k]; int(p.dir.owner[id]) == p.relay.shard.Rank {
			seeds = append(seeds, id)
		}
	}
	return seeds
}
