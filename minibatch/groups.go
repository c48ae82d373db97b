package minibatch

import (
	"context"

	"github.com/heddle-gnn/heddle/graph/sample"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// group is some batches of an epoch, ready to be computed.
type group struct {
	epoch, first int       // first: step
	seeds        [][]int32 // [batch] own training nodes, by ID
	batches      []sample.Batch
	inputs       *inputs
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

	order []int32  // of training nodes in that epoch
	epoch int      // of order, plus one
	drawn []*group // without inputs: sampled so that the cache knows what comes, the next one first
	ahead chan prepared
}

type prepared struct {
	group *group
	err   error
}

// next returns the group that begins with a step of an epoch, and lets the one after it be prepared meanwhile, in groups of
// size batches. All peers ask for the same ones.
func (p *groups) next(ctx context.Context, epoch, first, size int) (*group, error) {
	var got prepared
	if p.ahead != nil {
		got = <-p.ahead
		p.ahead = nil
	}
	if got.err != nil {
		return nil, got.err
	}
	p.size = size
	if got.group == nil || got.group.epoch != epoch || got.group.first != first {
		p.drawn = nil
		if got.group, got.err = p.prepare(ctx, epoch, first); got.err != nil {
			return nil, got.err
		}
	}
	if epoch, first = p.after(got.group); epoch < p.epochs {
		ahead := make(chan prepared, 1)
		p.ahead = ahead
		go func() {
			g, err := p.prepare(ctx, epoch, first)
			ahead <- prepared{g, err}
		}()
	}
	return got.group, nil
}

// after returns where the group after g begins.
func (p *groups) after(g *group) (epoch, first int) {
	if first = g.first + len(g.batches); first >= p.steps {
		return g.epoch + 1, 0
	}
	return g.epoch, first
}

// wait waits until nothing is prepared.
func (p *groups) wait() {
	if p.ahead != nil {
		<-p.ahead
		p.ahead = nil
	}
}

// prepare samples a group, with a cache also those that follow, and fetches its features.
func (p *groups) prepare(ctx context.Context, epoch, first int) (*group, error) {
	most := 1
	if p.features.cache != nil {
		most += lookAhead
	}
	for len(p.drawn) < most && epoch < p.epochs {
		if n := len(p.drawn); n > 0 {
			if epoch, first = p.after(p.drawn[n-1]); epoch >= p.epochs {
				break
			}
		}
		g, err := p.sample(ctx, epoch, first)
		if err != nil {
			return nil, err
		}
		p.drawn = append(p.drawn, g)
	}
	g := p.drawn[0]
	p.drawn = p.drawn[1:]
	next := make([][]sample.Batch, len(p.drawn))
	for k, later := range p.drawn {
		next[k] = later.batches
	}
	var err error
	g.inputs, err = p.features.fetch(ctx, g.batches, next)
	return g, err
}

// sample samples the group that begins with a step of an epoch.
func (p *groups) sample(ctx context.Context, epoch, first int) (*group, error) {
	if p.epoch != epoch+1 {
		p.order = p.key.FoldString("batches").Fold(uint64(epoch)).Perm(len(p.dir.train))
		p.epoch = epoch + 1
	}
	g := &group{epoch: epoch, first: first}
	var keys []rng.Key
	for step := first; step < min(first+p.size, p.steps); step++ {
		g.seeds = append(g.seeds, p.own(step))
		keys = append(keys, p.key.FoldString("sample").Fold(uint64(epoch)).Fold(uint64(step)))
	}
	var err error
	g.batches, err = p.relay.sample(ctx, keys, g.seeds)
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
