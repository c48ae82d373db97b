package netsim

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Table is what the connections of a set of peers are like: All, except for pairs with a Model of
// their own.
type Table struct {
	All   Model
	Pairs []Pair
}

// Pair is the link from one peer to another. Its Rate bounds only this link, and it uses nothing of the
// Rate of All.
type Pair struct {
	From, To int // ranks
	Model
}

// ParseTable reads what String writes: models such as "latency=50ms,rate=5Mbit,loss=1%", separated
// by semicolons or ends of lines. One behind "0>2:" is for messages from peer 0 to peer 2, one behind "0-2:"
// both ways, any other for all peers. Later entries replace earlier ones.
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
			if t.All, err = parseModel(entry); err != nil {
				return Table{}, err
			}
			continue
		}
		both := strings.Contains(who, "-")
		a, b, _ := strings.Cut(who, map[bool]string{true: "-", false: ">"}[both])
		from, err1 := strconv.Atoi(strings.TrimSpace(a))
		to, err2 := strconv.Atoi(strings.TrimSpace(b))
		if err := cmp.Or(err1, err2); err != nil || from < 0 || to < 0 || from == to {
			return Table{}, fmt.Errorf("a pair must be like 0-2, for both ways, or 0>2 (got %q in %q)", who, s)
		}
		m, err := parseModel(strings.TrimSpace(what))
		if err != nil {
			return Table{}, err
		}
		t.Pairs = append(t.Pairs, Pair{from, to, m})
		if both {
			t.Pairs = append(t.Pairs, Pair{to, from, m})
		}
	}
	if !seen {
		return Table{}, fmt.Errorf("links must be like latency=50ms,rate=5Mbit,loss=1%% (got %q)", s)
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

// Check reports faults of the models, and pairs that size peers do not have.
func (t Table) Check(size int) error {
	errs := []error{t.All.check()}
	for _, p := range t.Pairs {
		if p.From < 0 || p.From >= size || p.To < 0 || p.To >= size {
			errs = append(errs, fmt.Errorf("peers of a pair must be 0 to %d (got peer %d and peer %d)",
				size-1, p.From, p.To))
		}
		errs = append(errs, p.check())
	}
	return errors.Join(errs...)
}

// between is the model from one peer to another, and whether the pair has its own.
func (t Table) between(from, to int) (m Model, own bool) {
	m = t.All
	for _, p := range t.Pairs {
		if p.From == from && p.To == to {
			m, own = p.Model, true
		}
	}
	return m, own
}

// Worst has the longest latency, the lowest rate and the greatest loss of all: the pace of peers
// that wait for one another.
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

// ParseLink reads the table of a network of size members (nil = the text is empty).
func ParseLink(text string, size int) (*Table, error) {
	if text == "" {
		return nil, nil
	}
	table, err := ParseTable(text)
	if err == nil {
		err = table.Check(size)
	}
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	return &table, nil
}
