package table

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// ColumnKind is how a column of the user's table becomes features.
type ColumnKind string

// What a cell of each kind becomes by Mean and Std of the column:
//
//   - a number v: (v − Mean)/Std, a missing one 0
//   - a category: a one-hot row of Values and "other"
//   - a date: its years since 2000, standardised; sine and cosine of its place in the year and in
//     the week; where some cells have an hour, also of its place in the day
//   - an age: the years from the date to Until, standardised
//   - a text: for each word ±1 in one of Width columns, which its hash selects, divided by the length
//     of the row
//   - an ignored column: nothing
//
// If some were missing, numbers, dates and ages are followed by an indicator of these.
const (
	Numeric     ColumnKind = "numeric"
	Categorical ColumnKind = "categorical"
	Date        ColumnKind = "date"
	Age         ColumnKind = "age"
	Text        ColumnKind = "text"
	Ignored     ColumnKind = "ignored"
)

// MaxWidth bounds the columns of a text.
const MaxWidth = 1 << 16

// Column is the encoding of one column.
type Column struct {
	Name string     `json:"name"`
	Kind ColumnKind `json:"kind"`
	Mean float64    `json:"mean,omitempty"` // dates: in years since 2000; ages: in years
	// standard deviation over the table (population), 1 for a constant column
	Std        float64  `json:"std,omitempty"`
	Missing    bool     `json:"missing,omitempty"`     // numbers were missing: an indicator column follows
	Values     []string `json:"values,omitempty"`      // ascending
	MonthFirst bool     `json:"month_first,omitempty"` // dates: 03/04/2024 is in March
	DayFirst   bool     `json:"-"`                     // dates: 03/04/2024 is in April, since the user chose so
	Clock      bool     `json:"clock,omitempty"`       // dates: some have an hour
	Until      string   `json:"until,omitempty"`       // ages: a date, year first
	Width      int      `json:"width,omitempty"`       // texts: number of columns
	Seed       uint64   `json:"seed,omitempty"`        // texts: seed of the hash of words
}

// Features returns the number of feature columns.
func (c *Column) Features() int {
	n := 0
	switch c.Kind {
	case Numeric, Age:
		n = 1
	case Date:
		n = 5
		if c.Clock {
			n = 7
		}
	case Categorical:
		return len(c.Values) + 1
	case Text:
		return c.Width
	}
	if c.Missing {
		n++
	}
	return n
}

// Valid returns an error if Stats.Column could not have returned c.
func (c *Column) Valid() error {
	switch c.Kind {
	case Numeric, Date, Age:
		if !(c.Std > 0 && c.Std <= math.MaxFloat64 && math.Abs(c.Mean) <= math.MaxFloat64) {
			return fmt.Errorf("column %s must have a finite mean and a finite standard deviation above "+
				"0 (got %v and %v)", c.Name, c.Mean, c.Std)
		}
		if c.Kind == Age {
			if _, ok := ParseDate(c.Until, false); !ok {
				return fmt.Errorf("column %s: date of ages must be year-month-day (got %q)", c.Name, c.Until)
			}
		}
	case Text:
		if c.Width < 1 || c.Width > MaxWidth {
			return fmt.Errorf("column %s must have 1 to %d columns for its words (got %d)", c.Name, MaxWidth, c.Width)
		}
	case Categorical, Ignored:
	default:
		return fmt.Errorf("kind of column %s must be numeric, categorical, date, age, text or ignored (got %q)", c.Name,
			c.Kind)
	}
	if !slices.Equal(c.Values, slices.Compact(slices.Sorted(slices.Values(c.Values)))) {
		return fmt.Errorf("values of column %s are not ascending", c.Name)
	}
	return nil
}

// missing are the texts that mean that there is no value, ignoring case and surrounding blanks. pandas, R, SQL, Excel,
// SAS and Weka write them. docs/reference/graph-formats.md lists them; Format.Missing adds to them.
var missing = strings.Split(
	`na|n/a|n.a.|nan|-nan|null|(null)|nil|none|nat|<na>|#na|#n/a|#n/a n/a|#null!|#div/0!|#value!|`+
		`1.#qnan|-1.#ind|\n|.|?`, "|")

// Missing reports whether a cell means that there is no value.
func Missing(cell string) bool {
	cell = strings.TrimSpace(cell)
	return cell == "" || len(cell) <= len("#n/a n/a") && slices.Contains(missing, strings.ToLower(cell))
}

