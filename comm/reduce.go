package comm

import (
	"context"
	"fmt"
)

// ReduceID names one reduction of a run. No two reductions of a run have the same: masks and noise may be derived from
// it. A stage or round that is done again, since a peer was lost or parameters differed, has another Generation or Step.
type ReduceID struct {
	Generation uint64 // of the members
	Stage      int    // 0 where a run has no stages
	Round      int    // or epoch
	Step       int    // tells reductions of one kind in one round apart
	Kind       string // what is reduced, as "gradient"; the trainer's own word
}

// String implements fmt.Stringer.
func (id ReduceID) String() string {
	return fmt.Sprintf("%s, generation %d, stage %d, round %d, step %d",
		id.Kind, id.Generation, id.Stage, id.Round, id.Step)
}

// Contribution is one member's part of a reduction. Which of Update, Counts and Meta are empty, and the lengths of Update
// and Counts, must agree between members. Update and Counts become the sums, in place.
type Contribution struct {
	ID     ReduceID
	Update []float32 // summed; a Reducer may clip it, add noise to it or mask it
	Counts []int64   // summed exactly: labels, metric accumulators, real numbers in fixed point; masked, never clipped
	Meta   []byte    // compared and not summed, for all members to see: a digest, seconds; at most MaxMeta bytes
}

// MaxMeta is the longest Meta of a Contribution.
const MaxMeta = 1 << 12

// Reduced is what a reduction returns beside the sums.
type Reduced struct {
	// Meta is that of each member, by rank. Each came over the link to its owner: nobody can write another's. The entry
	// of a rank that did not contribute is nil.
	Meta [][]byte
}

// Reducer reduces contributions of the members: in the clear (Group) or privately (privacy/secagg). The sums are the same
// bits at every member, whatever was done to them.
type Reducer interface {
	Reduce(ctx context.Context, c *Contribution) (Reduced, error)
}

// Reduce implements Reducer in the clear. Update is summed as AllReduce does, Counts likewise as integers, both by the
// door Reduce; every member sends its Meta to each of the others by the door Control.
//
// M members together send 2·(4·len(Update) + 8·len(Counts))·(M−1) bytes, and each Meta M−1 times.
func (g *Group) Reduce(ctx context.Context, c *Contribution) (Reduced, error) {
	if len(c.Meta) > MaxMeta {
		panic(fmt.Sprintf("comm: Reduce %v: meta must have at most %d bytes (got %d)", c.ID, MaxMeta, len(c.Meta)))
	}
	return g.reduce(ctx, Reduce, c)
}
