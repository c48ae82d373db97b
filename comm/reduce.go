package comm

import (
	"context"
	"fmt"
)

// ReduceID names one reduction of a run. No two reductions of a run have the same: masks and noise may be derived from
// it. A stage or round that is done again, since a peer was lost or parameters differed, has another Generation or
// Step.
type ReduceID struct {
	Generation uint64 // how often the run has begun or gone on
	Stage      int    // 0 if a run has no stages
	Round      int    // or epoch
	Step       int    // distinguishes reductions of one kind in one round
	Kind       string // what is reduced, as "gradient"; the trainer's own word
}

// String implements fmt.Stringer.
func (id ReduceID) String() string {
	return fmt.Sprintf("%s, generation %d, stage %d, round %d, step %d",
		id.Kind, id.Generation, id.Stage, id.Round, id.Step)
}

// Contribution is one member's part of a reduction. Which of Update, Counts and Meta are empty, the
// lengths of Update and Counts, Bits, CountBits, Wide, Columns, Parts and Common must agree between members. Update and
// Counts become the sums, in place.
//
// With Bits the sum of Update is one in fixed point: integers, modulo 2^Bits, times a step that the
// members agree on first, by a sum of their largest magnitudes. Of M members, and for b Bits, the
// step is that sum over 2^(b−1) − 1 − M, and each member rounds its numbers to the nearest integer,
// ties to even: so the sum of the integers fits in b bits whatever the members send, it is M/2
// steps from the exact one at most, and a column of zeros stays so. With 64 bits the step is the next
// power of two above the sum over 2^62: numbers down to 2^−38 of that sum keep all of their bits. A
// single member's Update stays as it is.
//
// With 4 bits (a step for each of Parts, or one for all), the members first sum the root mean squares of their numbers.
// Each member's integers have magnitude at most m = ⌊7/M⌋, and the step is the mean of these root mean squares times
// 2/(1+m): 3 integers for 4 to 7 members, 5 for three, 7 for two. What exceeds them is left out, so a Residual is
// needed and limits are not possible.
type Contribution struct {
	ID     ReduceID
	Update []float32 // summed; a Reducer may add noise to it or mask it
	// of a number of Update that is sent: 0 = float32; 4, 8, 16, 32, 64 for at most MaxMembers(Bits) members
	Bits    int
	Columns int   // numbers in a row of Update, each column with its own step (0 = one step for all)
	Parts   []int // instead of Columns: lengths of consecutive parts of Update, each with its own step; or nil

	// A Reducer that sums in fixed point in any case uses Columns and Parts without Bits as well.

	// Residual, unless nil as long as Update, becomes what rounding left out of this member's part,
	// Update less what it sent: error feedback adds it to the next Update.
	Residual []float32

	Counts []int64 // summed exactly: labels, metric accumulators, real numbers in fixed point; masked

	// With CountBits, 16 or 32, numbers of Counts are sent as that many bits each, which takes fewer bytes and gives
	// the same sums: those that are at least 0 at every member and whose sum is below 2^CountBits, whatever the
	// members' data are. Wide reports which ones are not so (nil = none); they are sent as several. 0 is 64 bits each.
	CountBits int
	Wide      func(i int) bool

	Meta   []byte // compared and not summed, for all members to see: a digest, seconds; at most MaxMeta bytes
	Common int    // this many first bytes of Meta must be the same at all members; masks depend on them

	// What another member's part of Update[i] and Counts[i] may be, whatever its data are (nil = any finite number). A
	// part beyond its limit ends the run (ErrRefused) by the name of its sender, at the member that sums it, and a sum
	// that no such parts have by the name of the member that summed, at each member.
	UpdateLimit, CountLimit func(i int) Limit

	Allowed bool // Group.Allow was asked about what Counts stand for
}

// MaxMeta is the longest Meta of a Contribution.
const MaxMeta = 1 << 12

// Reduced is what a reduction returns next to the sums.
type Reduced struct {
	// Meta has each member's, by rank. Each came over the link to its owner: nobody can write another's. The entry
	// of a rank that did not contribute is nil.
	Meta [][]byte

	// Error is how far the numbers of Update may be from the exact sums beyond the rounding of a float32, for each
	// column or part of a sum in fixed point (nil = no further). A Reducer that adds noise reports how much at most, or
	// +Inf; it must check UpdateLimit, if at all, before.
	Error []float64

	Without bool // this member's part is not in the sums: it came too late (package leaf)
}

// Reducer reduces contributions of the members: in the clear (Group) or privately (privacy/secagg). The sums are the
// same bits at every member, whatever was done to them.
type Reducer interface {
	Reduce(ctx context.Context, c *Contribution) (Reduced, error)
}

// Reduce implements Reducer in the clear. Update is summed as AllReduce does or, with Bits, as
// Contribution describes, Counts as integers, all by Reduce; every member sends its Meta to
// each of the others by Control.
//
// M members together send 2·(4·len(Update) + 8·len(Counts))·(M−1) bytes, with CountBits fewer, and each Meta M−1 times.
// With Bits it is 2·(len(Update)·Bits/8 + 4·max(Columns, len(Parts), 1) + 8·len(Counts))·(M−1), and
// the error of a number in Update that is not finite, or larger than a float32 can hold the sum of,
// comes before anything is sent.
func (g *Group) Reduce(ctx context.Context, c *Contribution) (Reduced, error) {
	if len(c.Meta) > MaxMeta {
		panic(fmt.Sprintf("comm: Reduce %v: meta must have at most %d bytes (got %d)", c.ID, MaxMeta, len(c.Meta)))
	}
	if err := g.Allow(c); err != nil {
		return Reduced{}, err
	}
	return g.reduce(ctx, Reduce, c)
}

// SumReals replaces the few numbers of x by their sums over all peers, to about the precision of float64.
func SumReals(ctx context.Context, r Reducer, id ReduceID, x []float64) error {
	parts := make([]float32, 0, 2*len(x)) // each value and what rounding leaves of it
	for _, v := range x {
		parts = append(parts, float32(v), float32(v-float64(float32(v))))
	}
	if _, err := r.Reduce(ctx, &Contribution{ID: id, Update: parts}); err != nil {
		return err
	}
	for k := range x {
		x[k] = float64(parts[2*k]) + float64(parts[2*k+1])
	}
	return nil
}