// Encode calls put with the features of a cell that are not 0, by their indices in the column's features, ascending.
// known is false for a category outside of Values. A cell that cannot be encoded is an error, which does not name the
// cell's position.
func (c *Column) Encode(t *Table, cell string, put func(at int, v float64)) (known bool, err error) {
	switch c.Kind {
	case Categorical:
		place, ok := slices.BinarySearch(c.Values, strings.TrimSpace(cell))
		if !ok {
			place = len(c.Values)
		}
		put(place, 1)
		return ok, nil
	case Text:
		c.words(cell, put)
		return true, nil
	case Ignored:
		return true, nil
	}
	if Missing(cell) {
		if c.Missing {
			put(c.Features()-1, 1)
		}
		return true, nil
	}
	if c.Kind == Numeric {
		z, err := c.standardised(t, cell)
		if err == nil {
			put(0, z)
		}
		return true, err
	}
	d, ok := ParseDate(cell, c.MonthFirst)
	if !ok {
		like, other := "31.03.2024", "mdy"
		if c.MonthFirst {
			like, other = "03/31/2024", "dmy"
		}
		fault := fmt.Errorf("%.40q is not a date like 2024-03-31, %s or 31 Mar 2024", cell, like)
		if _, ok := ParseDate(cell, !c.MonthFirst); ok {
			fault = fmt.Errorf("%w: option date %s:%s reads it", fault, c.Name, other)
		}
		return true, fault
	}
	v := c.years(d)
	put(0, (v-c.Mean)/c.Std)
	if c.Kind == Age {
		return true, nil
	}
	for k, share := range d.cycles() {
		if k == 2 && !c.Clock {
			break
		}
		sin, cos := math.Sincos(2 * math.Pi * share)
		put(1+2*k, sin)
		put(2+2*k, cos)
	}
	return true, nil
}

// standardised returns the number in a cell, standardised by the column's mean and deviation.
func (c *Column) standardised(t *Table, cell string) (float64, error) {
	v, ok := t.Number(cell)
	z := (v - c.Mean) / c.Std
	const remedy = "correct it, or say whether the column is numeric, categorical or ignored; " +
		"option missing reads a text as no value"
	switch {
	case t.TooLarge(cell):
		return 0, fmt.Errorf("must be a number of at most %g in size (got %.40q): %s", Largest, cell, remedy)
	case !ok && t.NumberHint(cell) != "":
		return 0, fmt.Errorf("must be a number (got %.40q)%s", cell, t.NumberHint(cell))
	case !ok:
		return 0, fmt.Errorf("must be a number (got %.40q): %s", cell, remedy)
	case math.Abs(z) > math.MaxFloat32:
		return 0, fmt.Errorf("must be a number near the column's mean, %g (got %.40q): %s", c.Mean, cell, remedy)
	}
	return z, nil
}

// years returns the number of a date: its years since 2000, or until the date that ages end at.
func (c *Column) years(d Moment) float64 {
	if c.Kind != Age {
		return d.Years()
	}
	until, _ := ParseDate(c.Until, false) // Valid has checked it
	return until.Years() - d.Years()
}

// words gives the hashed words of a text (Weinberger et al., Feature Hashing for Large Scale
// Multitask Learning, ICML 2009): a word, in lower case and NFC, is a run of letters, marks and
// digits. Its hash is 64-bit FNV-1a of the seed's eight bytes, lowest first, and the word. The
// hash modulo Width is the word's column, its highest bit the sign.
func (c *Column) words(cell string, put func(at int, v float64)) {
	sum := map[int]float64{}
	text := norm.NFC.String(strings.ToLower(cell))
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		h := fnv.New64a()
		h.Write(binary.LittleEndian.AppendUint64(nil, c.Seed))
		h.Write([]byte(word))
		sign := 1.0
		if h.Sum64()>>63 == 1 {
			sign = -1
		}
		sum[int(h.Sum64()%uint64(c.Width))] += sign
	}
	places, squares := make([]int, 0, len(sum)), 0.0
	for at, v := range sum {
		if v != 0 {
			places = append(places, at)
		}
		squares += v * v
	}
	slices.Sort(places)
	for _, at := range places {
		put(at, sum[at]/math.Sqrt(squares))
	}
}
