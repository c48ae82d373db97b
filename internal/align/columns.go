package align

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// columnsOf are the columns of a table that the sites agreed on, and what this site found in its own.
type columnsOf struct {
	columns []table.Column
	found   []dataset.ColumnProfile // nil = it has no such table
}

// stats returns what was found in each column, by name.
func (t *columnsOf) stats() map[string]*table.Stats {
	out := make(map[string]*table.Stats, len(t.found))
	for _, c := range t.found {
		out[c.Name] = c.Stats
	}
	return out
}

// counts returns what the sites add up first, in the order of the columns: of numbers and dates how
// many there are and their sum, of a categorical column how many rows have each value.
func (t *columnsOf) counts() (out []float32) {
	stats := t.stats()
	for k := range t.columns {
		c := &t.columns[k]
		s := stats[c.Name]
		switch {
		case s == nil:
			out = append(out, make([]float32, sums(c))...)
		case moments(c):
			m := s.Moments(c)
			out = append(out, float32(m.N), float32(m.Mean*float64(m.N)))
		case c.Kind == table.Categorical:
			spelled := table.NewSpellings(slices.Collect(maps.Keys(s.Count)))
			for _, v := range c.Values {
				out = append(out, float32(s.Count[spelled.Find(v)]))
			}
		}
	}
	return out
}

// mostSum is the largest number that a site adds to a sum: the sum over dozens of sites then fits a masked float32.
const mostSum = 1e36

// summable refuses numbers whose sums do not fit those over the sites.
func (t *columnsOf) summable() error {
	for _, c := range t.found {
		if c.Stats == nil || c.Kind != table.Numeric {
			continue
		}
		if m := c.Stats.Moments(&c.Column); m.M2 > mostSum || math.Abs(m.Mean)*float64(m.N) > mostSum {
			return c.Stats.LargestFault(c.Name, "must be a number whose square can be summed over the sites",
				"correct it, or ignore the column")
		}
	}
	return nil
}

// squares takes the counts of all sites and returns what the sites add up next: for each column of numbers or dates
// the sum of squared deviations from its mean over all sites. rest has the counts of the tables that follow.
func (t *columnsOf) squares(counts []float32) (out, rest []float32, err error) {
	stats := t.stats()
	for k := range t.columns {
		c := &t.columns[k]
		if moments(c) {
			square := float32(0)
			if s := stats[c.Name]; s != nil {
				m := s.Moments(c)
				d := m.Mean - mean(counts)
				sum := m.M2 + float64(d*d)*float64(m.N)
				if !(sum <= mostSum) {
					return nil, nil, fmt.Errorf("column %s must have numbers near the numbers of the other sites "+
						"(their mean is %g here and %g over all sites)", c.Name, m.Mean, mean(counts))
				}
				square = float32(sum)
			}
			out = append(out, square)
		}
		counts = counts[sums(c):]
	}
	return out, counts, nil
}

// moments reports whether a column has a mean and a deviation.
func moments(c *table.Column) bool {
	return c.Kind == table.Numeric || c.Kind == table.Date || c.Kind == table.Age
}

// sums returns how many of counts are the column's.
func sums(c *table.Column) int {
	if moments(c) {
		return 2
	}
	return len(c.Values)
}

func mean(counts []float32) float64 {
	if counts[0] == 0 {
		return 0
	}
	return float64(counts[1]) / float64(counts[0])
}

// fit completes the columns that agree returned, from the counts and squares of all sites. It returns the counts and
// squares of the tables that follow.
func (t *columnsOf) fit(counts, squares []float32) (restCounts, restSquares []float32, err error) {
	for k := range t.columns {
		c := &t.columns[k]
		n := sums(c)
		switch {
		case moments(c):
			c.Mean, c.Std = mean(counts), 1
			if counts[0] > 0 && squares[0] > 0 {
				c.Std = math.Sqrt(float64(squares[0]) / float64(counts[0]))
			}
			if !(c.Std > 0 && c.Std <= math.MaxFloat64) || math.IsInf(c.Mean, 0) || math.IsNaN(c.Mean) {
				return nil, nil, fmt.Errorf("column %s: its numbers are too large to be standardised", c.Name)
			}
			squares = squares[1:]
		case c.Kind == table.Categorical:
			count := map[string]int{}
			for i, v := range c.Values {
				count[v] = int(counts[i])
			}
			c.Values = table.Frequent(count)
		}
		counts = counts[n:]
	}
	return counts, squares, nil
}
