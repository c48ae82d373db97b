package p2p

import (
	"fmt"
	"slices"
	"strings"
)

// Explained adds to an error of members whose plans differ which settings differ, and between which members. Each line
// of Hello.PlanText is a setting and its value, as "lr: 0.01".
func Explained(err error) error {
	all := mismatches(err)
	at := slices.IndexFunc(all, func(m *MemberMismatchError) bool { return m.OurPlan != "" && m.PeerPlan != "" })
	if at < 0 || all[at].OurPlan == Declined || all[at].PeerPlan == Declined {
		return err
	}
	m := all[at]
	differ := differences(m.OurPlan, m.PeerPlan)
	if len(differ) == 0 {
		return fmt.Errorf("%w. The settings are the same: the number of features, classes or relations differs", err)
	}
	ours := "this site"
	if m.Other != "" {
		ours = m.Other
	}
	var lines []string
	for _, d := range differ {
		lines = append(lines, fmt.Sprintf("%s is %s at %s and %s at %s", d.setting, d.ours, ours, d.theirs, m.Name))
	}
	return fmt.Errorf("%w. Settings that differ: %s", err, strings.Join(lines, "; "))
}

// difference is a setting that has two values.
type difference struct{ setting, ours, theirs string }

// differences compares two plans. A setting that one of them does not have is not
// read there.
func differences(ours, theirs string) (all []difference) {
	values := func(text string) (names []string, of map[string]string) {
		of = make(map[string]string)
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				names, of[name] = append(names, name), value
			}
		}
		return names, of
	}
	names, a := values(ours)
	more, b := values(theirs)
	for _, name := range append(names, more...) {
		x, inA := a[name]
		y, inB := b[name]
		if x == y && inA == inB {
			continue
		}
		delete(a, name)
		delete(b, name)
		if !inA {
			x = "not read"
		}
		if !inB {
			y = "not read"
		}
		all = append(all, difference{name, x, y})
	}
	return all
}
