package measure

import (
	"math"
	"slices"
	"time"
)

// Turn has the measurements of one turn, by name.
type Turn map[string]float64

// Turns measures alternating work on a machine whose speed varies. Virtual processors move, two of them may be two
// cores or share one, and other users slow them. Around each part of a turn, multiply-adds on all threads measure the
// machine's speed.
type Turns struct {
	clock  Clock
	best   float64   // the highest rate of multiply-adds so far, 10⁹ a second (0 = unknown)
	speeds []float64 // [turn] the lowest rate around its parts
	turns  []Turn
}

// steady is the fraction of the machine's best rate that all parts of a counted turn must reach.
const steady = 0.85

// NewTurns returns a Turns without turns. It measures the machine's speed by clock.
func NewTurns(clock Clock) *Turns { return &Turns{clock: clock} }

// Reset drops all turns. The machine's best speed stays.
func (t *Turns) Reset() { t.speeds, t.turns = nil, nil }

// Begin starts a turn.
func (t *Turns) Begin() Turn {
	turn := Turn{}
	t.speeds, t.turns = append(t.speeds, math.Inf(1)), append(t.turns, turn)
	t.Settle(0)
	return turn
}

// Check measures the machine's speed around a part of the last turn.
func (t *Turns) Check() { t.note(fma(t.clock)) }

// Settle runs multiply-adds for at least rest, and for up to a quarter of a second until the machine is as fast as
// before. The next measurement then finds all threads awake. Its last measurement counts for the last turn.
func (t *Turns) Settle(rest time.Duration) {
	for begin := Wall(); ; {
		speed, passed := fma(t.clock), Wall()-begin
		if passed >= rest && (speed >= steady*t.best || passed >= rest+time.Second/4) {
			t.note(speed)
			return
		}
	}
}

func (t *Turns) note(speed float64) {
	t.best = max(t.best, speed)
	if last := len(t.speeds) - 1; last >= 0 {
		t.speeds[last] = min(t.speeds[last], speed)
	}
}

// Good returns the turns in which the machine kept its speed, or all turns if there are fewer than `least` of these.
func (t *Turns) Good(least int) []Turn {
	good := t.kept()
	if len(good) < least {
		return t.turns
	}
	return good
}

func (t *Turns) kept() (good []Turn) {
	for i, turn := range t.turns {
		if t.speeds[i] >= steady*t.best {
			good = append(good, turn)
		}
	}
	return good
}

// Median returns the median over turns.
func Median(turns []Turn, of func(Turn) float64) float64 {
	x := make([]float64, len(turns))
	for i, t := range turns {
		x[i] = of(t)
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
