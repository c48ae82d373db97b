package minibatch

import (
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// pace chooses the size of groups if the plan sets none.
type pace struct {
	relays  int // messages of a group, one after the other
	memory  int64
	latency time.Duration // of a message to the slowest peer and its answer
}

const (
	// pings is the number of exchanges whose median is the latency.
	pings = 5
	// relayShare bounds the relays of a group: they may take 1/relayShare of the time of its steps, as if nothing hid
	// them behind training.
	relayShare = 10
	// roomForRows is the memory of the rows of two groups if the plan sets no limit, in bytes.
	roomForRows = 1 << 30
	// firstGroup is the size of groups until the pace is measured.
	firstGroup = 2
)

// measure finds the latency. All peers call it.
func (p *pace) measure(ctx context.Context, g *comm.Group) error {
	var took []time.Duration
	for range pings {
		begun := time.Now()
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	p.latency = 2 * took[pings/2]
	return nil
}

// wants returns two sizes of groups after a finished group that took a time for a number of steps, with rows of some
// bytes. The smallest group is a power of two whose relays take at most a tenth of the time of its steps. The largest
// is one whose rows fit in memory twice.
func (p *pace) wants(took time.Duration, steps int, rows int64) (least, most int) {
	least, most = firstGroup, MostGroup
	step := max(1, took/time.Duration(steps))
	for least < MostGroup && time.Duration(p.relays)*p.latency*relayShare > step*time.Duration(least) {
		least *= 2
	}
	room := p.memory
	if room == 0 {
		room = roomForRows
	}
	if rows = max(1, rows/int64(steps)); 2*rows*MostGroup > room {
		most = max(1, 1<<bits.Len64(uint64(room/(2*rows)))>>1)
	}
	return least, most
}

// agree returns the size of groups for all peers: the largest that a peer wants, if every peer has memory for it.
func agree(ctx context.Context, g *comm.Group, least, most int) (int, error) {
	out := make([][]byte, g.Size())
	for q := range out {
		if q != g.Rank() {
			out[q] = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, uint16(least)),
				uint16(most))
		}
	}
	const what = "size of a group of batches"
	in, err := g.SendRecv(ctx, comm.Control, what, out, 4)
	if err != nil {
		return 0, err
	}
	for q, b := range in {
		if q == g.Rank() {
			continue
		}
		if len(b) != 4 {
			return 0, &comm.PeerError{Rank: q, Op: what, Err: comm.Refused("it must have 4 bytes (got %d)", len(b))}
		}
		l, m := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
		if l < 1 || l > MostGroup || m < 1 || m > MostGroup {
			return 0, &comm.PeerError{Rank: q, Op: what,
				Err: comm.Refused("it must be from 1 to %d (got %d and %d)", MostGroup, l, m)}
		}
		least, most = max(least, l), min(most, m)
	}
	return min(least, most), nil
}
