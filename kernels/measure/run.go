package measure

import (
	"slices"
	"time"
)

// Engine does the same work as a case, in turn with it.
type Engine struct {
	Name string
	Run  func() (seconds float64, err error)
}

// Result has medians over turns.
type Result struct {
	Rate   float64            // 10⁹ a second
	OfPeak float64            // Rate over a peak measured beside it, 0 where that is unknown
	Times  map[string]float64 // how many times faster than each engine
	Turns  int                // turns that count
	Speed  float64            // 10⁹ multiply-adds and additions a second that the machine reached on registers, 0 where unknown
}

const (
	least = 10 * time.Millisecond // of a turn: shorter work is repeated
	// Steady is the share of the machine's best rate of multiply-adds that is reached before and after each part of a turn
	// that counts.
	Steady = 0.85
)

// turn is one run of a case, its peak and each engine.
type turn struct {
	speed        float64 // the least rate of multiply-adds before, between and after
	rate, ofPeak float64
	times        map[string]float64
}

// Run does the work turn by turn with its peak and the engines, until so many turns count or four times as many have been
// taken, in which case all do. A turn counts if multiply-adds on all threads were as fast as ever around each of its
// parts: virtual processors move, two of them may be two cores or share one, and whoever else runs there slows them.
// rest is how long an engine's threads may go on spinning after its work, and is spent on multiply-adds too: whatever
// comes next finds all threads awake.
func (c Case) Run(turns int, clock Clock, rest time.Duration, engines ...Engine) (Result, error) {
	run := c.Prepare()
	run() // once for the caches, pages and clock
	repeats := 0
	for begin := clock(); clock()-begin < least; repeats++ {
		run()
	}
	var all []turn
	var best float64
	for len(all) < 4*turns && len(calm(all, best)) < turns {
		t := turn{speed: Settle(clock, 0, best), times: map[string]float64{}}
		run() // wakes the helpers
		begin := clock()
		for range repeats {
			run()
		}
		seconds := (clock() - begin).Seconds() / float64(repeats)
		t.rate = c.Work / seconds / 1e9
		note := func(speed float64) { t.speed, best = min(t.speed, speed), max(best, speed) }
		note(fma(clock))
		if c.Peak != nil {
			if peak := c.Peak(clock); peak > 0 {
				t.ofPeak = t.rate / peak
			}
		}
		for _, e := range engines {
			note(Settle(clock, 0, best))
			s, err := e.Run()
			if err != nil {
				return Result{}, err
			}
			t.times[e.Name] = s / seconds
			Settle(clock, rest, best)
			note(fma(clock))
		}
		best = max(best, t.speed)
		all = append(all, t)
	}
	if kept := calm(all, best); len(kept) >= turns {
		all = kept
	}
	r := Result{Times: map[string]float64{}, Turns: len(all), Speed: best}
	r.Rate = median(all, func(t turn) float64 { return t.rate })
	r.OfPeak = median(all, func(t turn) float64 { return t.ofPeak })
	for _, e := range engines {
		r.Times[e.Name] = median(all, func(t turn) float64 { return t.times[e.Name] })
	}
	return r, nil
}

// Settle spends at least rest on multiply-adds and, for a quarter of a second, waits for them to be as fast as best; it
// returns their last rate, 10⁹ operations a second, 0 where that is unknown.
func Settle(clock Clock, rest time.Duration, best float64) float64 {
	for begin := Wall(); ; {
		speed, passed := fma(clock), Wall()-begin
		if passed >= rest && (speed >= Steady*best || passed >= rest+time.Second/4) {
			return speed
		}
	}
}

// calm returns the turns that count.
func calm(all []turn, best float64) (kept []turn) {
	for _, t := range all {
		if t.speed >= Steady*best {
			kept = append(kept, t)
		}
	}
	return kept
}

func median(turns []turn, of func(turn) float64) float64 {
	x := make([]float64, len(turns))
	for i, t := range turns {
		x[i] = of(t)
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
