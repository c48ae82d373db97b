package eval

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

const (
	// mostConfused is the most classes for a count of every pair.
	mostConfused = 50

	// CurveBins is the resolution of the rankings that a Sheet has.
	CurveBins = 100

	// reliabilityBins is the number of bins of expected calibration error, of equal width.
	reliabilityBins = 10

	// fine is the unit of probabilities and log-likelihoods that are summed as whole numbers: 2⁻¹⁶.
	fine = 1 << 16
)

// Sheet is the layout of what the rows of a set add to the metrics of a model, as whole numbers that peers sum exactly:
// rows, right ones, and the confusion matrix, or TP, FP and FN of each class with more than 50 classes or several a
// node; positives and negatives in bins of calibrated log-odds, for two classes, or with a Goal for each of several;
// reliability before and after calibration, for each class if a node may have several. Each row is rounded by itself,
// so the sums do not depend on which peer has which rows. For numbers the sheet has rows and sums of errors (numbers),
// which add up within the rounding of float64.
type Sheet struct {
	none           graph.Labels
	matrix         bool
	curves         int // rankings: of two classes 1, of several a node with a Goal one a class
	cells          int // of the matrix, or of the classes
	curveAt, trust int // where these begin
	// tables of reliability, before calibration and after: of several classes a node one a class, else one
	reliable int
	size     int
}

// NewSheet returns the sheet of rows labelled like labels, from which thresholds are chosen for g, the zero Goal being
// none.
func NewSheet(labels graph.Labels, g Goal) Sheet {
	c := labels.Classes
	if labels.Kind() == graph.Numbers {
		return Sheet{none: labels.Select(nil), size: 1 + c*sumsOf*RealLen}
	}
	s := Sheet{none: labels.Select(nil), matrix: !labels.Multi() && c <= mostConfused, cells: 3 * c}
	if !labels.Multi() && c == 2 || labels.Multi() && g != (Goal{}) {
		s.curves = curvesOf(labels)
	}
	if s.matrix {
		s.cells = c * c
	}
	s.curveAt = perRow + s.cells
	s.trust = s.curveAt + 2*CurveBins*s.curves
	if s.reliable = 1; labels.Multi() {
		s.reliable = c
	}
	s.size = s.trust + 2*3*reliabilityBins*s.reliable
	return s
}

// Size is how many numbers Write writes.
func (s Sheet) Size() int { return s.size }

// Wide reports whether number i of a Write may exceed the number of all rows.
func (s Sheet) Wide(i int) bool {
	if s.none.Kind() == graph.Numbers {
		return i%s.size > 0
	}
	k := i%s.size - s.trust
	return k >= 0 && k%3 == 2
}

// Write writes to v what the rows of logits (N×C), labelled by labels, add to the figures at those temperatures. A row
// without a label is left out.
func (s Sheet) Write(v []int64, logits mat.Dense, labels graph.Labels, temperatures Temperatures) {
	clear(v[:s.size])
	if s.none.Kind() == graph.Numbers {
		sums := countNumbers(logits, labels, nil)
		v[0] = sums.rows
		sums.write(v[1:], sumsOf)
		return
	}
	p := make([]float64, s.none.Classes)
	c := newCounts(s.none, 0, false)
	eachRow(logits, labels, nil, func(row []float32, class int, bits []uint8) {
		v[0]++
		said := decided(row, labels.Ordered)
		switch {
		case bits != nil:
			c.countBits(bits, row)
		case s.matrix:
			v[perRow+class*s.none.Classes+said]++
		default:
			c.countOne(class, said)
		}
		if class == said && bits == nil && s.matrix {
			v[1]++
		}
		for k := range s.curves {
			x := logOddsOf(row, k, temperatures, bits != nil)
			if c.first && bits == nil {
				x = -x
			}
			at := CurveBin(x)
			v[s.curveAt+2*(CurveBins*k+at)+side(c.positive(k, class, bits))]++
		}
		for k, t := range []Temperatures{{}, temperatures} {
			Probabilities(p, row, bits != nil, t)
			trust := v[s.trust+3*reliabilityBins*s.reliable*k:]
			if bits == nil {
				note(trust, p[said], class == said)
				continue
			}
			for j, x := range p {
				note(trust[3*reliabilityBins*j:], x, bits[j] != 0)
			}
		}
	})
	if !s.matrix {
		v[1] = c.n[1]
		copy(v[perRow:s.curveAt], c.n[perRow:])
	}
}

