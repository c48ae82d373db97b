package retexo

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
)

// What the reductions of a run are of. With generation, stage, round and attempt (comm.ReduceID) no two are the same.
const (
	ofLabels     = "label counts"
	ofProducts   = "products with the Gram matrix" // encoder pca, a step a pass
	ofComponents = "components"                    // their digests
	ofRound      = "round"
	ofValidation = "validation" // of links, step 1: of the last state of a layer
	ofStage      = "finished stage"
	ofMoved      = "finished model" // of moved logits

	ofLinks    = "counts of links"
	ofGradient = "gradient" // of links
	ofResult   = "result"   // of links, a step a split
)

// id names a reduction at w. A round that did not count, since parameters differed, is done again under another step.
func (t *Trainer) id(kind string, w work) comm.ReduceID {
	return comm.ReduceID{Generation: t.Generation, Stage: w.Stage, Round: w.Round, Step: t.machine.synced, Kind: kind}
}

// reduce sums c over the peers. Where c has meta, t.said becomes what each of them says of itself, by rank.
func (t *Trainer) reduce(ctx context.Context, c *comm.Contribution) error {
	r, err := t.Reducer.Reduce(ctx, c)
	if err != nil || len(c.Meta) == 0 {
		return err
	}
	t.said = append(t.said[:0], make([]statement, len(r.Meta))...)
	for q, b := range r.Meta {
		if b == nil {
			continue
		}
		if t.said[q], err = parseStatement(b); err != nil {
			return &comm.PeerError{Rank: q, Op: c.ID.String(), Err: err}
		}
	}
	return nil
}

// digests returns the digests among what the peers said last, by rank; they are valid until the next reduction.
func (t *Trainer) digests() []uint32 {
	t.digest = t.digest[:0]
	for _, s := range t.said {
		t.digest = append(t.digest, s.Digest)
	}
	return t.digest
}
