package runs

import (
	"math"
	"time"

	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
)

// device is a kind of phone: its share of all, its connection, and when it is there. We chose these round figures: no
// trace of real phones is behind them.
type device struct {
	name  string
	share float64
	up    netsim.Model // Rate is what it sends
	down  float64      // bytes a second that it receives (0 = no bound)

	// In trace "day" a phone is there for a while and away for a while, for random times with these means (on 0 =
	// always there). A phone that trains only while it charges is there only at night.
	on, off time.Duration
	night   bool
}

const mbit = 1e6 / 8

// devices are the kinds of phones of a simulation. An app in the background gets windows of ten minutes at most.
var devices = []device{
	{name: "kiosk, LAN", share: 0.1, up: netsim.Model{Latency: time.Millisecond, Rate: 100 * mbit}, down: 1000 * mbit},
	{name: "charging, DSL", share: 0.6, up: netsim.Model{Latency: 15 * time.Millisecond, Rate: 10 * mbit},
		down: 50 * mbit,
		on:   10 * time.Minute, off: 5 * time.Minute, night: true},
	{name: "in use, 4G", share: 0.3, up: netsim.Model{Latency: 40 * time.Millisecond, Rate: 15 * mbit, Loss: 0.005},
		down: 30 * mbit,
		on:   4 * time.Minute, off: 16 * time.Minute},
}

// siteLink connects a site to the others and to phones.
var siteLink = netsim.Model{Latency: 5 * time.Millisecond, Rate: 1000 * mbit}

// A night begins between 22:00 and 24:00 and lasts 6 to 9 hours; a simulation begins at 01:00.
const (
	begins     = time.Hour
	nightFrom  = 22 * time.Hour
	nightDraw  = 2 * time.Hour
	nightLeast = 6 * time.Hour
	nightMore  = 3 * time.Hour
	day        = 24 * time.Hour
)

// forever is after every simulation.
const forever = time.Duration(math.MaxInt64)

// presence is when one phone is reachable.
type presence struct {
	device *device // (nil = always)
	key    rng.Key
	draws  uint64
	from   time.Duration // the window of now, or the next one: [from, to)
	to     time.Duration
}

func newPresence(d *device, key rng.Key) *presence {
	p := &presence{key: key, to: forever}
	if d == nil || d.on == 0 {
		return p
	}
	p.device = d
	p.to = p.draw(d.on)
	if p.key.Fold(1).Float64(0) >= float64(d.on)/float64(d.on+d.off) {
		p.from, p.to = p.to, p.to+p.draw(d.on)
	}
	return p
}

// draw returns a time of an exponential distribution.
func (p *presence) draw(mean time.Duration) time.Duration {
	p.draws++
	return time.Duration(-math.Log1p(-p.key.Float64(p.draws)) * float64(mean))
}

// at returns the first moment from t on at which the phone is there, and when it goes. t never goes back.
func (p *presence) at(t time.Duration) (from, to time.Duration) {
	if p.device == nil {
		return t, forever
	}
	for {
		for p.to <= t {
			p.from = p.to + p.draw(p.device.off)
			p.to = p.from + p.draw(p.device.on)
		}
		from, to = max(p.from, t), p.to
		if !p.device.night {
			return from, to
		}
		dusk, dawn := p.charges(from)
		if from, to = max(from, dusk), min(to, dawn); from < to {
			return from, to
		}
		t = max(p.to, dusk)
	}
}

// charges returns the time of charging that t is in, or the next one.
func (p *presence) charges(t time.Duration) (from, to time.Duration) {
	key := p.key.Fold(2)
	for n := int64((t+begins)/day) - 1; ; n++ { // a night may have begun the day before
		d := uint64(n + 1)
		from = time.Duration(n)*day + nightFrom + time.Duration(key.Float64(2*d)*float64(nightDraw)) - begins
		to = from + nightLeast + time.Duration(key.Float64(2*d+1)*float64(nightMore))
		if to > t {
			return from, to
		}
	}
}
