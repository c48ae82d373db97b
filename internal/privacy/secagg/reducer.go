// Package secagg sums the members' contributions so that nobody sees one of them, only the sum: a
// comm.Reducer over a comm.Group.
//
// Each pair of members shares a secret, fresh in each generation. For each sum both derive the same
// mask from it, which one adds to its integers and the other subtracts, modulo 2^b: what leaves a
// member is uniformly random to anybody who lacks one of its masks, and in the sum the masks cancel. The member that
// sums a chunk has no masks of it: it could take its own off, and what it adds does not leave it
// (pairwise one-time pads; Bonawitz et al., CCS 2017, §4, without the recovery of single members:
// here a sum needs every member). All other members together, if they pool what they know, see a
// member's part. The sums themselves are seen by all members.
package secagg

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
)

// KeyTerms are what the members of a run agree on beforehand.
type KeyTerms struct {
	Run   [32]byte // fingerprint of plan and roster: members whose runs differ share no secret
	Least int      // members that a sum must have, at least 2

	// Sign signs a message with this member's long-term key, and Verify returns what is wrong with another member's
	// signature. Both nil = only the transport authenticates the sender of keys.
	Sign   func(message []byte) ([]byte, error)
	Verify func(rank int, message, signature []byte) error
}

// Reducer is one member's. It is not safe for use by several goroutines at once.
type Reducer struct {
	group   *comm.Group
	pairs   []pair
	counter uint64 // of masked vectors: no two masks of a generation have the same
}

// MostMembers is how many members a secure sum may have: keys and their confirmation grow with the square.
const MostMembers = 64

// New agrees with the other members of g on the secrets of this generation and returns the reducer of
// its sums. Every member must call it. The error names the member whose keys are at fault, or that this number of
// members cannot have secure sums.
func New(ctx context.Context, t KeyTerms, g *comm.Group) (*Reducer, error) {
	if n := g.Size(); n < t.Least || n > MostMembers {
		return nil, fmt.Errorf("a secure sum must have %d to %d members (got %d)", t.Least, MostMembers, n)
	}
	pairs, err := t.exchangeKeys(ctx, g)
	if err != nil {
		return nil, err
	}
	return &Reducer{group: g, pairs: pairs}, nil
}

// Reduce implements comm.Reducer. Update is summed in fixed point, on a grid that the members agree on through a masked
// sum of their largest magnitudes. Without Bits, sums take 32 bits if columns or parts have separate grids, else 64. M
// members together send 2·(len(Update)·Bits/8 + 32·max(Columns, len(Parts), 1) + 8·len(Counts))·(M−1) bytes of kind
// Reduce, with CountBits fewer, and Meta as Group.Reduce does.
//
// Masks hide what single members sent. So every member checks limits (comm.Limit) only on the sums, and nobody is
// named.
//
// If the first c.Common bytes of Meta differ between members, their masks do not cancel: Update and
// Counts are arbitrary, the error is nil, and Reduced.Meta shows which members differ.
func (r *Reducer) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	clear(c.Residual)
	size := r.group.Size()
	if size == 1 {
		return r.group.Reduce(ctx, c)
	}
	if err := r.group.Allow(c); err != nil {
		return comm.Reduced{}, err
	}
	check := c.Guard(size)
	counts := c.PackCounts(size)
	if len(c.Update) == 0 {
		reduced, err := r.sum(ctx, c, "numbers", c.Meta, counts)
		c.TakeCounts(counts, size)
		if err == nil && !differ(c, reduced) {
			err = r.checked(ctx, c, check, nil)
		}
		return reduced, err
	}
	wide := *c
	if wide.Bits == 0 {
		wide.Bits = 64
		if c.Columns > 0 || c.Parts != nil {
			wide.Bits = 32
		}
	}
	form, err := wide.Fixed(size)
	if err != nil {
		return comm.Reduced{}, fmt.Errorf("%v: %w", c.ID, err)
	}
	magnitudes := widen(form.Magnitudes())
	reduced, err := r.sum(ctx, c, "grid", c.Meta, magnitudes)
	if err != nil || differ(c, reduced) {
		return reduced, err
	}
	if err := form.Agree(narrow(magnitudes)); err != nil {
		return comm.Reduced{}, r.group.Refuse(ctx, fmt.Errorf("%v: %w", c.ID, err))
	}
	if _, err := r.sum(ctx, c, "numbers", nil, form.Integers(), counts); err != nil {
		return comm.Reduced{}, err
	}
	c.TakeCounts(counts, size)
	reduced.Error = form.Error()
	return reduced, r.checked(ctx, c, check, reduced.Error)
}

// checked checks the sums in c.
func (r *Reducer) checked(ctx context.Context, c *comm.Contribution, check func([]float64) (int, int, error),
	apart []float64) error {
	_, _, err := check(apart)
	if err != nil {
		err = fmt.Errorf("%v: %w", c.ID, err)
	}
	return r.group.Refuse(ctx, err)
}

// sum makes the vectors the sums over the members, under masks that are used for nothing else.
func (r *Reducer) sum(ctx context.Context, c *comm.Contribution, part string, meta []byte,
	vectors ...comm.Integers) (comm.Reduced, error) {
	r.counter++
	masks := make([][]mask, len(vectors))
	for k, v := range vectors {
		masks[k] = pairMasks(r.pairs, label(c.ID, part, r.counter, c.Meta[:c.Common], k, v))
	}
	hide := func(k, to, lo, hi int) { cover(masks[k], vectors[k], to, lo, hi) }
	return r.group.SumIntegers(ctx, c.ID, meta, hide, vectors...)
}

// differ reports whether the members differ in what they must have in common.
func differ(c *comm.Contribution, r comm.Reduced) bool {
	for _, b := range r.Meta {
		if b != nil && (len(b) < c.Common || !bytes.Equal(b[:c.Common], c.Meta[:c.Common])) {
			return true
		}
	}
	return false
}

// The largest magnitudes of the members, from which the grid of a sum follows, are summed under
// masks as well. A magnitude is written as limbs of 56 bits, each summed in 64: the sum of float32
// numbers down to 2⁻⁷² is exact, and smaller ones are rounded up to a multiple of 2⁻⁹⁶.

const (
	limbs     = 4
	limbBits  = 56
	limbFloor = -96 // the lowest limb counts in units of 2^limbFloor
)

// widen returns magnitudes as whole numbers, limbs of them each.
func widen(magnitudes []float32) comm.Integers {
	all := comm.NewIntegers(64, limbs*len(magnitudes))
	for j, m := range magnitudes {
		rest := math.Ldexp(float64(m), -limbFloor) // below 2^(128+96), and exact
		for k := limbs - 1; k >= 0; k-- {
			unit := math.Ldexp(1, k*limbBits)
			n := math.Floor(rest / unit)
			if k == 0 {
				n = math.Ceil(rest)
			}
			binary.LittleEndian.PutUint64(all.B[8*(limbs*j+k):], uint64(n))
			rest -= float64(n * unit)
		}
	}
	return all
}

// narrow returns the sums that sums of widen stand for, rounded to float32.
func narrow(sums comm.Integers) []float32 {
	all := make([]float32, len(sums.B)/(8*limbs))
	for j := range all {
		x := 0.0
		for k := limbs - 1; k >= 0; k-- {
			n := binary.LittleEndian.Uint64(sums.B[8*(limbs*j+k):])
			x += math.Ldexp(float64(n), k*limbBits+limbFloor)
		}
		all[j] = float32(x)
	}
	return all
}
