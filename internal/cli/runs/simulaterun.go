package runs

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/rng"
)

// Only events take time in a simulation; idle time is skipped. Only the network and the phones' absence take time; what
// processors compute is measured on this machine and not part of it.

// event is something that happens at some time.
type event struct {
	at  time.Duration
	seq int // in the order in which they were made, if the time is the same
	do  func() error
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = event{}
	*q = (*q)[:len(*q)-1]
	return last
}

// settings of a simulation.
type settings struct {
	trace         string
	deadline      time.Duration
	quorum        float64 // fraction of the phones that take part, at which an exchange closes
	least         int
	participation float64 // fraction of phones that take part
	allRounds     bool
	seed          uint64
	links         *netsim.Model // of all sites and phones, instead of their own (nil = their own)
}

// world is a running simulation.
type world struct {
	settings
	config classmeans.Config
	agreed leaf.Agreement
	sites  []*site // those that collect shares
	phones []*phone

	now    time.Duration
	queue  events
	made   int
	known  int // sums that are published
	open   bool
	enough int // shares of each site that close an exchange

	processor time.Duration // of phones
	all       Bytes
	whole     []int // by exchange: phones whose shares all left
	rows      []int // by exchange: nodes with edges of the phones in whole
	counted   int   // phones' parts that were in a sum
	late      int
}

// simulate runs a federation and returns what came of it.
func simulate(ctx context.Context, c classmeans.Config, m members, s settings) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &world{settings: s, config: c, agreed: leaf.Agreement{Run: [8]byte{1}, Sites: len(m.sites), Least: s.least,
		Most: len(m.phones), Edges: m.edges != nil}}
	if err := w.agreed.Validate(); err != nil {
		return nil, cli.Invalid(err)
	}
	taking, key := 0, rng.New(s.seed).FoldString("participation")
	for i, own := range m.phones {
		p := newPhone(i, own, s.seed, s.trace)
		if s.links != nil {
			p.device = &device{name: "given", up: *s.links}
		}
		if p.takes = key.Float64(uint64(i)) < s.participation; p.takes {
			taking++
		}
		if m.edges != nil {
			p.known = m.edges.Boundary(own.IDs)
			p.told = frameHeader
			for _, i := range p.known.Rows {
				p.told += 6 + len(own.IDs[i])
			}
		}
		w.phones = append(w.phones, p)
	}
	w.enough = max(int(math.Ceil(s.quorum*float64(taking))), 1)
	net := netsim.New(len(m.sites), netsim.Config{})
	for r, own := range m.sites {
		one := &site{shard: own, allRounds: s.allRounds}
		if err := one.start(ctx, w, m, net, r); err != nil {
			return nil, err
		}
		w.sites = append(w.sites, one)
	}
	for {
		over, err := w.meet()
		if err == nil && !over {
			err = w.exchange(ctx)
		}
		if err != nil {
			return nil, err
		}
		if over {
			break
		}
	}
	return w.outcome(ctx)
}

// meet waits until every site has computed its part of the next sum, or has ended, and advances time by what the sites'
// messages took.
func (w *world) meet() (over bool, err error) {
	took := time.Duration(0)
	for r, s := range w.sites {
		var load comm.Load
		select {
		case load = <-s.closes:
		case err := <-s.ended:
			if err != nil {
				return true, fmt.Errorf("site %d: %w", r, err)
			}
			over, load = true, s.load()
		}
		took = max(took, w.siteLink().Predict(load))
	}
	w.now += took
	return over, nil
}

func (w *world) siteLink() netsim.Model {
	if w.links != nil {
		return *w.links
	}
	return siteLink
}

// exchange lets phones send their parts of one sum until it closes.
func (w *world) exchange(ctx context.Context) error {
	w.known = len(w.whole)
	w.whole, w.rows = append(w.whole, 0), append(w.rows, 0)
	w.open = true
	for _, p := range w.phones {
		w.wake(ctx, p, w.now)
	}
	k := w.known
	w.after(w.now+w.deadline, func() error {
		if w.known == k {
			w.open = false
		}
		return nil
	})
	for w.full(); w.open; w.full() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		e := heap.Pop(&w.queue).(event)
		w.now = max(w.now, e.at)
		if err := e.do(); err != nil {
			return err
		}
	}
	for _, s := range w.sites {
		s.release <- struct{}{}
	}
	return nil
}

// full closes the exchange if every site has enough shares.
func (w *world) full() {
	for _, s := range w.sites {
		if s.intake.Shares() < w.enough {
			return
		}
	}
	w.open = false
}

// after has something done at a time.
func (w *world) after(t time.Duration, do func() error) {
	w.made++
	heap.Push(&w.queue, event{t, w.made, do})
}

