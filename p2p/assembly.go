package p2p

import "slices"

// assembly decides when a joining member may begin the session: once all members hold streams to
// each other in the same attempts to join. It knows no network: rendezvous and the simulated
// schedules drive it.
//
// Each call of Join is an attempt with a random number. A member that has a stream to every other
// one sends each a roll: the attempts it has met. It begins when all rolls equal its own. From then
// on it never replaces a stream: if one breaks or is replaced, it drops all of them and meets the
// others anew. So all members of a session have met the same attempts, and they notice one that
// cannot begin.
type assembly struct {
	rank int
	// by rank: the attempt at the other end of the stream to each member, and this one's own (0 = no stream)
	attempts []uint64
	rolls    [][]uint64 // by rank: what the member at the other end of the stream has met (nil = it has not said)
	told     bool       // whether this member has sent its roll
}

func newAssembly(rank, size int, attempt uint64) assembly {
	a := assembly{rank: rank, attempts: make([]uint64, size), rolls: make([][]uint64, size)}
	a.attempts[rank] = attempt
	return a
}

// link notes a stream to the member of rank q, which replaces an old one. drop lists streams to
// close.
func (a *assembly) link(q int, attempt uint64) (drop []int) {
	if a.told {
		drop = a.giveUp(q)
	}
	a.attempts[q], a.rolls[q] = attempt, nil
	return drop
}

// lose notes that there is no stream to the member of rank q any more.
func (a *assembly) lose(q int) (drop []int) {
	a.attempts[q], a.rolls[q] = 0, nil
	if a.told {
		drop = a.giveUp(q)
	}
	return drop
}

// giveUp forgets all streams and returns the ranks at their other ends, except one.
func (a *assembly) giveUp(but int) (drop []int) {
	for q := range a.attempts {
		if q == a.rank || a.attempts[q] == 0 {
			continue
		}
		if q != but {
			drop = append(drop, q)
		}
		a.attempts[q], a.rolls[q] = 0, nil
	}
	a.told = false
	return drop
}

// met is how many members this one has met, itself included.
func (a *assembly) met() int {
	n := 0
	for _, attempt := range a.attempts {
		if attempt != 0 {
			n++
		}
	}
	return n
}

// tell returns this member's roll when it is time to send it to all, which is once; else nil.
func (a *assembly) tell() []uint64 {
	if a.told || a.met() < len(a.attempts) {
		return nil
	}
	a.told = true
	return slices.Clone(a.attempts)
}

// confirms reports whether the member of rank q has met the same attempts as this one.
func (a *assembly) confirms(q int) bool { return q == a.rank || slices.Equal(a.rolls[q], a.attempts) }

// agreed reports whether the session may begin.
func (a *assembly) agreed() bool {
	for q := range a.attempts {
		if !a.confirms(q) {
			return false
		}
	}
	return a.told && a.met() == len(a.attempts)
}
