package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// Goal is what the threshold of two classes is chosen for.
type Goal struct {
	Best  string  // f1, precision or recall of class 1
	Under string  // precision or recall, which must be at least Least; empty: nothing
	Least float64 // in (0, 1)
}

// ParseGoal reads "f1", "recall@precision=P" or "precision@recall=R". The zero Goal is that of an empty text: the more
// probable class is predicted.
func ParseGoal(text string) (g Goal, err error) {
	if text == "" || text == "f1" {
		return Goal{Best: text}, nil
	}
	best, under, found := strings.Cut(text, "@")
	name, value, given := strings.Cut(under, "=")
	least, err := strconv.ParseFloat(value, 64)
	if !found || !given || err != nil || !(least > 0 && least < 1) || [2]string{best, name} != [2]string{"recall", "precision"} && [2]string{best, name} != [2]string{"precision", "recall"} {
		return g, fmt.Errorf("threshold must be f1, recall@precision=P or precision@recall=R with P or R between 0 and 1 (got %q)", text)
	}
	return Goal{best, name, least}, nil
}

// Choose returns the bin from which on class 1 is predicted that serves g best on these rows, the highest of several. ok is
// false where none has what g asks for at least: then it is the one that comes nearest.
func (t *Table) Choose(g Goal) (bin int, ok bool) {
	of := func(name string, b int) float64 {
		right, wrong, missed := t.Cut(b).Class(1)
		switch name {
		case "precision":
			return ratio(float64(right), float64(right+wrong))
		case "recall":
			return ratio(float64(right), float64(right+missed))
		}
		return f1([]int64{right, wrong, missed})
	}
	best, nearest := -1.0, -1.0
	near := 0
	for b := CurveBins - 1; b >= 0; b-- {
		if g.Under != "" {
			x := of(g.Under, b)
			if x > nearest {
				near, nearest = b, x
			}
			if x < g.Least {
				continue
			}
		}
		if x := of(g.Best, b); x > best {
			bin, best = b, x
		}
	}
	if best < 0 {
		return near, false
	}
	return bin, true
}

// String returns the text that ParseGoal reads.
func (g Goal) String() string {
	if g.Under == "" {
		return g.Best
	}
	return fmt.Sprintf("%s@%s=%s", g.Best, g.Under, strconv.FormatFloat(g.Least, 'g', -1, 64))
}
