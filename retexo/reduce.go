package retexo

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// What the reductions of a run sum. With generation, stage, round and attempt (comm.ReduceID) no two IDs are the same.
const (
	ofLabels     = "label counts"
	ofProducts   = "products with the Gram matrix" // encoder pca; the step is the pass
	ofComponents = "components"                    // digests of the components
	ofRound      = "round"
	ofValidation = "validation" // for links; step 1 is the last state of a layer
	ofStage      = "finished stage"
	ofMoved      = "finished model" // the model with moved logits

	ofLinks    = "counts of links"
	ofGradient = "gradient" // for links
	ofResult   = "result"   // for links; the step is the split
)

// id names a reduction of w. A round that does not count, because parameters differed, is repeated under another step.
func (t *Trainer) id(kind string, w work) comm.ReduceID {
	return comm.ReduceID{Generation: t.Generation, Stage: w.Stage, Round: w.Round, Step: t.machine.synced, Kind: kind}
}

// A peer's statement with its part of a reduction is compared, not summed: u32 digest of its parameters · 5 reserved
// bytes 0.
const (
	digestLen    = 4 // bytes that are equal at peers with equal parameters
	statementLen = digestLen + 5
)

// state appends a peer's statement of its parameters.
func state(b []byte, params []float32) []byte {
	return append(binary.LittleEndian.AppendUint32(b, train.Digest(params)), 0, 0, 0, 0, 0)
}

// reduce sums c over the peers. If c has Meta, t.digests becomes the digests of each peer's parameters, by rank.
func (t *Trainer) reduce(ctx context.Context, c *comm.Contribution) error {
	r, err := t.Reducer.Reduce(ctx, c)
	if err != nil || len(c.Meta) == 0 {
		return err
	}
	t.digests = append(t.digests[:0], make([]uint32, len(r.Meta))...)
	for q, b := range r.Meta {
		switch {
		case b == nil:
		case len(b) != statementLen ||
			[statementLen - digestLen]byte(b[digestLen:]) != [statementLen - digestLen]byte{}:
			return &comm.PeerError{Rank: q, Op: c.ID.String(), Err: fmt.Errorf(
				"a statement must have %d bytes, the last five of them 0 (got % x)", statementLen,
				b[:min(len(b), 2*statementLen)])}
		default:
			t.digests[q] = binary.LittleEndian.Uint32(b)
		}
	}
	return nil
}
