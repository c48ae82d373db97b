package p2p

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/rng"
)

// The simulated schedules drive assembly, as rendezvous does, with members that die, come back,
// meet each other in any order and notice late. In a session each member greets all others and then
// sums through rank 0 again and again, which is what a trainer waits for. A schedule ends when all
// have summed a few times since the last fault.
const (
	simSums  = 3
	simSteps = 20_000
)

// simWorld is a number of members and their streams. key decides every step at random.
type simWorld struct {
	key     rng.Key
	drawn   uint64
	members []*simMember
	kills   int
	// members begin as soon as they have a stream to each other one, and notice a loss only if they wait
	eager bool
	trace []string
}

type simMember struct {
	rank     int
	alive    bool
	session  bool
	assembly assembly
	ends     []*simEnd // by rank: this member's end of the stream to another
	came     []int     // by rank, in a session: frames
	sent     int       // in a session, to each: frames
}

// simEnd is one end of a stream. A message is a roll, or a frame if it is nil.
type simEnd struct {
	far    *simEnd
	owner  *simMember
	from   int
	inbox  [][]uint64
	closed bool // by the far end
	agreed bool // the owner has taken the stream: the lower rank does when the higher one's answer comes
	gone   bool // the owner has left it
	theirs uint64
}

func (w *simWorld) n(most int) int {
	w.drawn++
	return int(w.key.Uint64(w.drawn) % uint64(most))
}

func (w *simWorld) say(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *simWorld) join(m *simMember) {
	m.alive, m.session = true, false
	m.assembly = newAssembly(m.rank, len(w.members), w.key.Fold(1).Uint64(w.drawn)|1)
	m.ends, m.came, m.sent = make([]*simEnd, len(w.members)), make([]int, len(w.members)), 0
}

// shut leaves a stream: the far end may notice from now on, or take first what was sent before.
// Some of that may be lost.
func (w *simWorld) shut(e *simEnd) {
	if e == nil || e.gone {
		return
	}
	e.gone, e.far.closed = true, true
	e.far.inbox = e.far.inbox[:w.n(len(e.far.inbox)+1)]
}

func (w *simWorld) kill(m *simMember) {
	w.say("%d is killed", m.rank)
	for _, e := range m.ends {
		w.shut(e)
	}
	m.alive = false
}

// again is what a member does whose session has failed: it leaves and joins.
func (w *simWorld) again(m *simMember) {
	w.say("%d joins again", m.rank)
	for _, e := range m.ends {
		w.shut(e)
	}
	w.join(m)
}

func (w *simWorld) drop(m *simMember, ranks []int) {
	for _, q := range ranks {
		w.shut(m.ends[q])
		m.ends[q] = nil
	}
}

// connect makes a stream between two members that join. The higher rank replaces its old stream by it, since the lower
// one has none.
func (w *simWorld) connect(low, high *simMember) {
	a, b := &simEnd{owner: low, from: high.rank}, &simEnd{owner: high, from: low.rank, agreed: true}
	a.far, b.far = b, a
	a.theirs, b.theirs = high.assembly.attempts[high.rank], low.assembly.attempts[low.rank]
	low.ends[high.rank] = a
	w.shut(high.ends[low.rank])
	high.ends[low.rank] = b
	w.say("%d and %d meet", low.rank, high.rank)
	w.drop(high, high.assembly.link(low.rank, b.theirs))
}

// lose is what a member does that notices the end of a stream.
func (w *simWorld) lose(m *simMember, e *simEnd) {
	w.say("%d notices that the stream to %d has ended", m.rank, e.from)
	e.gone = true
	if m.session {
		w.again(m)
		return
	}
	m.ends[e.from] = nil
	if e.agreed {
		w.drop(m, m.assembly.lose(e.from))
	}
}

// waitsFor reports whether a member in a session can do nothing before a frame of q comes.
func (m *simMember) waitsFor(q int) bool {
	switch {
	case m.came[q] >= m.sent:
		return false
	case m.sent == 1 || m.rank == 0:
		return true
	}
	return q == 0
}

// steps lists what can happen now.
func (w *simWorld) steps() (can []func()) {
	for _, m := range w.members {
		switch {
		case !m.alive:
			can = append(can, func() { w.say("%d comes back", m.rank); w.join(m) })
			continue
		case w.kills > 0 && w.n(8) == 0:
			can = append(can, func() { w.kills--; w.kill(m) })
		}
		for _, e := range m.ends {
			if e != nil {
				can = append(can, w.stepsOf(m, e)...)
			}
		}
		if m.session {
			if step := w.compute(m); step != nil {
				can = append(can, step)
			}
			continue
		}
		for q := m.rank + 1; q < len(w.members); q++ {
			if high := w.members[q]; m.ends[q] == nil && high.alive && !high.session {
				can = append(can, func() { w.connect(m, high) })
			}
		}
		whole := m.assembly.met() == len(w.members)
		switch {
		case w.eager && whole || m.assembly.agreed():
			can = append(can, func() { w.say("%d begins", m.rank); m.session, m.sent = true, 1; w.send(m, nil, -1) })
		case !w.eager && whole && !m.assembly.told:
			can = append(can, func() { w.say("%d has met all", m.rank); w.send(m, m.assembly.tell(), -1) })
		}
	}
	return can
}

