package netsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// Config describes a network in memory. The zero Config is as fast as memory.
type Config struct {
	Seed       uint64 // of losses and of Spread
	Links      Table
	Spread     time.Duration // each link's latency is longer than its model's by a random time in [0, Spread)
	Queue      int           // bytes under way and unread on a link before Send waits (0 = 4 MiB)
	Partitions []Partition
}

// Partition separates Ranks from all other members for a while. What would arrive across meanwhile
// arrives when it ends.
type Partition struct {
	Ranks      []int         // of the members on one side
	Start, End time.Duration // since New (End 0 = for ever)
}

// validate reports all faults of c for a network of size members.
func (c Config) validate(size int) error {
	errs := []error{c.Links.Check(size)}
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(""+format, args...))
		}
	}
	bad(size < 1, "members must be at least 1 (got %d)", size)
	bad(c.Spread < 0, "spread must be at least 0 (got %v)", c.Spread)
	bad(c.Queue < 0, "queue must be at least 0 (got %d)", c.Queue)
	for i, p := range c.Partitions {
		bad(p.Start < 0, "partition %d: start must be at least 0 (got %v)", i, p.Start)
		bad(p.End != 0 && p.End < p.Start, "partition %d: end must be 0 or at least %v (got %v)", i, p.Start, p.End)
		for _, r := range p.Ranks {
			bad(r < 0 || r >= size, "partition %d: rank must be below %d (got %d)", i, size, r)
		}
	}
	return errors.Join(errs...)
}

// ErrLost is the cause in the *comm.PeerError of calls that a lost member makes or that deal with
// one.
var ErrLost = errors.New("lost")

// Network connects a fixed number of members. A link takes memory once one of its ends uses it: members
// that talk to few others, as leaves do, may be many.
type Network struct {
	config  Config
	members []*member
	pool    comm.SpareFrames
}

// New returns a network of size members. A Config that is not valid panics.
func New(size int, cfg Config) *Network {
	if err := cfg.validate(size); err != nil {
		panic(err.Error())
	}
	n, start := &Network{config: cfg}, time.Now()
	for rank := range size {
		n.members = append(n.members, &member{net: n, rank: rank, uplink: &uplink{start: start}, links: map[int]*link{},
			closed: make(chan struct{}), lost: make(chan struct{})})
	}
	return n
}

// link returns the link from one member to another.
func (n *Network) link(from, to int) *link {
	m := n.members[from]
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[to]
	if l == nil {
		l = newLink(m.uplink, from, to, n.config.Links, n.config.Seed)
		l.configure(n.config, from, to)
		m.links[to] = l
	}
	return l
}

// configure applies what a network in memory has beyond the models of its links.
func (l *link) configure(cfg Config, from, to int) {
	l.model.Latency += time.Duration(l.key.Float64(0) * float64(cfg.Spread))
	l.limit = cmp.Or(cfg.Queue, defaultLimit)
	for _, p := range cfg.Partitions {
		if slices.Contains(p.Ranks, from) != slices.Contains(p.Ranks, to) {
			l.cuts = append(l.cuts, p)
		}
	}
	slices.SortFunc(l.cuts, func(a, b Partition) int { return cmp.Compare(a.Start, b.Start) })
	l.timed = l.model != Model{} || len(l.cuts) > 0
}

// Transport returns the member rank; every call returns the same.
func (n *Network) Transport(rank int) comm.Transport { return n.members[rank] }

// Transports returns all members in rank order.
func (n *Network) Transports() []comm.Transport {
	ts := make([]comm.Transport, len(n.members))
	for r, m := range n.members {
		ts[r] = m
	}
	return ts
}

// Lose ends a member as a crash does: what it sent and nobody received is gone, and every call that
// deals with it, waiting or to come, fails with a *comm.PeerError of its rank. Its own calls fail
// as well.
func (n *Network) Lose(rank int) {
	m := n.members[rank]
	m.loseOnce.Do(func() { close(m.lost) })
}

// Stats returns the frames and bytes that Send has accepted on one link.
func (n *Network) Stats(from, to int) (frames, bytes int64) {
	l := n.link(from, to)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frames, l.bytes
}