// note counts a decision of probability p, and whether it was right.
func note(trust []int64, p float64, right bool) {
	if !(p >= 0) {
		p = 0 // logits that are not numbers
	}
	t := trust[3*min(int(p*reliabilityBins), reliabilityBins-1):]
	t[0]++
	if right {
		t[1]++
	}
	t[2] += int64(math.RoundToEven(p * fine))
}

// Probabilities writes to dst the probabilities of a row of logits, [C], divided by their temperatures first: the
// softmax, or the sigmoid if a node may have several classes.
func Probabilities(dst []float64, row []float32, several bool, temperatures Temperatures) {
	top, sum := float64(slices.Max(row)), 0.0
	for k, x := range row {
		if several {
			dst[k] = 1 / (1 + math.Exp(-float64(x)/temperatures.Of(k)))
			continue
		}
		dst[k] = math.Exp((float64(x) - top) / temperatures.Of(k))
		sum += dst[k]
	}
	if !several {
		for k := range dst {
			dst[k] /= sum
		}
	}
}

// Cuts are the calibrated log-odds from which on classes are predicted: one number for two classes, the cut of class
// 1; [C] if a node may have several; none for the more probable class, or for each that is more probable than not.
type Cuts []float64

// Of(k) reports whether class k of a row of logits is predicted. There must be cuts.
func (c Cuts) Of(row []float32, k int, temperatures Temperatures) bool {
	if len(c) == 1 && len(row) == 2 {
		return (logOddsOf(row, 0, temperatures, false) >= c[0]) == (k == 1)
	}
	return logOddsOf(row, k, temperatures, true) >= c[k]
}

// Mirrored returns the cut of the other of two classes that predicts the same for the same rows.
func Mirrored(cut float64) float64 {
	return min(math.Nextafter(-cut, math.Inf(1)), math.MaxFloat64)
}

// Decided returns logits (N×C) whose predictions without cuts are the predictions of these cuts. Without cuts it
// returns logits unchanged.
func (c Cuts) Decided(logits mat.Dense, temperatures Temperatures) mat.Dense {
	if len(c) == 0 {
		return logits
	}
	out := mat.New(logits.Rows, logits.Cols)
	for i := range out.Rows {
		for k := range out.Cols {
			out.Set(i, k, -1)
			if c.Of(logits.Row(i), k, temperatures) {
				out.Set(i, k, 1)
			}
		}
	}
	return out
}

// logOddsOf returns the calibrated log-odds of ranking k: of class 1 of two, or of class k of several a node.
func logOddsOf(row []float32, k int, temperatures Temperatures, several bool) float64 {
	if several {
		return float64(row[k]) / temperatures.Of(k)
	}
	return (float64(row[1]) - float64(row[0])) / temperatures.Of(k)
}

// CurveEdge returns the least log-odds of a bin: equal widths of x/(2+|x|), which are as fine as bins of the
// probability at ½ and can tell apart the scores of a sure model. The first bin has no edge below it, one beyond the
// last none above.
func CurveEdge(bin int) float64 {
	u := 2*float64(bin)/CurveBins - 1
	switch {
	case u <= -1:
		return math.Inf(-1)
	case u >= 1:
		return math.Inf(1)
	}
	return 2 * u / (1 - math.Abs(u))
}

// CurveBin returns the bin of log-odds x. The bin of NaN is 0.
func CurveBin(x float64) int {
	return sort.Search(CurveBins-1, func(b int) bool { return !(CurveEdge(b+1) <= x) })
}

