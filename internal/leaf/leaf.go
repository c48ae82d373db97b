// Package leaf lets many members contribute to the sums of few: phones to the sums of sites. A leaf is no
// peer of the sites. It has its own rows and no edge to others' nodes, comes and goes as it likes,
// and deals only with the sites.
//
// In each sum a leaf sends one message of additive shares to each of m ≥ 2 sites. One site gets its numbers less the
// streams of m−1 seeds, each of the others a seed of 32 bytes. All numbers are integers modulo 2⁶⁴, so that a share by
// itself is uniformly random. When a sum closes, the sites agree on the leaves with a share at all m, and add up the
// shares of these. They add that to their own numbers, and sum these as always: in the clear, or under masks
// (privacy/secagg). A leaf that dropped out is not in the list and costs nothing (Corrigan-Gibbs and Boneh, Prio, NSDI
// 2017, §3, without its proofs). Then a leaf may fetch the sums, from which it computes what comes next as the sites
// do.
//
// One honest site among the m is enough to hide a single leaf's numbers from all others. The sites learn who sent, and
// the sum. Nobody checks what a leaf sends but the leaf: only the choice of admitted leaves (Rules) bounds what one can
// do to the sums, not its numbers.
package leaf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
)

// Agreement is what the sites and leaves of a run have agreed on beforehand.
type Agreement struct {
	Run   [8]byte // the first bytes of the run's fingerprint: messages of another run are refused
	Sites int     // m, which collect shares: the first ranks of the sites' group
	Least int     // leaves that a sum must have, or it goes without any
	Most  int     // leaves that a site admits
	// whether nodes of leaves have edges to nodes of other members, which the collecting sites know (Edges)
	Edges bool
}

// Validate returns all faults at once, or nil.
func (a Agreement) Validate() error {
	var errs []error
	for _, one := range []struct {
		name             string
		got, least, most int
	}{
		{"sites that collect shares", a.Sites, 2, 64}, {"least_leaves", a.Least, 2, MostLeaves},
		{"phones admitted", a.Most, a.Least, MostLeaves},
	} {
		if one.got < one.least || one.got > one.most {
			errs = append(errs, fmt.Errorf("%s must be between %d and %d (got %d)", one.name, one.least, one.most,
				one.got))
		}
	}
	return errors.Join(errs...)
}

// MostLeaves bounds the leaves of a run: every sum of their numbers must fit.
const MostLeaves = 1 << 22

// mostNumbers bounds the numbers of a sum, and so the memory that a leaf can make a site use.
const mostNumbers = 1 << 20

// Step is the grid of a sum: each member rounds its numbers to multiples of it, half to even, and their
// sum is exact in any order.
const Step = 0x1p-32

// Token names a leaf within a run. A leaf makes a random one, and may make another for the next run.
type Token [16]byte

// First is which of m sites gets the leaf's numbers, and is asked for sums; the others get seeds.
func (t Token) First(m int) int { return int(binary.LittleEndian.Uint64(t[:8]) % uint64(m)) }

// bound returns the largest magnitude of a number of one leaf, or of one of `sites` sites.
func (a Agreement) bound(sites int) float64 { return 0x1p63 * Step / float64(a.Most+sites) }

// pack returns Update and Counts of c as they are sent: integers modulo 2⁶⁴, multiples of Step and of 1. most is the
// largest magnitude of the former.
func pack(c *comm.Contribution, most float64) (comm.Integers, error) {
	if c.Residual != nil {
		return comm.Integers{}, fmt.Errorf("%v: sums with phones cannot have residuals", c.ID)
	}
	if n := len(c.Update) + len(c.Counts); n > mostNumbers {
		return comm.Integers{}, fmt.Errorf("%v: a sum with phones must have at most %d numbers (got %d)", c.ID,
			mostNumbers, n)
	}
	x := comm.NewIntegers(64, len(c.Update)+len(c.Counts))
	for i, v := range c.Update {
		if f := float64(v); !(f <= most && f >= -most) {
			return comm.Integers{}, fmt.Errorf("%v: update[%d] must be between -%g and %g (got %g)", c.ID, i,
				most, most, v)
		}
		binary.LittleEndian.PutUint64(x.B[8*i:], uint64(integer(v)))
	}
	for i, n := range c.Counts {
		binary.LittleEndian.PutUint64(x.B[8*(len(c.Update)+i):], uint64(n))
	}
	return x, nil
}

// unpack makes Update and Counts of c the sums x.
func unpack(x comm.Integers, c *comm.Contribution) error {
	if want := 8 * (len(c.Update) + len(c.Counts)); len(x.B) != want {
		return fmt.Errorf("%v: the sums must have %d bytes (got %d)", c.ID, want, len(x.B))
	}
	for i := range c.Update {
		c.Update[i] = float32(float64(int64(binary.LittleEndian.Uint64(x.B[8*i:]))) * Step)
	}
	for i := range c.Counts {
		c.Counts[i] = int64(binary.LittleEndian.Uint64(x.B[8*(len(c.Update)+i):]))
	}
	return nil
}
