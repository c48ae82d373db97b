// Package sim is a network in memory, for tests and for members that share a process. Delay, bandwidth and loss are
// drawn from a seed, links can be cut for a while, members can be lost, and every frame and byte is counted. It starts
// no goroutine and knows time by package time alone, so that a test in a testing/synctest bubble runs it at once.
package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Config describes every link of a network. The zero Config is a network as fast as memory.
type Config struct {
	Seed                   uint64
	MinLatency, MaxLatency time.Duration // one way; each link has its own between them
	Bandwidth              float64       // bytes a second on each link; 0: no limit
	Loss                   float64       // share of transmissions lost and sent again, in [0, 1)
	Retransmit             time.Duration // delay of a frame for each time it is lost; 0: 200 ms
	Queue                  int           // bytes under way and unread on a link before Send waits; 0: 4 MiB
	Partitions             []Partition
}

// Partition parts Ranks from all other members for a while. What would arrive across meanwhile arrives when it ends.
type Partition struct {
	Ranks      []int
	Start, End time.Duration // since New; End 0: for ever
}

// Validate reports all faults of c for a network of size members.
func (c Config) Validate(size int) error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("sim: "+format, args...))
		}
	}
	bad(size < 1, "%d members, wanted at least 1", size)
	bad(c.MinLatency < 0 || c.MaxLatency < c.MinLatency, "latency from %v to %v, wanted 0 ≤ MinLatency ≤ MaxLatency", c.MinLatency, c.MaxLatency)
	bad(!(c.Bandwidth >= 0) || math.IsInf(c.Bandwidth, 0), "bandwidth %v, wanted a finite number of at least 0", c.Bandwidth)
	bad(!(c.Loss >= 0 && c.Loss < 1), "loss %v, wanted 0 ≤ Loss < 1", c.Loss)
	bad(c.Retransmit < 0, "retransmit %v, wanted at least 0", c.Retransmit)
	bad(c.Queue < 0, "queue %d, wanted at least 0", c.Queue)
	for i, p := range c.Partitions {
		bad(p.Start < 0 || p.End != 0 && p.End < p.Start, "partition %d from %v to %v, wanted 0 ≤ Start ≤ End, or End 0", i, p.Start, p.End)
		for _, r := range p.Ranks {
			bad(r < 0 || r >= size, "partition %d: rank %d of %d", i, r, size)
		}
	}
	return errors.Join(errs...)
}

// ErrLost is the cause in the *comm.PeerError of calls that a lost member makes or that deal with one.
var ErrLost = errors.New("lost")

// Network connects a fixed number of members.
type Network struct {
	start   time.Time
	members []*member
	links   [][]*link // from, to
	pool    comm.Pool
}

// New returns a network of size members. A Config that is not valid panics.
func New(size int, cfg Config) *Network {
	if err := cfg.Validate(size); err != nil {
		panic(err.Error())
	}
	if cfg.Queue == 0 {
		cfg.Queue = 4 << 20
	}
	if cfg.Retransmit == 0 {
		cfg.Retransmit = 200 * time.Millisecond
	}
	n := &Network{start: time.Now()}
	key := rng.New(cfg.Seed).FoldString("sim")
	for from := range size {
		n.members = append(n.members, &member{net: n, rank: from, closed: make(chan struct{}), lost: make(chan struct{})})
		links := make([]*link, size)
		for to := range size {
			links[to] = newLink(&cfg, n.start, key.Fold(uint64(from)).Fold(uint64(to)), from, to)
		}
		n.links = append(n.links, links)
	}
	return n
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

// Lose ends a member as a crash does: what it sent and nobody received is gone, and every call that deals with it,
// waiting or to come, fails with a *comm.PeerError of its rank. Its own calls fail as well.
func (n *Network) Lose(rank int) { n.members[rank].lose() }

// Stats returns the frames and bytes that Send has accepted on one link.
func (n *Network) Stats(from, to int) (frames, bytes int64) {
	l := n.links[from][to]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frames, l.bytes
}