// Read returns the counts in a sum of Writes. Numbers that no rows give are an error.
func (s Sheet) Read(v []int64) (*Table, error) {
	if len(v) != s.size {
		return nil, fmt.Errorf("a sheet must have %d numbers (got %d)", s.size, len(v))
	}
	for i, n := range v {
		if n < 0 {
			return nil, fmt.Errorf("number %d of a sheet must be at least 0 (got %d)", i, n)
		}
	}
	if s.none.Kind() == graph.Numbers {
		n := readNumbers(v[1:], v[0], unitsOf(s.none), sumsOf)
		return &Table{numbers: &n}, n.check()
	}
	bins := 0
	if s.curves > 0 {
		bins = CurveBins
	}
	t := &Table{counts: newCounts(s.none, bins, s.matrix), multi: s.none.Multi()}
	n := t.counts.n
	n[0], n[1] = v[0], v[1]
	if s.matrix {
		for k := range s.none.Classes {
			t.Matrix = append(t.Matrix, slices.Clone(v[perRow+k*s.none.Classes:][:s.none.Classes]))
		}
		t.fromMatrix()
		if n[0] != v[0] || n[1] != v[1] {
			return nil, fmt.Errorf("a confusion matrix must have %d rows, %d of them right (got %d and %d)", v[0],
				v[1], n[0], n[1])
		}
	} else {
		copy(n[perRow:perRow+s.cells], v[perRow:s.curveAt])
	}
	if s.curves > 0 {
		copy(n[perRow+3*t.counts.classes:], v[s.curveAt:s.trust])
	}
	for k := range s.curves {
		all := int64(0)
		for _, x := range t.counts.curve(k) {
			all += x
		}
		if all != n[0] {
			return nil, fmt.Errorf("ranking %d must have %d rows (got %d)", k, n[0], all)
		}
	}
	for k := range 2 * s.reliable {
		trust, all := v[s.trust+3*reliabilityBins*k:][:3*reliabilityBins], int64(0)
		for b := 0; b < len(trust); b += 3 {
			all += trust[b]
		}
		if all != n[0] {
			return nil, fmt.Errorf("the probabilities of %d decisions must be counted (got %d)", n[0], all)
		}
	}
	after := s.trust + 3*reliabilityBins*s.reliable
	t.before, t.after = slices.Clone(v[s.trust:after]), slices.Clone(v[after:])
	return t, nil
}

// Table is what was counted of a set of rows.
type Table struct {
	Matrix        [][]int64 // [label][predicted] rows; nil with more than 50 classes, or several a node
	counts        MetricCounts
	before, after []int64 // reliability: decisions, right ones, sums of probabilities, of each bin
	multi         bool
	cut           bool     // of several classes a node: by cuts, so that what is right of single rows is not known
	numbers       *numbers // nil if labels are classes
}

// fromMatrix computes the other counts from the matrix.
func (t *Table) fromMatrix() {
	clear(t.counts.n[:perRow+3*t.counts.classes])
	clear(t.counts.far())
	for is, row := range t.Matrix {
		for said, n := range row {
			t.counts.n[0] += n
			t.counts.apart(is, said, n)
			if is == said {
				t.counts.n[1] += n
				t.counts.class(is)[0] += n
				continue
			}
			t.counts.class(said)[1] += n
			t.counts.class(is)[2] += n
		}
	}
}

// Rows returns the number of rows.
func (t *Table) Rows() int64 {
	if t.numbers != nil {
		return t.numbers.rows
	}
	return t.counts.n[0]
}

// Column returns metric m, of numbers, for column c, and its value if each row gets the mean of the training rows.
func (t *Table) Column(m Metric, c int) (x, baseline float64) {
	mean := t.numbers.baseline()
	x, _ = t.numbers.column(m, c)
	baseline, _ = mean.column(m, c)
	return x, baseline
}

// Class returns how many rows are of class k and were said to be, were wrongly said to be, and were not said to be.
func (t *Table) Class(k int) (right, wrong, missed int64) {
	c := t.counts.class(k)
	return c[0], c[1], c[2]
}

// Of(m) is metric m, or NaN if there are no rows or the sheet has no ranking of them.
func (t *Table) Of(m Metric) float64 {
	switch {
	case t.numbers != nil && m.OfNumbers():
		return t.numbers.of(m)
	case t.Rows() == 0 || m.Ranks() && t.counts.bins == 0 || t.cut && m == "accuracy" || t.numbers != nil ||
		m.OfNumbers() || m.OfOrder() && !t.counts.ordered:
		return math.NaN()
	}
	return m.Of(&t.counts)
}

