package minibatch

import (
	"context"

	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// group is some batches of an epoch, ready for training.
type group struct {
	first   int       // first step, counted over the run
	seeds   [][]int32 // [batch] own training nodes, by ID
	batches []sample.Batch
	inputs  *inputs
	pairs   []nn.PairGroups // [batch] pairs of its seeds, for link prediction
}

// groups prepares groups, each while the group before it is computed.
type groups struct {
	key      rng.Key
	train    []int32 // IDs of the labelled training nodes of all peers, ascending
	batch    int     // labels of a step
	steps    int     // steps of an epoch
	round    int     // steps of a round
	size     int     // batches of a group
	total    int     // steps of the run
	relay    *relay
	features *features
	links    *links.Learner // (nil = nodes have labels)
	linked   *links.Batches // links of the current epoch

	order []int32  // training nodes in the order of the current epoch
	epoch int      // epoch of order, plus one
	drawn []*group // sampled groups without inputs, next one first: from them the cache knows the next groups' nodes
	ahead chan prepared
}

type prepared struct {
	group *group
	err   error
}

// next returns the group that begins with step `first` of the run, in groups of size batches, and starts to prepare the
// group after it. All peers ask for the same groups.
func (p *groups) next(ctx context.Context, first, size int) (*group, error) {
	var got prepared
	if p.ahead != nil {
		got = <-p.ahead
		p.ahead = nil
	}
	if got.err != nil {
		return nil, got.err
	}
	p.size = size
	if got.group == nil || got.group.first != first {
		p.drawn = nil
		if got.group, got.err = p.prepare(ctx, first); got.err != nil {
			return nil, got.err
		}
	}
	if first = got.group.end(); first < p.total {
		ahead := make(chan prepared, 1)
		p.ahead = ahead
		go func() {
			g, err := p.prepare(ctx, first)
			ahead <- prepared{g, err}
		}()
	}
	return got.group, nil
}

// end returns the first step after the group.
func (g *group) end() int { return g.first + len(g.batches) }

// wait waits until no group is being prepared.
func (p *groups) wait() {
	if p.ahead != nil {
		<-p.ahead
		p.ahead = nil
	}
}

// prepare samples a group and fetches its features. With a cache it also samples the following groups.
func (p *groups) prepare(ctx context.Context, first int) (*group, error) {
	most := 1
	if p.features.cache != nil {
		most += lookAhead
	}
	if n := len(p.drawn); n > 0 {
		first = p.drawn[n-1].end()
	}
	for ; len(p.drawn) < most && first < p.total; first = p.drawn[len(p.drawn)-1].end() {
		g, err := p.sample(ctx, first)
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

// sample samples the group that begins with step `first` of the run. A group ends with its round and with its epoch.
func (p *groups) sample(ctx context.Context, first int) (*group, error) {
	epoch, step := first/p.steps, first%p.steps
	g := &group{first: first}
	var keys []rng.Key
	for k := step; k < min(step+p.size, p.steps, step+p.round-first%p.round); k++ {
		keys = append(keys, p.key.FoldString("sample").Fold(uint64(epoch)).Fold(uint64(k)))
	}
	var err error
	if p.links != nil {
		if err = p.seed(g, epoch, step, len(keys)); err != nil {
			return nil, err
		}
	} else {
		if p.epoch != epoch+1 {
			p.order = p.key.FoldString("batches").Fold(uint64(epoch)).Perm(len(p.train))
			p.epoch = epoch + 1
		}
		for k := range keys {
			g.seeds = append(g.seeds, p.own(step+k))
		}
	}
	g.batches, err = p.relay.sample(ctx, keys, g.seeds)
	return g, err
}

// seed gives g the ends of the links of n steps as seeds, and the relay the edges that these steps omit.
func (p *groups) seed(g *group, epoch, step, n int) error {
	if p.epoch != epoch+1 {
		p.linked, p.epoch = p.links.Batches(epoch, p.steps), epoch+1
	}
	p.relay.left = nil
	all := p.linked
	for k := step; k < step+n; k++ {
		b, err := all.Batch(k)
		if err != nil {
			return err
		}
		g.seeds, g.pairs = append(g.seeds, b.Nodes), append(g.pairs, b.Pairs)
		p.relay.left = append(p.relay.left, all.Left(k))
	}
	return nil
}

// own returns the seeds of a step of the epoch that this peer owns.
func (p *groups) own(step int) (seeds []int32) {
	for _, k := range p.order[step*p.batch : min((step+1)*p.batch, len(p.order))] {
		if id := p.train[k]; int(p.relay.dir.Peer[id]) == p.relay.shard.Rank {
			seeds = append(seeds, id)
		}
	}
	return seeds
}
