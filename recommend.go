package heddle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/train/links"
)

// Recommendations are new links of a site's own nodes.
type Recommendations struct {
	Links []links.NewLink // in the order of the nodes and relations that were asked for, best first
	Sent  Traffic         // by this site
}

// Recommend finds, as one of p's members, the k best new links of each of some nodes of the site's shard by m, a model of
// links, under a relation, or under each that the model knows where it is empty. The other ends are nodes of all sites or, where
// p draws pairs from near nodes, the site's own nodes and their neighbours: their owners send the rows that the decoder reads.
// All members call it with the same plan and model file, as Infer; a site may want no links.
//
// The error is an *InputError if plan, model, shard or gate is at fault, and a *comm.PeerError if another peer is.
func Recommend(ctx context.Context, p Plan, s Site, m *nn.Model, card modelfile.Card, nodes []int32, relation string, k int) (*Recommendations, error) {
	if p.Task != "links" {
		return nil, input(fmt.Errorf("the plan must be of task links (got %s): it says which rows travel", p.Task))
	}
	rank, err := p.Rank(s.Identity.PeerID())
	if err = errors.Join(err, CheckMembers(p)); err == nil {
		err = seated(p, s.Shard, rank)
	}
	if err = errors.Join(err, infer.Known(m, s.Shard), infer.Fits(m, s.Shard), modelfile.SameColumns(card.Encoding, s.Shard.Encoding)); err != nil {
		return nil, input(err)
	}
	by, err := p.EndToEnd(s.Shard)
	if err != nil {
		return nil, input(err)
	}
	q, config, err := p.Inference(m, card)
	if err != nil {
		return nil, input(err)
	}
	names := m.Decoder.Spec.Relations
	if relation != "" && !slices.Contains(names, relation) {
		return nil, input(fmt.Errorf("relation must be one of %q, which the model knows (got %q)", names, relation))
	}
	var wanted []links.Wanted
	for _, i := range nodes {
		for r, name := range names {
			if relation == "" || name == relation {
				wanted = append(wanted, links.Wanted{Node: i, Relation: int32(r)})
			}
		}
	}
	print, err := modelfile.Fingerprint(m, card)
	if err != nil {
		return nil, input(err)
	}
	s.Gate.PlanText = InferenceText(s.Gate.PlanText, print)
	text := string(InferenceText([]byte(q.Agreed()), print))
	out := &Recommendations{}
	one := meeting{plan: p, what: "recommend", hello: p2p.Hello{Plan: sha256.Sum256([]byte(text)), Partition: s.Shard.Fingerprint, PlanText: text}}
	one.sends = func() (*disclosure.Disclosure, error) { return disclosure.OfModel(p, m, card, s.Shard) }
	one.do = func(ctx context.Context, with *Session) error {
		var err error
		out.Links, err = infer.Together(ctx, config, *by.Links, m, s.Shard, with.Group, with.Sums, wanted, k)
		with.Left("recommend")
		if err == nil {
			err = with.Group.Barrier(ctx) // nobody leaves before all have what they need
		}
		out.Sent = Traffic{Name: p.Members[rank].Name, Counts: with.Group.Bytes(), Wire: with.wire()}
		return err
	}
	return out, one.attend(ctx, s)
}
