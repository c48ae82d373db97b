// Package contest sets up the contest between the plans that class-means may try, on the parts of a graph: which of them
// may run there, and how many bytes each sends at most.
package contest

import (
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/retexo/closedform"
	"github.com/heddle-gnn/heddle/traffic"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/tune"
)

// Limit returns the bytes that all peers of a run by p send at most. own is one of the parts.
func Limit(p plan.Plan, own *shard.Shard, e tune.Extent) (int64, error) {
	labelled := e.Counts(own.Labels.Kind(), p.Seed).Labelled
	members := traffic.Members{Peers: int(e.Peers), Nodes: e.Nodes, Train: int64(labelled), Secure: p.Secure(int(e.Peers)), Cuts: p.Threshold != ""}
	c, err := p.ClosedForm(own)
	if err != nil {
		return 0, err
	}
	residual := c.Residual(labelled, float64(e.Nodes))
	return traffic.ClassMeans(c, members, residual).Bytes(e.Peers, e.Halo), nil
}

// Extent is what one peer adds to the extent of a contest between candidates.
func Extent(p plan.Plan, own *shard.Shard, all []plan.Candidate) tune.Extent {
	e := tune.Extent{Peers: 1, Nodes: int64(own.Owned), Halo: int64(own.Halo()), Labels: labels.Numbers(own, labels.Draw{Seed: p.Seed}), Barred: make([]int64, len(all))}
	for i, c := range all {
		if c.Fault != nil {
			e.Barred[i] = 1
		}
	}
	return e
}

// Entrant is what a contest over the partition that own is a part of knows of c.
func Entrant(c plan.Candidate, own *shard.Shard) tune.Entrant {
	return tune.Entrant{Name: c.Name, Plan: fmt.Sprintf("%spartition: %x\n", c.Plan.Agreed(), own.Fingerprint),
		Usual: c.Usual, Target: c.Target, Own: c.Plan.Hops == 0}
}

// perFeature is how many training nodes a random feature takes: with fewer, a plan of many of them is not worth its bytes.
const perFeature = 10

// fits returns why c is not to be tried where so many of all nodes have a label. Of plans that come to the
// same there only the first is: same has the names of those before c.
func fits(c plan.Candidate, own *shard.Shard, labelled, nodes float64, same map[[32]byte]string) error {
	config, err := c.Plan.ClosedForm(own)
	if err != nil {
		return err
	}
	auto := config
	if auto.Target = closedform.Auto; c.Target == "residual" && !auto.Residual(labelled, nodes) {
		return fmt.Errorf("residuals of many features take labels of a fifth of the nodes (there are %g of %g)", labelled, nodes)
	}
	if least := perFeature * config.Random; c.Many && labelled < float64(least) {
		return fmt.Errorf("not worth its bytes: its %d random features take %d training nodes (there are %g)", config.Random, least, labelled)
	}
	id := config.Resolved(labelled, nodes).Fingerprint()
	if first, ok := same[id]; ok {
		return fmt.Errorf("the same as %s, with these labels", first)
	}
	same[id] = c.Name
	return nil
}

// New returns the contest between candidates of p over parts of which own is one, and of whose extents e is the sum. An error
// says why none of them can run.
func New(p plan.Plan, all []plan.Candidate, e tune.Extent, own *shard.Shard) (*tune.Contest, error) {
	list := make([]tune.Entrant, len(all))
	counts := e.Counts(own.Labels.Kind(), p.Seed)
	small := 0
	for _, n := range counts.Classes {
		if n < float64(p.MinClass) {
			small++
		}
	}
	if e.Peers > 1 && 2*small > len(counts.Classes) { // one peer needs no more than a node of each
		return nil, fmt.Errorf("class-means: most classes have fewer than %d training nodes (min_class): label more nodes, set min_class lower, "+
			"or choose another method by name, such as layer-wise or full-batch", p.MinClass)
	}
	same := map[[32]byte]string{} // names of candidates, by what their settings come to with these labels
	for i, c := range all {
		list[i] = Entrant(c, own)
		if e.Halo == 0 { // no row crosses, so none tells more beside another
			list[i].Target = ""
		}
		err := c.Fault
		if err == nil && e.Barred[i] > 0 {
			err = errors.New("another site does not allow it")
		}
		if err == nil {
			err = fits(c, own, counts.Labelled, float64(e.Nodes), same)
		}
		if err == nil {
			list[i].Limit, err = Limit(c.Plan, own, e)
		}
		if err != nil {
			list[i].Barred = err.Error()
		}
	}
	metric := eval.Metric("accuracy") // as of any metric of classes
	if own.Labels.Kind() == target.Numbers {
		metric = "r2"
	}
	c, err := tune.New(metric, int64(math.Round(float64(p.Budget)*1e6)), int64(counts.Validating()), list)
	if err != nil {
		return nil, fmt.Errorf("method class-means: %w; add some, or set hops: 2: one closed form is then trained, which needs none", err)
	}
	return c, nil
}
