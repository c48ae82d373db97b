// Package disclosure has what members agree on before a run by a plan: what each sends to whom, judged by the site's
// policy, and the terms of their sessions.
package disclosure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Disclosure is what a site sends in a run by a plan, or in its runs by several seeds, which are counted together.
type Disclosure struct {
	Plan  plan.Plan
	Sends []Line
	Node  float64 // numbers that are sent of a node to a member that reads it
	Fresh float64 // of them, those that are not merely sums of such numbers over neighbours
	Bytes int64   // that this site sends at most, unless something is sent again after a failure

	Reads  []int // by member: nodes of this site that it reads
	Nodes  int   // of this site that any other member reads
	Stored []int // the values that the row of each of them stores, ascending

	takes []int             // by member: its nodes that this site reads
	lists []*train.Messages // one of them is what this site sends
	rough bool              // how often it sends depends on links of the other sites
}

// Approval keeps the site to what d lists, in one session.
// It is nil if nobody can list that before the run, as of the links of a run in one process.
func (d *Disclosure) Approval() comm.Approval {
	if d.rough {
		return nil
	}
	return train.NewApproval(d.Reads, d.takes, d.lists...)
}

// Line is what a site sends of one kind, over a whole run.
type Line struct {
	What        string
	Kind        train.Content
	Format      string // of the numbers
	Times       int64  // how often it is sent, at most
	Least, Most int64  // numbers each time: of a node, or of a sum, including its whole numbers
	Sum         int64  // numbers over all times
}

// Of(p, own) returns what the site that owns own sends in a run by p, or all faults of p for these data.
func Of(p plan.Plan, own *shard.Shard) (*Disclosure, error) {
	d := &Disclosure{Plan: p, rough: rough(p)}
	d.reach(allRead(p), own)
	lists, err := sent(p, own)
	if err != nil {
		return nil, err
	}
	d.count(own, lists...)
	return d, nil
}

// OfModel returns what the site that owns own sends when the members of p compute predictions by a model together.
func OfModel(p plan.Plan, m *nn.Model, card modelfile.Card, own *shard.Shard) (*Disclosure, error) {
	q, c, err := Inference(p, m, card)
	if err = errors.Join(err, infer.Fits(m, own)); err != nil {
		return nil, err
	}
	if m.Decoder != nil && !p.Task.Links() {
		return nil, fmt.Errorf("the plan's task must be links, as the model's is (got %s)", p.Task)
	}
	d := &Disclosure{Plan: q}
	d.reach(m.Decoder != nil && allRead(p), own)
	members := train.Members{Peers: own.Parts, Nodes: own.Nodes, Types: own.Types.Count(), Secure: q.Secure(own.Parts)}
	d.count(own, c.Messages(m, own.X.Sparse != nil, members))
	return d, nil
}

// count counts what is sent in a run in which one of some lists is sent.
func (d *Disclosure) count(own *shard.Shard, lists ...*train.Messages) {
	gives := int64(0)
	for _, n := range d.Reads {
		gives += int64(n)
	}
	d.lists = lists
	for _, l := range lists {
		d.Sends = merged(d.Sends, linesOf(l))
		node, fresh := l.OfNode()
		d.Node, d.Fresh = max(d.Node, node), max(d.Fresh, fresh)
		d.Bytes = max(d.Bytes, l.SiteBytes(own.Rank, gives, int64(own.Halo())))
	}
	seeds := int64(max(1, d.Plan.Runs)) // other seeds may make other numbers of the same row
	d.Node, d.Fresh, d.Bytes = d.Node*float64(seeds), d.Fresh*float64(seeds), d.Bytes*seeds
	for k := range d.Sends {
		d.Sends[k].Times, d.Sends[k].Sum = d.Sends[k].Times*seeds, d.Sends[k].Sum*seeds
	}
}

// allRead reports whether any row may be read in a run by p: samples reach as far as there are hops.
func allRead(p plan.Plan) bool {
	return p.Method == plan.MiniBatch || p.Task.Links() && p.Gradient().NegativesFrom == "all"
}

// reach counts who may read which rows of own: all of them, or only boundary rows.
func (d *Disclosure) reach(all bool, own *shard.Shard) {
	read := make([]bool, own.Owned)
	d.Reads, d.takes = make([]int, own.Parts), make([]int, own.Parts)
	for q, nodes := range own.Boundary {
		d.Reads[q], d.takes[q] = len(nodes), own.HaloPtr[q+1]-own.HaloPtr[q]
		for _, i := range nodes {
			read[i] = true
		}
	}
	for q := range d.Reads {
		if all && q != own.Rank {
			d.Reads[q], d.takes[q] = own.Owned, int(own.Nodes)-own.Owned
		}
	}
	for i, is := range read {
		if is || all && own.Parts > 1 {
			d.Nodes++
			d.Stored = append(d.Stored, stored(own.X, i))
		}
	}
	slices.Sort(d.Stored)
}

