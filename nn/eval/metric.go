package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
)

// Metric names what to measure.
//
// For classes: "accuracy", "micro-f1", "macro-f1", "auc" (area under the ROC curve) or "ap" (average precision), all in
// [0, 1]; more is better. For classes in order: "rank-mae" (by how many ranks a prediction is off, on average; less is
// better) or "qwk" (quadratic weighted kappa, at most 1). For numbers: "r2" (the share of the variance that is
// explained, at most 1), or, in the units of the data, "mae" (mean absolute error) or "rmse" (root of the mean squared
// error); less is better for both. Several columns count by their mean. For links: "mrr" (mean reciprocal rank of a
// known link among random pairs), "hits@10" (share of the known links of rank 10 or better) or "auc", all in [0, 1].
type Metric string

// Auto is AUC if the rarer of two classes has under a quarter of the training labels, else accuracy
// (labels.Counts.Metric). What is sent for AUC is an upper bound.
const Auto Metric = "auto"

// Validate returns an error if m is none of the metrics.
func (m Metric) Validate() error {
	switch m {
	case "accuracy", "micro-f1", "macro-f1", "auc", "ap":
		return nil
	}
	if m.OfNumbers() || m.OfLinks() || m.OfOrder() {
		return nil
	}
	return fmt.Errorf(
		`metric must be "accuracy", "micro-f1", "macro-f1", "auc" or "ap", of classes in order "rank-mae" or "qwk", of numbers "r2", "mae" or "rmse", or of links "mrr" or "hits@10" (got %q)`, string(m))
}

// OfNumbers reports whether m measures predictions of numbers.
func (m Metric) OfNumbers() bool { return m == "r2" || m == "mae" || m == "rmse" }

// Fits returns an error unless m measures labels of kind k.
func (m Metric) Fits(k graph.TargetKind) error {
	if m == Auto && k == graph.Single {
		return nil
	}
	if err := m.Validate(); err != nil {
		return err
	}
	if k == graph.Numbers != m.OfNumbers() || k == graph.Links != (m.OfLinks() || k == graph.Links && m == "auc") {
		names := "accuracy, micro-f1, macro-f1, auc, ap, rank-mae or qwk where nodes have classes"
		switch k {
		case graph.Numbers:
			names = "r2, mae or rmse where nodes have numbers"
		case graph.Links:
			names = "mrr, hits@10 or auc for links"
		}
		return fmt.Errorf("metric must be %s (got %s)", names, m)
	}
	if k == graph.Several && m.OfOrder() {
		return fmt.Errorf("metric must be accuracy, micro-f1, macro-f1, auc or ap where a node may have "+
			"several classes (got %s)", m)
	}
	return nil
}

// OfLinks reports whether m measures nothing but ranks of links.
func (m Metric) OfLinks() bool { return m == "mrr" || m.hits() > 0 }

// hits returns K of a "hits@K", or 0 if m is another metric.
func (m Metric) hits() int {
	text, _ := strings.CutPrefix(string(m), "hits@")
	k, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(Hits[:], k) {
		return 0
	}
	return k
}

// Gain returns by how much a is better than b.
func (m Metric) Gain(a, b float64) float64 {
	if m.OfNumbers() && m != "r2" || m == "rank-mae" {
		return b - a
	}
	return a - b
}

// StandardError returns about the standard error of m, which is x over the given number of rows. AUC and AP need sides,
// the positives and negatives of each ranking: the error of AUC follows Hanley and McNeil (Radiology 143, 1982), the
// error of AP is computed as for a fraction of the positives. The rankings of several classes count as independent.
func (m Metric) StandardError(x, rows float64, sides ...[2]float64) float64 {
	if m.Ranks() && len(sides) > 0 {
		sum, n := 0.0, 0.0
		for _, s := range sides {
			p, q := s[0], s[1]
			x := x
			if x == 0 || x == 1 { // as if one positive more ranked by chance: a few right ones are no proof
				x = (x*p + 0.5) / (p + 1)
			}
			v := x * (1 - x)
			if m == "auc" {
				v = (v + (p-1)*(x/(2-x)-x*x) + (q-1)*(2*x*x/(1+x)-x*x)) / q
			}
			if v /= p; p > 0 && q > 0 {
				sum, n = sum+max(v, 0), n+1
			}
		}
		return math.Sqrt(sum) / n
	}
	switch {
	case m == "r2": // of jointly normal numbers and predictions (Olkin and Finn, Psychological Bulletin 1995)
		return math.Sqrt(max(4*x*(1-x)*(1-x)/rows, 0))
	case m == "qwk": // as a correlation
		return (1 - x*x) / math.Sqrt(rows)
	case m == "rmse": // of normal errors
		return x / math.Sqrt(2*rows)
	case m.OfNumbers() || m == "rank-mae":
		return x * math.Sqrt((math.Pi/2-1)/rows)
	}
	return math.Sqrt(max(x*(1-x), 0) / rows)
}

// Text returns x as it is shown: a percentage for classes, else a number. NaN is "undefined" for a ranking of nodes
// that all have one class, and "–" if there is nothing to measure.
func (m Metric) Text(x float64) string {
	switch {
	case x != x && m.Ranks():
		return "undefined"
	case x != x:
		return "–"
	case !m.Plain():
		return fmt.Sprintf("%.2f %%", 100*x)
	case m == "r2" || m == "qwk":
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// Within is Text of an AUC or AP that is known to within bound: only the digits that the bound supports, or a range if
// it is over half a percent. If bound is NaN it is unknown, and whole percents are shown.
func (m Metric) Within(x, bound float64) string {
	if x != x || !m.Ranks() {
		return m.Text(x)
	}
	digits := 2
	for digits > 0 && !(100*bound <= 0.5*math.Pow10(-digits)) {
		digits--
	}
	if 100*bound > 0.5 {
		return fmt.Sprintf("%.0f to %.0f %%", math.Floor(100*max(x-bound, 0)), math.Ceil(100*min(x+bound, 1)))
	}
	return fmt.Sprintf("%.*f %%", digits, 100*x)
}

// Ranks reports whether m depends on the order of the scores, and so on bins.
func (m Metric) Ranks() bool { return m == "auc" || m == "ap" || m == Auto }

// Of(m) is m over the rows that c counted.
func (m Metric) Of(c *MetricCounts) float64 {
	switch m {
	case "accuracy", Auto:
		return c.Accuracy()
	case "micro-f1":
		return c.MicroF1()
	case "macro-f1":
		return c.MacroF1()
	case "auc":
		return c.AUC()
	case "ap":
		return c.AP()
	case "rank-mae":
		return c.RankMAE()
	case "qwk":
		return c.QWK()
	}
	if c.each > 0 && m.OfNumbers() {
		n := readNumbers(c.n[perRow:], c.n[0], c.unit, c.each)
		return n.of(m)
	}
	panic(m.Fits(graph.Single))
}