// stepsOf lists what can happen at one end of a stream.
func (w *simWorld) stepsOf(m *simMember, e *simEnd) (can []func()) {
	if e.closed && !(w.eager && m.session && (len(e.inbox) > 0 || !m.waitsFor(e.from))) {
		can = append(can, func() { w.lose(m, e) })
	}
	switch {
	case !e.agreed && !e.closed && !m.session:
		can = append(can, func() { e.agreed = true; w.drop(m, m.assembly.link(e.from, e.theirs)) })
	case len(e.inbox) > 0 && e.agreed:
		if roll := e.inbox[0]; roll != nil && !m.session {
			can = append(can, func() { e.inbox = e.inbox[1:]; m.assembly.rolls[e.from] = roll })
		} else if roll == nil && m.session {
			can = append(can, func() { e.inbox = e.inbox[1:]; m.came[e.from]++ })
		}
	}
	return can
}

// compute is the next step of a member in a session, nil if it has to wait.
func (w *simWorld) compute(m *simMember) func() {
	others := func(yes func(q int) bool) bool {
		for q := range w.members {
			if q != m.rank && !yes(q) {
				return false
			}
		}
		return true
	}
	greeted := others(func(q int) bool { return m.came[q] >= 1 })
	switch {
	case !greeted:
		return nil
	case m.rank == 0 && others(func(q int) bool { return m.came[q] > m.sent }):
		return func() { m.sent++; w.send(m, nil, -1) }
	case m.rank != 0 && m.came[0] >= m.sent:
		return func() { m.sent++; w.send(m, nil, 0) }
	}
	return nil
}

// send sends a message to all others, or to one.
func (w *simWorld) send(m *simMember, roll []uint64, to int) {
	for q, e := range m.ends {
		if e != nil && (to < 0 || q == to) && !e.far.gone {
			e.far.inbox = append(e.far.inbox, roll)
		}
	}
}

// check returns what is wrong in this moment. A member at the other end of a stream of a member in a session must have
// met the same attempts, in a session or about to begin it.
func (w *simWorld) check() error {
	for _, m := range w.members {
		for q, e := range m.ends {
			if e == nil || !m.session || e.gone || e.far.gone || w.eager {
				continue
			}
			if other := w.members[q]; !slices.Equal(m.assembly.attempts, other.assembly.attempts) {
				return fmt.Errorf("%d is in a session with %d, which has met others", m.rank, q)
			}
		}
	}
	return nil
}

// run drives a schedule to its end.
func (w *simWorld) run() error {
	for _, m := range w.members {
		w.join(m)
	}
	for range simSteps {
		if err := w.check(); err != nil {
			return err
		}
		done := w.kills == 0
		for _, m := range w.members {
			done = done && m.alive && m.session && m.sent > simSums
		}
		if done {
			return nil
		}
		can := w.steps()
		if len(can) == 0 {
			return fmt.Errorf("all wait for each other")
		}
		can[w.n(len(can))]()
	}
	return fmt.Errorf("no end after %d steps", simSteps)
}

func simulate(seed, size, kills int, eager bool) (*simWorld, error) {
	w := &simWorld{key: rng.New(uint64(seed)).FoldString("join"), kills: kills, eager: eager}
	for r := range size {
		w.members = append(w.members, &simMember{rank: r})
	}
	return w, w.run()
}

// Members that die and come back at any time, and notice each other's loss at any time after it,
// end in one session.
func TestJoinSchedules(t *testing.T) {
	schedules := 10_000
	if testing.Short() {
		schedules = 2_000
	}
	for seed := range schedules {
		w, err := simulate(seed, 2+seed%4, 1+seed%5, false)
		if err != nil {
			t.Fatalf("schedule %d: %v\n%s", seed, err, strings.Join(w.trace[max(0, len(w.trace)-60):], "\n"))
		}
	}
}

// The schedules can fail: they find the deadlock of members that begin without agreement.
func TestJoinSchedulesFindTheDeadlock(t *testing.T) {
	found := 0
	for seed := range 500 {
		if _, err := simulate(seed, 3, 1+seed%5, true); err != nil {
			found++
		}
	}
	if t.Logf("%d of 500 schedules end in a deadlock", found); found == 0 {
		t.Error("no schedule of members that begin without agreement ends in a deadlock")
	}
}