// wake has a phone go on at t or when it is there, if it can: it has not begun, or what it waits for is published.
func (w *world) wake(ctx context.Context, p *phone, t time.Duration) {
	if !p.takes || p.done || p.scheduled || p.waits >= w.known {
		return
	}
	from, to := p.there.at(t)
	p.scheduled = true
	w.after(from, func() error {
		p.scheduled = false
		return w.turn(ctx, p, to)
	})
}

// turn has a phone that is there until to say hello, or fetch the sums that it waits for.
func (w *world) turn(ctx context.Context, p *phone, to time.Duration) error {
	p.uses(w.now)
	var all [][]byte
	var arrives time.Duration
	if p.waits < 0 {
		arrives = w.hello(p)
	} else {
		var err error
		if all, arrives, err = w.fetch(ctx, p); err != nil {
			return err
		}
	}
	if arrives > to { // gone before it came
		for _, b := range all {
			w.all.Sums, w.all.Lost = w.all.Sums-int64(len(b)), w.all.Lost+int64(len(b))
		}
		w.wake(ctx, p, to)
		return nil
	}
	p.scheduled = true
	w.after(arrives, func() error {
		p.scheduled = false
		p.uses(w.now)
		began := cli.ProcessorTime()
		err := p.step(ctx, w, all)
		w.processor += cli.ProcessorTime() - began
		if err != nil {
			return fmt.Errorf("a phone: %w", err)
		}
		w.send(p, to)
		w.wake(ctx, p, w.now)
		return nil
	})
	return nil
}

// Lengths of frames: a header on each message, a token for hello, the number of an exchange to ask for sums.
const (
	frameHeader = 8
	helloLen    = frameHeader + 16
	welcomeLen  = frameHeader
	askLen      = frameHeader + 4
)

// hello has every site admit a phone, and returns when the phone knows.
func (w *world) hello(p *phone) (known time.Duration) {
	for _, s := range w.sites {
		if err := s.intake.Admit(context.Background(), p.token, binary.LittleEndian.AppendUint32(nil,
			uint32(p.number))); err != nil {
			panic(fmt.Sprintf("simulate: %v", err)) // there is space for all
		}
		_, there := p.send(w.now, helloLen)
		known = max(known, w.answer(p, s, there, welcomeLen+p.told))
		p.sent += helloLen
	}
	return known
}

// answer returns when n bytes arrive that a site sends a phone at t.
func (w *world) answer(p *phone, s *site, t time.Duration, n int) time.Duration {
	p.frames++
	busy, _ := w.siteLink().Delivery(n, 0)
	s.idle = max(s.idle, t) + busy
	_, flight := p.device.up.Delivery(n, p.key.Fold(3).Float64(p.frames))
	if p.device.down > 0 {
		flight += time.Duration(float64(n) / p.device.down * float64(time.Second))
	}
	p.received += int64(n)
	return s.idle + flight
}

// fetch returns the sums that a phone waits for, and when it has them: it asks now, unless it asked when it sent its
// shares.
func (w *world) fetch(ctx context.Context, p *phone) (all [][]byte, arrives time.Duration, err error) {
	home := w.sites[p.token.First(len(w.sites))]
	for _, from := range w.sites {
		if from != home && !p.parts {
			continue
		}
		b, err := from.collector.Sums(ctx, p.token, p.waits)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, b)
		if !p.takes {
			continue
		}
		t := w.now
		if p.waits < w.known-1 {
			_, t = p.send(t, askLen)
		}
		p.sent += askLen
		w.all.Sums += int64(len(b))
		if b[1] == 1 && from == home {
			w.counted++
		}
		arrives = max(arrives, w.answer(p, from, t, frameHeader+len(b)))
	}
	return all, arrives, nil
}

// send brings the shares of a phone that is there until to on their way.
func (w *world) send(p *phone, to time.Duration) {
	outbox := p.outbox
	p.outbox = nil
	k, left := p.waits, 0
	for _, m := range outbox {
		gone, there := p.send(w.now, frameHeader+len(m.share))
		if gone > to {
			break
		}
		left++
		p.sent += int64(frameHeader + len(m.share))
		w.all.Shares += int64(len(m.share))
		w.after(there, func() error {
			err := w.sites[m.site].intake.Accept(p.token, m.share, time.Time{}.Add(there))
			if errors.Is(err, leaf.ErrLate) {
				w.late++
				err = nil
			}
			return err
		})
	}
	switch {
	case len(outbox) == 0:
	case left == len(outbox):
		w.whole[k]++
		w.rows[k] += len(p.known.Rows)
	default:
		for _, m := range outbox[:left] {
			w.all.Shares -= int64(len(m.share))
			w.all.Lost += int64(len(m.share))
		}
	}
}
