package measure

import "time"

// Engine does the same work as a case, alternating with it.
type Engine struct {
	Name string
	Run  func() (seconds float64, err error)
}

// Result has medians over turns.
type Result struct {
	Rate   float64            // 10⁹ a second
	OfPeak float64            // Rate over a peak measured next to it (0 = unknown)
	Times  map[string]float64 // how many times faster than each engine
	Turns  int                // number of turns that count
	Speed  float64            // 10⁹ operations a second of multiply-adds in registers (0 = unknown)
}

// least is the shortest time of a turn: shorter work is repeated.
const least = 10 * time.Millisecond

// Names of a turn's measurements other than the engines.
const (
	ownRate = "rate"
	ofPeak  = "of peak"
)

// Run alternates the work with its peak and the engines until `turns` turns are good. After four times as many turns,
// it stops and all turns count. rest is how long an engine's threads may spin after its work.
func (c Case) Run(turns int, clock Clock, rest time.Duration, engines ...Engine) (Result, error) {
	run := c.Prepare()
	run() // a first run fills caches, maps pages and raises the clock rate
	repeats := 0
	for begin := clock(); clock()-begin < least; repeats++ {
		run()
	}
	all := NewTurns(clock)
	for len(all.turns) < 4*turns && len(all.kept()) < turns {
		turn := all.Begin()
		run() // wakes up the pool's helpers
		begin := clock()
		for range repeats {
			run()
		}
		seconds := (clock() - begin).Seconds() / float64(repeats)
		turn[ownRate] = c.Work / seconds / 1e9
		all.Check()
		if c.Peak != nil {
			if peak := c.Peak(clock); peak > 0 {
				turn[ofPeak] = turn[ownRate] / peak
			}
		}
		for _, e := range engines {
			all.Settle(0)
			s, err := e.Run()
			if err != nil {
				return Result{}, err
			}
			turn[e.Name] = s / seconds
			all.Settle(rest)
		}
	}
	good := all.Good(turns)
	median := func(name string) float64 { return Median(good, func(t Turn) float64 { return t[name] }) }
	r := Result{Rate: median(ownRate), OfPeak: median(ofPeak), Times: map[string]float64{}, Turns: len(good),
		Speed: all.best}
	for _, e := range engines {
		r.Times[e.Name] = median(e.Name)
	}
	return r, nil
}