// stored returns how many values row i stores; for a dense row, the values other than 0.
func stored(x graph.Features, i int) (n int) {
	if x.Sparse != nil {
		_, val := x.Sparse.Row(i)
		return len(val)
	}
	for _, v := range x.Dense.Row(i) {
		if v != 0 {
			n++
		}
	}
	return n
}

// sent returns what a run by p sends; own is one of the parts. If the labels of all peers decide about it, it returns
// several lists, and the run will use one.
func sent(p plan.Plan, own *shard.Shard) ([]*train.Messages, error) {
	members := train.Members{Peers: own.Parts, Nodes: own.Nodes, Secure: p.Secure(own.Parts), Cuts: p.Threshold != "",
		Norm: p.NormByFeatures(own), Phones: p.ClassMeans.Leaves > 0}
	members.Train = own.Nodes - int64(own.Owned) + int64(len(own.NodesIn(graph.Train)))
	if p.Task.Links() {
		members.Types = own.Types.Count()
	}
	if p.FiguresBy != "" {
		by, err := figures.GroupsOf(p.FiguresBy, own)
		if err != nil {
			return nil, err
		}
		members.Groups = by.Len()
	}
	m, err := p.Configure(own)
	if err == nil && rough(p) {
		members.Train, err = linksLike(p, own)
	}
	if err != nil {
		return nil, err
	}
	return m.Messages(members)
}

// rough reports whether how often a site sends by p depends on links of the other sites.
func rough(p plan.Plan) bool {
	return p.Method == plan.MiniBatch && p.Task.Links() && p.MiniBatch.RoundSteps == 0
}

// linksLike returns how many links train if nodes have as many as own's on average. If sites must know before a run
// what leaves them, rounds must not depend on the links of others.
func linksLike(p plan.Plan, own *shard.Shard) (int64, error) {
	if len(p.Members) > 0 {
		return 0, errors.New("round_steps must be at least 1 for the links task by method mini-batch with members " +
			"(got 0): how many steps an epoch has depends on links of the other sites")
	}
	c, err := p.Links(own)
	if err != nil {
		return 0, err
	}
	cut, err := links.RuleOf(c, p.Seed).Cut(own)
	if err != nil || own.Owned == 0 {
		return 0, err
	}
	return int64(len(cut.Links)) * own.Nodes / int64(own.Owned), nil
}

// merged adds the lines b to a; a line in both has the larger numbers.
func merged(a, b []Line) []Line {
	for _, m := range b {
		k := slices.IndexFunc(a, m.alike)
		if k < 0 {
			a = append(a, m)
			continue
		}
		h := &a[k]
		h.Times, h.Least, h.Most, h.Sum = max(h.Times, m.Times), min(h.Least, m.Least), max(h.Most, m.Most),
			max(h.Sum, m.Sum)
	}
	slices.SortStableFunc(a, func(x, y Line) int { return order(x.Kind) - order(y.Kind) })
	return a
}

// order puts rows before sums.
func order(k train.Content) int {
	return slices.Index([]train.Content{train.Rows, train.Errors, train.Sums}, k)
}

// alike reports whether l and m are of one kind.
func (l Line) alike(m Line) bool {
	return l.What == m.What && l.Kind == m.Kind && l.Format == m.Format
}

// linesOf returns a line for each kind of message.
func linesOf(list *train.Messages) (all []Line) {
	for _, m := range list.List {
		n := m.Numbers + m.Counts
		one := Line{What: m.What, Kind: m.Kind, Format: m.Format, Times: m.Times, Least: n, Most: n, Sum: m.Times * n}
		if n == 0 {
			continue // a framing of others
		}
		k := slices.IndexFunc(all, one.alike)
		if k < 0 {
			all = append(all, one)
			continue
		}
		h := &all[k]
		h.Times, h.Least, h.Most, h.Sum = h.Times+one.Times, min(h.Least, n), max(h.Most, n), h.Sum+one.Sum
	}
	return all
}

// Median returns the median of the values that a row stores of a node that others read (0 = no such node).
func (d *Disclosure) Median() int {
	if len(d.Stored) == 0 {
		return 0
	}
	return d.Stored[len(d.Stored)/2]
}

// PerStored returns numbers divided by the median of stored values.
func (d *Disclosure) PerStored(numbers float64) float64 {
	if d.Nodes == 0 {
		return 0
	}
	return numbers / float64(max(1, d.Median()))
}

// Judge returns an error unless policy allows the plan.
func (d *Disclosure) Judge(policy admission.Policy) error {
	j := judged(d.Plan)
	j.Numbers = d.PerStored(d.Fresh)
	return policy.Check(j)
}
