package recorded

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Lie is how members poison a run: they train on false labels, or change their parts of sums.
type Lie struct {
	Name   string
	label  func(class, classes int32, node int64) int32 // of training and validation nodes (nil = the true one)
	kind   string                                       // of the reductions that are changed
	change func(c *comm.Contribution, classes int)      // (nil = none are)
}

// Lies returns the lies that are tried on a run by p.
func Lies(p plan.Plan) []Lie {
	flipped := func(class, classes int32, _ int64) int32 { return (class + 1) % classes }
	drawn := func(_, classes int32, node int64) int32 {
		return int32(rng.New(1).FoldString("false labels").Uint64(uint64(node)) % uint64(classes))
	}
	all := []Lie{{Name: "labels of the next class", label: flipped}, {Name: "random labels", label: drawn}}
	scaled := func(what, kind string, factors ...float32) {
		for _, by := range factors {
			all = append(all, Lie{Name: fmt.Sprintf("%s × %g", what,
				by), kind: kind, change: func(c *comm.Contribution, _ int) {
				for i := range c.Update {
					c.Update[i] *= by
				}
			}})
		}
	}
	if p.Method != plan.ClassMeans {
		scaled("updates", "round", 1e6, 10, -1, -2, -4)
		return all
	}
	scaled("class means", "class means", 10, -4, -1)
	all = append(all, Lie{Name: "class means of the next class", kind: "class means",
		change: turn(func(c *comm.Contribution, _ int) int { return 0 })})
	scaled("normal equations", "normal equations", 10, -1)
	return append(all, Lie{Name: "products with labels × -1", kind: "normal equations", change: reverse},
		Lie{Name: "products with labels of the next class", kind: "normal equations", change: turn(products)})
}

// turn gives each row of one number a class, from a first number on, the numbers of the next class.
func turn(first func(c *comm.Contribution, classes int) int) func(c *comm.Contribution, classes int) {
	return func(c *comm.Contribution, classes int) {
		width := classes
		if c.Columns > 0 {
			width = c.Columns
		}
		for i := first(c, classes); i < len(c.Update); i += width {
			row := c.Update[i : i+width]
			last := row[width-1]
			copy(row[1:], row)
			row[0] = last
		}
	}
}

// reverse changes the signs of products with labels.
func reverse(c *comm.Contribution, classes int) {
	for i := products(c, classes); i < len(c.Update); i++ {
		c.Update[i] = -c.Update[i]
	}
}

// products returns the range of the first round's normal equations with products of columns and labels, after the
// constant's products, which are known (linear.Part). Later rounds have none.
func products(c *comm.Contribution, classes int) int {
	for k := 1; linear.PartLen(k, k, classes) <= len(c.Update) && c.ID.Round == 0; k++ {
		if linear.PartLen(k, k, classes) == len(c.Update) {
			return linear.PartLen(k, k, 0) + classes
		}
	}
	return len(c.Update)
}

// liar is a member's reducer that changes its parts first.
type liar struct {
	comm.Reducer
	lie     Lie
	classes int
}

func (l liar) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if l.lie.change != nil && c.ID.Kind == l.lie.kind {
		l.lie.change(c, l.classes)
	}
	return l.Reducer.Reduce(ctx, c)
}

// Poison trains by p over shards, a peer each, connected in memory; the last peers are the liars. It returns the
// metrics of the first peer, over the test nodes of honest peers: damage to the liars' own predictions does not count.
// A Lie without content compares.
func Poison(ctx context.Context, p plan.Plan, shards []*shard.Shard, liars int, lie Lie) (train.Result, error) {
	honest := len(shards) - liars
	if liars < 0 || honest < 1 {
		return train.Result{}, fmt.Errorf("liars must be 0 to %d of %d peers (got %d)", len(shards)-1, len(shards),
			liars)
	}
	shards = slices.Clone(shards)
	for r := honest; r < len(shards); r++ {
		shards[r] = lie.relabelled(shards[r])
	}
	run := &Run{Plan: p, Shards: shards, sums: func(rank int, r comm.Reducer) comm.Reducer {
		if rank >= honest {
			r = liar{r, lie, shards[rank].Labels.Classes}
		}
		return r
	}}
	err := run.train(ctx)
	return run.Result, err
}

// relabelled returns s without test nodes and, if l is about labels, with false ones of its training and validation
// nodes.
func (l Lie) relabelled(s *shard.Shard) *shard.Shard {
	to := *s
	to.Labels.Class, to.Split = slices.Clone(s.Labels.Class), slices.Clone(s.Split)
	for i, class := range s.Labels.Class {
		if s.Split[i] == graph.Test {
			to.Split[i] = graph.None
		}
		if l.label != nil && class >= 0 && (s.Split[i] == graph.Train || s.Split[i] == graph.Val) {
			to.Labels.Class[i] = l.label(class, int32(s.Labels.Classes), s.Global[i])
		}
	}
	return &to
}
