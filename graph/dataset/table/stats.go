package table

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Bounds on the values of a categorical column. Among the first MaxTracked different values, the most frequent
// maxValues get a feature column each; all others share "other". A column with more than Usual values is ignored unless
// the user asks for it.
const (
	maxValues  = 256
	MaxTracked = 1 << 14
	Usual      = 50
)

// tried is the number of texts without a date after which a column counts as one without dates.
const tried = 100

// Moments are the count, mean and sum of squared deviations of numbers (Welford 1962).
type Moments struct {
	N        int
	Mean, M2 float64
}

func (m *Moments) add(v float64) {
	m.N++
	d := v - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += float64(d * (v - m.Mean))
}

// Stats is the result of one pass over a column.
type Stats struct {
	Asked   *Column // the user's wish for it (nil = none)
	Missing int
	Texts   int    // cells that are neither missing nor numbers
	Large   int    // numbers that are infinite or above Largest in size
	Commas  int    // of the texts: numbers with a decimal comma instead of the expected point
	Points  int    // of the texts: numbers with a decimal point instead of the expected comma
	Words   int    // of the texts: words, approximately
	Dressed int    // of the texts: numbers for people (Dressed)
	Example string // one of these numbers for people
	Clock   bool
	Count   map[string]int
	apart   Apart    // for a column of edges
	Spelled []string // values with several spellings, as Unite writes them; set by Column
	// Overflow: there are more distinct values than are counted.
	Overflow bool

	numbers Moments
	largest struct { // the largest number in size
		v, next float64 // and the size of the next one
		in      *Table
		line    int
	}
	dates *[2]Moments // dates read day first, and month first (nil = none)

	// Numbers are not counted value by value until a text shows that they may be categories.
	counting  bool
	empties   int // empty cells before that
	uncounted int // others
}

// Again returns the statistics to fill in another pass, or nil if this pass counted values from the start.
func (s *Stats) Again() *Stats {
	if s.uncounted == 0 || s.Cells() == 0 || s.numeric() {
		return nil
	}
	return &Stats{Asked: s.Asked, counting: true}
}

// numeric reports whether most cells are numbers. Numbers that are too large do not count as texts.
func (s *Stats) numeric() bool { return s.numbers.N > 9*s.Texts }

// asked returns the kind that the user asks for, or "".
func (s *Stats) asked() ColumnKind {
	if s.Asked == nil {
		return ""
	}
	return s.Asked.Kind
}

// read returns the moments of the dates, read month first or not.
func (s *Stats) read(monthFirst bool) Moments {
	switch {
	case s.dates == nil:
		return Moments{}
	case monthFirst:
		return s.dates[1]
	}
	return s.dates[0]
}

// Add adds a line's cell; in a table of edges, ends are the ends of the edge.
func (s *Stats) Add(t *Table, cell string, line int, ends ...string) {
	cell = strings.TrimSpace(t.Cell(cell))
	empty := Missing(cell)
	v, ok := 0.0, false
	if !empty {
		v, ok = t.Number(cell)
	}
	if !s.counting && (!empty && !ok || s.asked() == Categorical) {
		s.counting = true
		if s.empties > 0 {
			s.Count = map[string]int{"": s.empties}
		}
	}
	switch {
	case s.counting:
		s.count(cell, ends)
	case cell == "":
		s.empties++
	default:
		s.uncounted++
	}
	switch {
	case empty:
		s.Missing++
		return
	case ok:
		s.numbers.add(v)
		if l := &s.largest; l.in == nil || math.Abs(v) > math.Abs(l.v) {
			l.v, l.next, l.in, l.line = v, math.Abs(l.v), t, line
		} else {
			l.next = max(l.next, math.Abs(v))
		}
	case t.TooLarge(cell):
		s.Large++
	default:
		s.Texts++
		s.Words += 1 + strings.Count(cell, " ")
		if Dressed(cell) {
			s.Dressed++
			s.Example = cmp.Or(s.Example, strings.Clone(cell))
		}
		if commaNumber(cell) {
			s.Commas++
		} else if _, ok := Number(cell); ok {
			s.Points++
		}
	}
	asked := s.asked() == Date || s.asked() == Age
	if asked || !ok && (s.Texts <= tried || s.dates != nil) {
		s.addDate(cell)
	}
}

// count counts a text. For an edge's text it also records the ends, to find edges without a common node. If there are
// more than MaxTracked different texts, the column is no category, and none is counted.
func (s *Stats) count(cell string, ends []string) {
	if n, ok := s.Count[cell]; ok || len(s.Count) < MaxTracked {
		if !ok {
			cell = strings.Clone(cell) // not the whole row's memory
			if s.Count == nil {
				s.Count = map[string]int{}
			}
		}
		s.Count[cell] = n + 1
		if len(ends) > 0 {
			if s.apart == nil {
				s.apart = Apart{}
			}
			s.apart.Add(cell, ends...)
		}
	} else {
		s.Overflow = true
	}
}

// Shared returns the values that at least `nodes` nodes have, ascending, and how many values fewer nodes have. Empty
// cells do not count.
func (s *Stats) Shared(nodes int) (values []string, rare int) {
	for v, n := range s.Count {
		if s.apart != nil {
			n = s.apart.Count(v)
		}
		if n >= nodes || v == "" {
			values = append(values, v)
		} else {
			rare++
		}
	}
	slices.Sort(values)
	return values, rare
}

// Apart counts, for each text, edges that have no end in common, so that the many edges of one node count once.
type Apart map[string]map[string]bool

// mostApart is the greatest count.
const mostApart = 1000

