package infer

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// Ends infers links between two of a victim's nodes from their rows, which the attacker receives as other ends of its
// own pairs if links are the task. It infers whether there is a link that trained, whether there is one that was held
// out, and which of both a link is. It takes the decoder's score or the similarity of the rows' directions, whichever
// is better. With method "layer-wise" it also tries the similarity of the rows that were sent, or of one node's
// aggregate and the other's row. The baseline compares the nodes' features.
func (run *Run) Ends(victim int) ([]Finding, error) {
	nodes, rows, err := run.Run.Ends(victim)
	if err != nil {
		return nil, err
	}
	own := run.Shards[victim]
	c, err := run.Plan.Links(own)
	if err != nil {
		return nil, err
	}
	cut, err := links.RuleOf(c, run.Plan.Seed).Cut(own)
	if err != nil {
		return nil, err
	}
	at := make(map[int32]int32)
	for k, i := range nodes {
		at[i] = int32(k)
	}
	read := map[graph.Split][]nn.Pair{}
	linked := map[nn.Pair]bool{}
	for _, l := range cut.Links {
		u, one := at[l.At]
		v, both := at[l.Other]
		if one && both && u < v && int(l.Other) < own.Owned {
			p := nn.Pair{U: u, V: v, Relation: l.Relation}
			read[l.Split] = append(read[l.Split], p)
			linked[nn.Pair{U: u, V: v}] = true
		}
	}
	key := rng.New(run.Plan.Seed).FoldString("ends")
	for split, all := range read {
		if len(all) > mostPairs {
			some := make([]nn.Pair, 0, mostPairs)
			for _, k := range key.Fold(uint64(split)).Perm(len(all))[:mostPairs] {
				some = append(some, all[k])
			}
			read[split] = some
		}
	}
	trained, held := read[graph.Train], slices.Concat(read[graph.Val], read[graph.Test])
	if len(trained) == 0 || len(held) == 0 {
		return nil, ErrNothing
	}
	apart := unlinked(len(trained), trained, linked, len(nodes), key)
	raw := directions([]mat.Dense{own.X.Select(nodes).Matrix()})
	alike := directions([]mat.Dense{rows})
	crossed, err := run.crossed(victim)
	if err != nil {
		return nil, err
	}
	judge := func(name string, with, without []nn.Pair) Finding {
		f := Finding{Attack: name, Holder: "a reader of the rows", Measure: "AUC", Tried: len(with) + len(without)}
		area := func(x mat.Dense) float64 { return Area(similar(x, with), similar(x, without)) }
		f.Base = area(raw)
		f.Value = max(area(alike),
			Area(decoded(run.Model.Decoder, rows, with), decoded(run.Model.Decoder, rows, without)))
		if len(crossed) > 0 {
			f.Value = max(f.Value, area(directions(crossed)), Area(mutuals(crossed, with), mutuals(crossed, without)))
		}
		return f
	}
	return []Finding{
		judge("links that trained, among the site's nodes", trained, apart),
		judge("links that were held out, among the site's nodes", held, apart),
		judge("which links trained, of those and held-out ones", trained, held),
	}, nil
}

// crossed returns what the attacker receives of the victim's boundary nodes with method "layer-wise": for each layer
// the rows of its input and their first aggregates, one after the other. Other methods have none.
func (run *Run) crossed(victim int) (all []mat.Dense, err error) {
	if !run.Plan.Federated() {
		return nil, nil
	}
	widths := map[int]int{} // number of layers so far, by the columns of their rows
	for _, l := range run.Model.Layers {
		rows, err := run.Rows(victim, l.Spec.In)
		if err != nil {
			return nil, err
		}
		at := widths[l.Spec.In] * (1 + max(l.Spec.Hops, 1))
		all = append(all, rows[at], rows[at+1])
		widths[l.Spec.In]++
	}
	return all, nil
}

// mutuals scores pairs by the similarity of one node's row and the other's aggregate, over all layers.
func mutuals(crossed []mat.Dense, of []nn.Pair) []float64 {
	all := make([]float64, len(of))
	for k := 0; k < len(crossed); k += 2 {
		layer := [2]mat.Dense{directions(crossed[k : k+1]), directions(crossed[k+1 : k+2])}
		for i, p := range of {
			all[i] += mutual(layer, int(p.U), int(p.V))
		}
	}
	return all
}

// unlinked samples n pairs of nodes without a link, with ends and relations of the types that links have.
func unlinked(n int, as []nn.Pair, linked map[nn.Pair]bool, nodes int, key rng.Key) (apart []nn.Pair) {
	for k := uint64(0); len(apart) < n && k < uint64(1000*n); k++ {
		one, other := as[key.Uint64(2*k)%uint64(len(as))], as[key.Uint64(2*k+1)%uint64(len(as))]
		p := nn.Pair{U: one.U, V: other.V, Relation: one.Relation}
		if p.U != p.V && !linked[nn.Pair{U: min(p.U, p.V), V: max(p.U, p.V)}] {
			apart = append(apart, p)
		}
	}
	return apart
}

func similar(x mat.Dense, of []nn.Pair) (all []float64) {
	for _, p := range of {
		all = append(all, cosine(x, int(p.U), int(p.V)))
	}
	return all
}

func decoded(d *nn.Decoder, rows mat.Dense, of []nn.Pair) (all []float64) {
	for _, s := range d.Scores(rows, of) {
		all = append(all, float64(s))
	}
	return all
}
