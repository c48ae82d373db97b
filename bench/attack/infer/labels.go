package infer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// RowClasses infers the classes of other members' training nodes from the largest number of the rows that are sent, in
// the round where this is right most often. The baseline is the same for test nodes, whose labels are not used: the
// excess over it comes from labels.
func (run *Run) RowClasses() (Finding, error) {
	all, err := run.RowClassesByRound()
	if err != nil {
		return Finding{}, err
	}
	return slices.MaxFunc(all, func(a, b Finding) int { return cmp.Compare(a.Value-a.Base, b.Value-b.Base) }), nil
}

// RowClassesByRound is RowClasses of each round.
func (run *Run) RowClassesByRound() (all []Finding, err error) {
	rounds := 0
	switch form, beside := run.Model.Closed, run.Model.Encoder.Classes; {
	case beside != nil:
		rounds = beside.Spec.Rounds + 1
	case form == nil || form.Spec.Residual || form.Spec.Multi:
		return nil, ErrNothing
	default:
		rounds = form.Spec.Rounds
	}
	for r := range rounds {
		var right, of [2][]float64 // of training and test nodes, by class
		for k := range of {
			right[k], of[k] = make([]float64, run.Shards[0].Labels.Classes),
				make([]float64, run.Shards[0].Labels.Classes)
		}
		err := run.compared(func(own *shard.Shard, v int32, before []mat.Dense, i, k int) {
			if c := own.Labels.Class[v]; c >= 0 {
				of[k][c]++
				if largest(before[r], i) == int(c) {
					right[k][c]++
				}
			}
		})
		if err != nil {
			return nil, err
		}
		value, base, n := 0.0, 0.0, 0.0
		for c, k := range of[0] {
			if of[1][c] > 0 { // else nothing to compare with
				value, base, n = value+right[0][c], base+k*right[1][c]/of[1][c], n+k
			}
		}
		if n == 0 {
			return nil, ErrNothing
		}
		all = append(all, Finding{"labels of training nodes off rows", "a reader of the rows", "right, " +
			"training against test nodes", value / n, base / n, int(n)})
	}
	return all, nil
}

// compared calls f for the training nodes (of = 0) and the test nodes (of = 1) of other members whose rows the attacker
// receives: node v of own, whose row of each round is row i of before.
func (run *Run) compared(f func(own *shard.Shard, v int32, before []mat.Dense, i, of int)) error {
	kinds := map[graph.Split]int{graph.Train: 0, graph.Test: 1}
	for victim, own := range run.Shards {
		if victim == run.Attacker {
			continue
		}
		before, err := run.classRows(victim)
		if err != nil {
			return err
		}
		for i, v := range own.Boundary[run.Attacker] {
			if of, ok := kinds[own.Split[v]]; ok {
				f(own, v, before, i, of)
			}
		}
	}
	return nil
}

// classRows returns the rows that a victim's boundary nodes send with one number a class, before any aggregation. These
// are the rows of each round of class means and, if layers see their logits, the part of the first layer's rows that
// has these.
func (run *Run) classRows(victim int) ([]mat.Dense, error) {
	before, _, err := run.crossing(victim)
	form := run.Model.Encoder.Classes
	if err != nil || form == nil {
		return before, err
	}
	rows, err := run.Rows(victim, run.Shards[0].Labels.Classes)
	if err != nil || len(rows) < form.Spec.Rounds*form.Spec.Hops {
		return nil, cmp.Or(err, ErrNothing)
	}
	var first []mat.Dense // of each round's hops
	for r := range form.Spec.Rounds {
		first = append(first, rows[r*form.Spec.Hops])
	}
	return append(first, before[0].ColRange(run.Model.Encoder.Proj.W.Value.Cols, before[0].Cols)), nil
}

func largest(x mat.Dense, i int) (at int) {
	for k, v := range x.Row(i) {
		if v > x.At(i, at) {
			at = k
		}
	}
	return at
}

// Labels estimates how a victim's labels are distributed over the classes. For training labels it uses the sum of label
// counts: an attacker knows its own part and, if sums are in the clear, sees the victim's. For the labels of all its
// nodes it uses the largest numbers of its rows. Value is the total variation distance (0 = exact, 1 = nothing in
// common), and Base the distance of the distribution over all sites.
func (run *Run) Labels(victim int) (all []Finding, err error) {
	own, classes := run.Shards[victim], run.Shards[0].Labels.Classes
	if own.Labels.Kind() != graph.Single {
		return nil, ErrNothing
	}
	everywhere := make([]float64, classes)
	training := make([]float64, classes)
	labels := make([]float64, classes)
	for r, s := range run.Shards {
		for i, c := range s.Labels.Class {
			if i >= s.Owned || c < 0 {
				continue
			}
			if s.Split[i] == graph.Train {
				everywhere[c]++
			}
			if r == victim {
				labels[c]++
				if s.Split[i] == graph.Train {
					training[c]++
				}
			}
		}
	}
	const measure = "distance of the distribution"
	if counts, how := run.counted(victim, classes); counts != nil {
		all = append(all, Finding{"training labels of a site", how, measure, variation(counts, training),
			variation(everywhere, training), len(own.NodesIn(graph.Train))})
	}
	form := run.Model.Closed
	if before, err := run.classRows(victim); err == nil && (run.Model.Encoder.Classes != nil ||
		form != nil && !form.Spec.Residual) {
		rows := make([]float64, classes)
		last := before[len(before)-1]
		for i := range last.Rows {
			rows[largest(last, i)]++
		}
		all = append(all, Finding{"labels of a site", "a reader of the rows", measure, variation(rows, labels),
			variation(everywhere, labels), last.Rows})
	}
	if len(all) == 0 {
		return nil, ErrNothing
	}
	return all, nil
}

// counted returns an attacker's estimate of a victim's label counts, and what the attacker has.
func (run *Run) counted(victim, classes int) (counts []float64, how string) {
	k := slices.IndexFunc(run.sums, func(s sum) bool { return s.id.Kind == ofLabels })
	if k < 0 {
		return nil, ""
	}
	others := len(run.Shards) - 1
	part := make([]int64, len(run.sums[k].our))
	for i, v := range run.sums[k].our {
		part[i] = v - run.sums[k].mine[i]
	}
	how = fmt.Sprintf("a member: the total less its own part, of %d others", others)
	if others == 1 {
		how = "the other of two members"
	} else if !run.Plan.Secure(len(run.Shards)) {
		bits := comm.CountBits(run.Shards[victim].Nodes)
		size := comm.CountBytes(int64(len(part)), 0, bits, len(run.Shards))
		for _, m := range run.Record.Received(victim, comm.Reduce) {
			if m.Given && len(m.Payload) == int(size) {
				how = "who sums in the clear"
				c := comm.Contribution{Counts: part, CountBits: bits}
				c.TakeCounts(comm.Integers{Bits: int(8*size) / len(part), B: m.Payload}, len(run.Shards))
				break
			}
		}
	}
	counts = make([]float64, classes)
	for c := range counts { // nodes that train, and those that would validate
		counts[c] = float64(part[c] + part[classes+c])
	}
	return counts, how
}

// variation is the total variation distance of two distributions that are given by counts.
func variation(a, b []float64) (d float64) {
	total := func(x []float64) (sum float64) {
		for _, v := range x {
			sum += v
		}
		return max(sum, 1e-300)
	}
	for c, v := range a {
		d += math.Abs(v/total(a)-b[c]/total(b)) / 2
	}
	return d
}