// Add adds an edge with that text.
func (a Apart) Add(text string, ends ...string) {
	of := a[text]
	if of == nil {
		of = map[string]bool{}
		a[strings.Clone(text)] = of
	}
	if len(of) >= 2*mostApart || slices.ContainsFunc(ends, func(end string) bool { return of[end] }) {
		return
	}
	for _, end := range ends {
		of[strings.Clone(end)] = true
	}
}

// Count returns how many edges there are.
func (a Apart) Count(text string) int { return len(a[text]) / 2 }

// addDate counts a text as a date, read day first and read month first.
func (s *Stats) addDate(cell string) {
	for k := range 2 {
		d, ok := ParseDate(cell, k == 1)
		if !ok {
			continue
		}
		if s.dates == nil {
			s.dates = &[2]Moments{}
		}
		years := d.Years()
		if s.asked() == Age {
			years = s.Asked.years(d)
		}
		s.dates[k].add(years)
		s.Clock = s.Clock || d.Clock
	}
}

// Cells returns how many cells have a value.
func (s *Stats) Cells() int { return s.numbers.N + s.Large + s.Texts }

// Values returns how many different values were counted, and how many of them occur once. Missing values do not count.
func (s *Stats) Values() (distinct, once int) {
	for v, n := range s.Count {
		if Missing(v) {
			continue
		}
		distinct++
		if n == 1 {
			once++
		}
	}
	return distinct, once
}

// Sparse reports whether most rows have a text that no other row has.
func (s *Stats) Sparse() bool {
	_, once := s.Values()
	return s.Overflow || 2*once > s.Cells()
}

// Moments returns the moments of the numbers of a column of that encoding: of its dates in years.
func (s *Stats) Moments(c *Column) Moments {
	switch {
	case c.Kind == Date || c.Kind == Age:
		return s.read(s.MonthFirst(c))
	case c.Kind == Numeric:
		return s.numbers
	}
	return Moments{}
}

// LargestFault is an error about the largest number in size; name is the column's.
func (s *Stats) LargestFault(name, must, remedy string) error {
	l := &s.largest
	return l.in.Fault(l.line, l.in.Find(name), "%s (got %g): %s", must, l.v, remedy)
}

// Outlier returns the number that is over a million times as large as all others, and its line; 0 if there is none.
func (s *Stats) Outlier() (v float64, line int) {
	if l := &s.largest; l.next > 0 && math.Abs(l.v)/1e6 > l.next {
		return l.v, l.line
	}
	return 0, 0
}

// Constant reports whether all cells have the same number.
func (s *Stats) Constant() bool { return s.numbers.N > 1 && s.numbers.M2 == 0 && s.Missing == 0 }

// Orders reports whether the dates can be read day first, and month first: the order that reads the most, or the user's
// choice.
func (s *Stats) Orders() (day, month bool) {
	if s.Asked != nil && (s.Asked.MonthFirst || s.Asked.DayFirst) {
		return s.Asked.DayFirst, s.Asked.MonthFirst
	}
	d, m := s.read(false).N, s.read(true).N
	return d >= m, m >= d
}

// MonthFirst reports whether the dates are month first. If both are possible, c decides, on which several sites agreed.
func (s *Stats) MonthFirst(c *Column) bool {
	if day, month := s.Orders(); day != month {
		return month
	}
	return c.MonthFirst
}

// Column decides what becomes of the column, and why it is ignored if it is.
func (s *Stats) Column(name string) (c Column, why string) {
	if s.Asked != nil {
		c = *s.Asked
	}
	c.Name, s.Spelled = name, append(s.Spelled, Unite(s.Count)...)
	if c.Kind == "" {
		c.Kind, why = s.kind()
	}
	switch c.Kind {
	case Numeric, Date, Age:
		if day, _ := s.Orders(); !day {
			c.MonthFirst = c.Kind != Numeric
		}
		c.Missing, c.Clock = s.Missing > 0, c.Kind == Date && s.Clock
		c.fit(s.Moments(&c))
	case Categorical:
		c.Values = Frequent(s.Count)
	}
	return c, why
}

// kind decides what a column is if the user does not.
func (s *Stats) kind() (ColumnKind, string) {
	dates := max(s.read(false).N, s.read(true).N)
	distinct, once := s.Values()
	switch {
	case s.Cells() == 0:
		return Ignored, "no cell has a value"
	case s.numeric():
		return Numeric, ""
	case dates > 0 && dates == s.Cells(), dates > 9*(s.Cells()-dates):
		return Date, ""
	case s.Overflow:
		return Ignored, fmt.Sprintf("more than %d categories", MaxTracked)
	case 2*once > s.Cells():
		return Ignored, fmt.Sprintf("%d of %d cells have a text that no other has", once, s.Cells())
	case distinct > Usual:
		return Ignored, fmt.Sprintf("%d categories, more than %d", distinct, Usual)
	}
	return Categorical, ""
}

// fit sets the mean and standard deviation from the moments of all cells.
func (c *Column) fit(m Moments) {
	c.Mean, c.Std = m.Mean, 1
	if std := math.Sqrt(m.M2 / float64(max(1, m.N))); std > 0 {
		c.Std = std
	}
}

// Frequent returns the values that get a feature column each, ascending.
func Frequent(count map[string]int) []string {
	values := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	values = slices.Clone(values[:min(len(values), maxValues)])
	slices.Sort(values)
	return values
}

// Ambiguous reports whether the column's dates can be read day first and month first, with different results.
func (s *Stats) Ambiguous() bool { return s.read(false).N > 0 && s.read(false) != s.read(true) }
