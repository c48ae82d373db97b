// Package pace gives slow peers less local work.
package pace

import (
	"math"
	"slices"
)

// Pace gives each peer its share of local work where the plan says straggler: adapt. It decides from what all members
// say of one round in its sum, so that all decide alike: the seconds that each one's own work took.
//
// A peer is slow when its work takes longer than that of most: longer than slack times the lower median of the members'. Its
// next share is the one that would have taken as long as that, if work grew with the nodes. A peer whose work takes less is given more,
// up to all of it. Between two decisions lie paceWindow rounds, of which the median counts: one that is held up for a round or two
// keeps its work.
type Pace struct {
	Share []float64   // by rank: of its training nodes that a peer's steps are computed from, in (0, 1]
	times [][]float64 // by rank: seconds of work in each round since the last decision
}

const (
	paceWindow = 5
	slack      = 1.5      // how much slower than most a peer may be
	rise       = 1.25     // how much more than now it must be able to do to be given more; and so near to all of it is given all
	leastShare = 1.0 / 16 // a peer that is slower still is waited for
	leastDelay = 0.02     // seconds: waiting less for a peer is not worth a change
)

// New returns the pace of so many peers, all of which do all of their work.
func New(size int) *Pace {
	p := &Pace{Share: make([]float64, size), times: make([][]float64, size)}
	for r := range p.Share {
		p.Share[r] = 1
	}
	return p
}

// Of is the share of peer rank; 0 stands for all of its work.
func (p *Pace) Of(rank int) float64 {
	if p == nil || p.Share[rank] == 1 {
		return 0
	}
	return p.Share[rank]
}

// Note takes the seconds of one round, by rank, and decides anew when there are enough. Values that are not a positive time
// are ignored.
func (p *Pace) Note(seconds []float32, members []int) {
	for _, r := range members {
		t := float64(seconds[r])
		if !(t > 0 && t <= math.MaxFloat32) {
			t = 0
		}
		p.times[r] = append(p.times[r], t)
	}
	if len(p.times[members[0]]) < paceWindow {
		return
	}
	took := make([]float64, len(members))
	for i, r := range members {
		took[i] = lowerMedian(p.times[r])
		p.times[r] = p.times[r][:0]
	}
	most := lowerMedian(took)
	for i, r := range members {
		if took[i] == 0 || most == 0 {
			continue
		}
		now := p.Share[r]
		want := max(leastShare, now*most/took[i])
		if want*rise >= 1 {
			want = 1
		}
		slower := want < now/slack && took[i] > most+leastDelay
		if slower || want > now*rise || want == 1 {
			p.Share[r] = want
		}
	}
}

// lowerMedian sorts a copy of x.
func lowerMedian(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[(len(s)-1)/2]
}
