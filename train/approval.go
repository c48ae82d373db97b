package train

import (
	"fmt"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/comm"
)

// Approval keeps a peer to the messages that it may send in one session. It refuses, by name and before anything is
// sent, what is not among them, is wider, has a format of more bits, or comes more often. If the labels or the first
// rounds of a run decide what is sent, there are several lists, and all that the peer sends must be on one of them.
type Approval struct {
	gives, takes []int // rows of this peer that each other one reads, and rows of each that this one reads

	mu    sync.Mutex
	lists [][]allowance
}

// allowance is what is left of a message.
type allowance struct {
	Message
	left    int64 // how often
	numbers int64 // of a sum, over all times
}

// NewApproval approves of messages by these lists. Member q reads gives[q] rows of this peer, which reads takes[q] of
// its rows.
func NewApproval(gives, takes []int, lists ...*Messages) *Approval {
	a := &Approval{gives: gives, takes: takes}
	for _, l := range lists {
		var all []allowance
		for _, m := range l.List {
			all = append(all, allowance{m, m.Times * max(m.parts, 1), m.Times * m.Numbers})
		}
		a.lists = append(a.lists, all)
	}
	return a
}

// take takes one message off each list that has it left, and forgets the other lists.
func (a *Approval) take(name string, fits func(*allowance) bool, spend func(*allowance)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var left [][]allowance
	for _, list := range a.lists {
		best := -1
		for i := range list { // the narrowest that is wide enough
			one := &list[i]
			narrower := best < 0 || one.Numbers+one.Counts < list[best].Numbers+list[best].Counts
			if one.Name == name && one.left > 0 && narrower && fits(one) {
				best = i
			}
		}
		if best >= 0 {
			spend(&list[best])
			left = append(left, list)
		}
	}
	if len(left) > 0 {
		a.lists = left
	}
	return len(left) > 0
}

// fault returns why a message is refused: what is on the list by its name.
func (a *Approval) fault(what, name, got string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var known []string
	for _, list := range a.lists {
		for _, one := range list {
			if one.Name == name {
				known = append(known, fmt.Sprintf("%d times %d numbers and %d whole numbers as %s",
					one.Times, one.Numbers, one.Counts, one.Format))
			}
		}
	}
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 0 {
		return comm.Refused("%s %q must be on the list of what this site sends (got %s): it was not sent", what, name,
			got)
	}
	return comm.Refused("%s %q must be as on the list of what this site sends, %q (got %s): it was not sent",
		what, name, known, got)
}

// Rows implements comm.Approval.
func (a *Approval) Rows(door comm.Door, name string, bytes func(q int) int) error {
	if door != comm.Halo {
		return nil // the rest reveals nothing about a node
	}
	most := 0
	ok := a.take(name, func(one *allowance) bool {
		if one.Kind == Sums {
			return false
		}
		for q := range a.gives {
			n, rows := int64(bytes(q)), int64(a.gives[q])
			if one.Kind == Errors {
				rows = int64(a.takes[q])
			}
			if one.most > 0 {
				rows = min(rows, one.most)
			}
			if most = max(most, int(n)); n > rows*one.payload+one.head-2*comm.HeaderLen && !one.asks {
				return false
			}
		}
		return true
	}, func(one *allowance) { one.left-- })
	if !ok {
		return a.fault("rows", name, fmt.Sprintf("up to %d bytes to a peer", most))
	}
	return nil
}

// Sum implements comm.Approval.
func (a *Approval) Sum(c *comm.Contribution) error {
	n := int64(len(c.Update))
	ok := a.take(c.ID.Kind, func(one *allowance) bool {
		format := one.bits == c.Bits || 0 < c.Bits && c.Bits < one.bits
		return one.Kind == Sums && format && n <= min(one.Numbers, one.numbers) && int64(len(c.Counts)) <= one.Counts
	}, func(one *allowance) { one.left, one.numbers = one.left-1, one.numbers-n })
	if !ok {
		got := fmt.Sprintf("%d numbers of %s and %d whole numbers", n, FormatOf(c.Bits), len(c.Counts))
		return a.fault("sum", c.ID.Kind, got)
	}
	return nil
}
