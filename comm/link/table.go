package link

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Table is what the connections of a set of peers are like: All, but for those pairs that have a Model of their own.
type Table struct {
	All   Model
	Pairs []Pair
}

// Pair is the way from one peer to another. Its Rate bounds it alone, and it takes nothing of what All allows a peer.
type Pair struct {
	From, To int // ranks
	Model
}

// ParseTable reads what String writes: models as Parse reads them with semicolons or ends of lines between, each for all
// peers, or behind "0>2:" from peer 0 to peer 2, or behind "0-2:" for both ways. Later entries hold over earlier ones.
func ParseTable(s string) (t Table, err error) {
	seen := false
	for entry := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ';' || r == '\n' }) {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		seen = true
		who, what, named := strings.Cut(entry, ":")
		if !named {
			if t.All, err = Parse(entry); err != nil {
				return Table{}, err
			}
			continue
		}
		both := strings.Contains(who, "-")
		a, b, _ := strings.Cut(who, map[bool]string{true: "-", false: ">"}[both])
		from, err1 := strconv.Atoi(strings.TrimSpace(a))
		to, err2 := strconv.Atoi(strings.TrimSpace(b))
		if err := cmp.Or(err1, err2); err != nil || from < 0 || to < 0 || from == to {
			return Table{}, fmt.Errorf("link: %q in %q, want two peers: 0-2 for both ways, or 0>2", who, s)
		}
		m, err := Parse(strings.TrimSpace(what))
		if err != nil {
			return Table{}, err
		}
		t.Pairs = append(t.Pairs, Pair{from, to, m})
		if both {
			t.Pairs = append(t.Pairs, Pair{to, from, m})
		}
	}
	if !seen {
		return Table{}, fmt.Errorf("link: nothing in %q, want such as latency=50ms,rate=5Mbit,loss=1%%", s)
	}
	return t, nil
}

// String writes a table as ParseTable reads it.
func (t Table) String() string {
	entries := []string{t.All.String()}
	for i := 0; i < len(t.Pairs); i++ {
		p, sign := t.Pairs[i], ">"
		if i+1 < len(t.Pairs) && t.Pairs[i+1] == (Pair{p.To, p.From, p.Model}) {
			sign = "-"
			i++
		}
		entries = append(entries, fmt.Sprintf("%d%s%d: %v", p.From, sign, p.To, p.Model))
	}
	return strings.Join(entries, "; ")
}

// Check reports pairs that size peers do not have.
func (t Table) Check(size int) error {
	for _, p := range t.Pairs {
		if p.From >= size || p.To >= size {
			return fmt.Errorf("link: the way from peer %d to peer %d, but there are peers 0 to %d", p.From, p.To, size-1)
		}
	}
	return nil
}

// way is the model from one peer to another, and whether the pair has one of its own.
func (t Table) way(from, to int) (m Model, own bool) {
	m = t.All
	for _, p := range t.Pairs {
		if p.From == from && p.To == to {
			m, own = p.Model, true
		}
	}
	return m, own
}

// Worst has the longest latency, the lowest rate and the greatest loss of all: peers that wait for one another go at its
// pace.
func (t Table) Worst() Model {
	worst := t.All
	for _, p := range t.Pairs {
		worst.Latency, worst.Loss = max(worst.Latency, p.Latency), max(worst.Loss, p.Loss)
		if p.Rate > 0 && (worst.Rate == 0 || p.Rate < worst.Rate) {
			worst.Rate = p.Rate
		}
	}
	return worst
}
