package retexo

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
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

// The statement of a peer with its part of a reduction is compared, not summed: u32 digest of its parameters · 5 bytes
// 0, which are reserved.
const (
	digestLen    = 4 // bytes that are the same at all peers with the same parameters
	statementLen = digestLen + 5
)

// state appends what this peer states of its parameters.
func state(b []byte, params []float32) []byte {
	return append(binary.LittleEndian.AppendUint32(b, train.Digest(params)), 0, 0, 0, 0, 0)
}

// reduce sums c over the peers. If c has meta, t.digests become the digests of each peer's parameters, by rank.
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
