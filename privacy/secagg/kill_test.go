package secagg

import (
	"math/bits"
	"testing"
)

// kills is one way in which a sum of K members may have come to its end when some of them were lost.
type kills struct {
	size int
	held []bool   // by member: it holds the sealed sum
	sent []uint16 // by member: to whom its seed has come
	told []bool   // by member: it has begun to send its seed
}

// everyEnd calls do for each way in which the members may stand when a sum of size members ends: all steps
// that each member may have done, in every order that the protocol allows.
func everyEnd(size int, do func(k kills)) {
	k := kills{size, make([]bool, size), make([]uint16, size), make([]bool, size)}
	var member func(i int)
	member = func(i int) {
		if i == size {
			do(k)
			return
		}
		k.held[i], k.told[i], k.sent[i] = false, false, 0
		member(i + 1)
		k.held[i] = true
		member(i + 1)
		for to := range uint16(1) << size {
			if to>>i&1 == 1 {
				continue
			}
			k.told[i], k.sent[i] = true, to
			member(i + 1)
		}
		k.held[i], k.told[i], k.sent[i] = false, false, 0
	}
	member(0)
}

// opens reports whether a coalition, a bit a member, can open the sum from what its members hold.
func (k kills) opens(coalition uint16) bool {
	held := false
	for i := range k.size {
		in := coalition>>i&1 == 1
		held = held || in && k.held[i]
		if !in && k.sent[i]&coalition == 0 {
			return false
		}
	}
	return held
}

// said is what the members of next, a bit each, say of the sum.
func (k kills) said(next uint16) (all []standing) {
	for i := range k.size {
		if next>>i&1 == 0 {
			continue
		}
		s := standing{rank: i, held: k.held[i], released: k.told[i], seeds: []int{i}}
		for q := range k.size {
			if k.sent[q]>>i&1 == 1 {
				s.seeds = append(s.seeds, q)
			}
		}
		all = append(all, s)
	}
	return all
}

func ranks(set uint16) (all []int) {
	for i := range 16 {
		if set>>i&1 == 1 {
			all = append(all, i)
		}
	}
	return all
}

// shows reports whether a coalition that opens the old sum and knows the new one, over next, learns of
// others' parts what it does not know from either sum alone: somebody outside is in both, and somebody
// outside is in the old one only. K−1 members always see the last one's part.
func shows(all, next, coalition uint16) bool {
	return next&^coalition != 0 && all&^next&^coalition != 0
}

// TestKills goes through every state in which a sum of three or four members may end, every set of members
// that is lost, and every coalition: none ever holds two sums of one round over different members.
func TestKills(t *testing.T) {
	for size := 3; size <= 4; size++ {
		all := uint16(1)<<size - 1
		count := map[verdict]int{}
		everyEnd(size, func(k kills) {
			for next := uint16(1); next < all; next++ {
				if bits.OnesCount16(next) < 2 {
					continue
				}
				v := judge(ranks(all), ranks(next), k.said(next))
				count[v]++
				switch v {
				case final:
					if !k.opens(next) {
						t.Fatalf("%d members, %+v: %v cannot open a final sum", size, k, ranks(next))
					}
				case repeat:
					for coalition := uint16(1); coalition < all; coalition++ {
						if shows(all, next, coalition) && k.opens(coalition) {
							t.Fatalf("%d members, %+v: repeated by %v, and %v hold both sums", size, k, ranks(next), ranks(coalition))
						}
					}
				}
			}
		})
		if count[repeat] == 0 || count[final] == 0 || (count[wait] == 0) != (size == 3) { // with one lost of three nobody waits
			t.Errorf("%d members: verdicts %v, must be some of each", size, count)
		}
	}
}

// TestKillsSeeTheLeak: in the order of sending without seals, where the owner of a sum shows it as soon as
// all parts are in and a round is repeated with whoever is left, the same search finds the leak.
func TestKillsSeeTheLeak(t *testing.T) {
	const size, all = 3, uint16(7)
	found := false
	for next := uint16(1); next < all; next++ { // the owner, member 0, holds the sum of all
		for coalition := uint16(1); coalition < all; coalition++ {
			owner := coalition&1 == 1
			found = found || owner && bits.OnesCount16(next) == 2 && shows(all, next, coalition)
		}
	}
	if !found {
		t.Error("the search sees no leak where there is one")
	}
	// A rule that repeats whatever happened leaks with seals, too.
	leaks := 0
	everyEnd(size, func(k kills) {
		for next := uint16(1); next < all; next++ {
			for coalition := uint16(1); coalition < all; coalition++ {
				if bits.OnesCount16(next) == 2 && shows(all, next, coalition) && k.opens(coalition) {
					leaks++
				}
			}
		}
	})
	if leaks == 0 {
		t.Error("repeating every sum shows nothing")
	}
}
