package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// Goal is the aim in choosing the threshold of two classes, or the threshold of each class if a node may have several.
type Goal struct {
	Best  string  // f1, precision or recall of the positive class, or of each of several
	Under string  // precision or recall, which must be at least Least, or empty
	Least float64 // in (0, 1)
}

// ParseGoal reads "f1", "recall@precision=P" or "precision@recall=R". An empty text gives the zero Goal: the more
// probable class is predicted.
func ParseGoal(text string) (g Goal, err error) {
	if text == "" || text == "f1" {
		return Goal{Best: text}, nil
	}
	best, under, found := strings.Cut(text, "@")
	name, value, given := strings.Cut(under, "=")
	least, err := strconv.ParseFloat(value, 64)
	if !found || !given || err != nil || !(least > 0 && least < 1) || [2]string{best, name} != [2]string{"recall",
		"precision"} && [2]string{best, name} != [2]string{"precision", "recall"} {
		return g, fmt.Errorf("threshold must be f1, recall@precision=P or precision@recall=R with P or R "+
			"between 0 and 1 (got %q)", text)
	}
	return Goal{best, name, least}, nil
}

// Choose returns, for each ranking (the positive class of two, or each of several a node), the bin from which on the
// class is predicted: the bin that serves g best on these rows, the highest of equals. ok is false if no bin reaches
// g.Least. Then it is the nearest bin, or the bin of even odds for a class that no row has.
func (t *Table) Choose(g Goal) (bins []int, ok []bool) {
	for k := range t.counts.curves {
		if right, _, missed := t.Class(t.ranked(k)); t.multi && right+missed == 0 {
			bins, ok = append(bins, CurveBins/2), append(ok, false)
			continue
		}
		b, reached := t.choose(g, k)
		bins, ok = append(bins, b), append(ok, reached)
	}
	return bins, ok
}

// ranked returns the class of ranking k.
func (t *Table) ranked(k int) int {
	if t.multi {
		return k
	}
	return 1
}

// choose is Choose for ranking k.
func (t *Table) choose(g Goal, k int) (bin int, ok bool) {
	of := func(name string, b int) float64 {
		right, wrong, missed := t.from(k, b)
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
