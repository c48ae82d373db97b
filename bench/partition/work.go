package partition

import (
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// What the model of a layer takes: a row of 256 float32 values is read per edge of a sum, and a
// layer's backward pass does twice the work of its forward pass; a message is such a row.
const (
	secondsPerEdge = 3 * 1e-7
	bytesOfMessage = 2 * 1024
)

// work compares parts of as many nodes with parts of as much work: messages of a least cover,
// balance, and the modelled time of a layer of the slowest worker.
func (o options) work(p *page.Page) error {
	p.Table("graph %s", "k %d", "policy %s", "even in %s", "messages %d", "work balance %.2f", "node balance %.2f",
		"layer at 1 Gbit/s, ms %.1f", "at 10 Gbit/s, ms %.1f")
	return o.each(func(name string, g *graph.Graph, k int) error {
		for _, policy := range strings.Split(o.policies, ",") {
			for _, goal := range []partition.Goal{{Vertices: 1.03}, partition.Even} {
				if err := slowest(p, g, name, policy, goal, k); err != nil {
					return fmt.Errorf("%s, %s: %w", name, policy, err)
				}
			}
		}
		return nil
	})
}

// slowest adds the row of one partition.
func slowest(p *page.Page, g *graph.Graph, name, policy string, goal partition.Goal, k int) error {
	by, err := partition.ParsePolicy(policy)
	if err != nil {
		return err
	}
	shards, err := partition.Partition(g, partition.Bounded(by, goal), k, 1)
	if err != nil {
		return err
	}
	plan := partition.LeastMessages(shards)
	nodes, work := make([]int64, k), make([]int64, k)
	var at1, at10 float64
	for q, s := range shards {
		var in, out int64
		for r := range shards {
			in += plan.Rows[r][q] + plan.Sums[r][q]
			out += plan.Rows[q][r] + plan.Sums[q][r]
		}
		nodes[q] = int64(s.Owned)
		work[q] = int64(s.Adj.NumEdges()) + partition.NodeWork*nodes[q]
		busy, bits := secondsPerEdge*float64(work[q]), 8*bytesOfMessage*float64(max(in, out))
		at1, at10 = max(at1, busy+bits/1e9), max(at10, busy+bits/1e10)
	}
	even := "nodes"
	if goal.Work > 0 {
		even = "work"
	}
	p.Row(name, k, policy, even, plan.Total, partition.Balance(work), partition.Balance(nodes), 1e3*at1, 1e3*at10)
	return nil
}
