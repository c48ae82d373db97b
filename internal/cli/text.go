package cli

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/heddle-gnn/heddle/nn/eval"
)

var option = regexp.MustCompile(`\boption ([a-z]+(-[a-z]+)*)`)

// Flags returns text with each "option NAME" of a library written as the flag --NAME.
func Flags(text string) string { return option.ReplaceAllString(text, "--$1") }

// Table is rows of text under a head; the first column is of names.
type Table struct {
	Name string   // for those who do not see it
	Head []string // names of the columns
	Rows [][]string
	Text bool // all columns are of text, not of numbers
}

// Add appends a row.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for k, cell := range cells {
		row[k] = fmt.Sprint(cell)
	}
	t.Rows = append(t.Rows, row)
}

// Print writes t as plain text, in columns.
func (t Table) Print(w io.Writer) error {
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintln(lines, strings.Join(row, "\t"))
	}
	return lines.Flush()
}

// OfClass adds to the name of a ranking metric the positive class of two (empty = there are not two).
func OfClass(name string, m eval.Metric, class string) string {
	if class == "" || !m.Ranks() {
		return name
	}
	return name + " of class " + class
}

// Measure writes a metric: of classes in percent, of numbers as it is. NaN is "none", of a ranking
// "undefined".
func Measure(m eval.Metric, x float64) string {
	if m.Plain() && !math.IsNaN(x) || m.Ranks() {
		return m.Text(x)
	}
	return Percent(x)
}

// Within is Measure of what is known to within bound: an AUC or AP has only the digits that the bound supports.
func Within(m eval.Metric, x, bound float64) string {
	if m.Ranks() {
		return m.Within(x, bound)
	}
	return Measure(m, x)
}

// Percent writes a fraction in percent; NaN is "none".
func Percent(x float64) string {
	if math.IsNaN(x) {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*x)
}

// Bytes writes a number of bytes with a decimal unit: 1 kB is 1000 bytes.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n), 0
	for x >= 999.5 && unit < 4 {
		x /= 1000
		unit++
	}
	digits := 0
	if x < 9.995 {
		digits = 2
	} else if x < 99.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, x, []string{"B", "kB", "MB", "GB", "TB"}[unit])
}