// Bound returns how far metric m is at most from its value over the rows' own scores (NaN = the sheet has no ranking).
func (t *Table) Bound(m Metric) float64 {
	if m.Ranks() && t.counts.bins == 0 {
		return math.NaN()
	}
	return t.counts.bound(m)
}

// Baseline returns the value of m if each row gets the class that most training rows have, the first of equals. Rows
// with several classes get the classes that more than half of the training rows have; ordered classes under rank-mae
// get their median, and numbers the mean of the training rows. train has the training rows by class, labelled the
// number of rows with a label. A ranking without knowledge has an AUC of ½, and the share of positives as its AP. It is
// NaN if the counts do not suffice.
func (t *Table) Baseline(m Metric, train []float64, labelled float64) float64 {
	if t.numbers != nil {
		mean := t.numbers.baseline()
		return mean.of(m)
	}
	if t.Rows() == 0 || t.multi && m == "accuracy" {
		return math.NaN()
	}
	major, rows := slices.Index(train, slices.Max(train)), t.Rows()
	c := newCounts(graph.Labels{Classes: t.counts.classes}, 0, false)
	c.n[0] = rows
	positives, n := 0.0, 0.0
	for k := range c.classes {
		right, _, missed := t.Class(k)
		all := right + missed
		if all > 0 && (t.counts.curves > 1 || t.counts.positive(0, k, nil)) {
			positives, n = positives+float64(all)/float64(rows), n+1
		}
		if t.multi && 2*train[k] > labelled || !t.multi && k == major {
			copy(c.class(k), []int64{all, rows - all, 0})
			c.n[1] += all
		} else {
			c.class(k)[2] = all
		}
	}
	switch m {
	case "auc":
		return 0.5
	case "rank-mae":
		return t.byMedian(train)
	case "qwk":
		return 0
	case "ap":
		return positives / n
	}
	return m.Of(&c)
}

// Errors returns the expected calibration error before and after calibration: the mean, over ten bins of the
// probability of the predicted class, of the distance between that probability and the fraction that is right (Guo et
// al., On Calibration of Modern Neural Networks, ICML 2017, eq. 3). If a node may have several classes it is the mean
// over classes, so that an overconfident class does not offset an underconfident one. Without rows both are NaN.
func (t *Table) Errors() (before, after float64) { return expected(t.before), expected(t.after) }

// expected returns the calibration error of one or more tables of reliability.
func expected(trust []int64) float64 {
	apart, all := 0.0, 0.0
	for b := 0; b < len(trust); b += 3 {
		apart += math.Abs(float64(trust[b+1]) - float64(trust[b+2])/fine)
		all += float64(trust[b])
	}
	if all == 0 {
		return math.NaN()
	}
	return apart / all
}

// Cut returns the table where classes are predicted from those cuts on: of two class 1, of several a node each. Of
// several, the counts do not say which decisions belong to one row: such a table has no accuracy. Without cuts it is t.
func (t *Table) Cut(at Cuts) *Table {
	if len(at) == 0 {
		return t
	}
	cut := *t
	cut.counts.n = slices.Clone(t.counts.n)
	if t.multi {
		cut.cut = true
		for k, edge := range at {
			c := cut.counts.class(k)
			c[0], c[1], c[2] = t.from(k, CurveBin(edge))
		}
		return &cut
	}
	edge := at[0]
	if t.counts.first {
		edge = Mirrored(edge)
	}
	right, wrong, missed := t.from(0, CurveBin(edge))
	cut.Matrix = [][]int64{{t.Rows() - right - wrong - missed, wrong}, {missed, right}}
	if t.counts.first {
		cut.Matrix = [][]int64{{right, missed}, {wrong, t.Rows() - right - wrong - missed}}
	}
	cut.fromMatrix()
	return &cut
}

// from returns how many rows have the class of ranking k in that bin or a higher one, have it not, and have it in a
// lower one.
func (t *Table) from(k, bin int) (right, wrong, missed int64) {
	curve := t.counts.curve(k)
	for b := range CurveBins {
		if b < bin {
			missed += curve[2*b]
			continue
		}
		right, wrong = right+curve[2*b], wrong+curve[2*b+1]
	}
	return right, wrong, missed
}
