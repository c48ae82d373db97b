package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
)

// Metric names what to measure. Of classes: "accuracy", "micro-f1", "macro-f1", "auc" (area under the ROC curve) or "ap"
// (average precision); all lie in [0, 1], and more is better. Of classes in order: "rank-mae" (by how many ranks a prediction
// is off, on average; less is better) or "qwk" (quadratic weighted kappa, at most 1). Of numbers: "r2" (the share of the variance that is explained,
// at most 1), or, in the units of the data, "mae" (mean absolute error) or "rmse" (root of the mean squared error), of which less is
// better; of several columns their mean. Of links: "mrr" (mean reciprocal rank of a known link among drawn pairs), "hits@10" (share of the known
// links of at most that rank) or "auc"; all lie in [0, 1].
type Metric string

// Validate returns an error where m is none of the metrics.
func (m Metric) Validate() error {
	switch m {
	case "accuracy", "micro-f1", "macro-f1", "auc", "ap":
		return nil
	}
	if m.OfNumbers() || m.OfLinks() || m.OfOrder() {
		return nil
	}
	return fmt.Errorf(`eval: metric must be "accuracy", "micro-f1", "macro-f1", "auc" or "ap", of classes in order "rank-mae" or "qwk", of numbers "r2", "mae" or "rmse", or of links "mrr" or "hits@10" (got %q)`, string(m))
}

// OfNumbers reports whether m measures predictions of numbers.
func (m Metric) OfNumbers() bool { return m == "r2" || m == "mae" || m == "rmse" }

// Fits returns an error unless m measures labels of kind k.
func (m Metric) Fits(k target.Kind) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if k == target.Numbers != m.OfNumbers() || k == target.Links != (m.OfLinks() || k == target.Links && m == "auc") {
		names := "accuracy, micro-f1, macro-f1, auc, ap, rank-mae or qwk where nodes have classes"
		switch k {
		case target.Numbers:
			names = "r2, mae or rmse where nodes have numbers"
		case target.Links:
			names = "mrr, hits@10 or auc for task links"
		}
		return fmt.Errorf("metric must be %s (got %s)", names, m)
	}
	if k == target.Several && m.OfOrder() {
		return fmt.Errorf("metric must be accuracy, micro-f1, macro-f1, auc or ap where a node may have several classes (got %s)", m)
	}
	return nil
}

// OfLinks reports whether m measures nothing but ranks of links.
func (m Metric) OfLinks() bool { return m == "mrr" || m.hits() > 0 }

// hits returns K of a "hits@K"; 0 where m is another metric.
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

// StandardError returns about that of m over so many rows, where m is x.
func (m Metric) StandardError(x, rows float64) float64 {
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

// Strongest returns the last of the penalties, which ascend, whose metric is within half a standard error of the best:
// a difference that n labels cannot tell is better spent on a simpler model (after the one-standard-error rule of
// Breiman, Friedman, Olshen and Stone 1984, §3.4.3). Without validation labels (NaN) it is the one in the middle.
func (m Metric) Strongest(vals []float64, n float64) int {
	best := vals[0]
	for _, v := range vals {
		if best == best && !(m.Gain(v, best) < 0) { // NaN where one is
			best = v
		}
	}
	if best != best {
		return len(vals) / 2
	}
	margin := m.StandardError(best, n) / 2
	choice := 0
	for i, v := range vals {
		if m.Gain(v, best) >= -margin {
			choice = i
		}
	}
	return choice
}

// Text returns x as it is shown: a percentage of classes, else a number; "–" where there is nothing to measure.
func (m Metric) Text(x float64) string {
	switch {
	case x != x:
		return "–"
	case !m.Plain():
		return fmt.Sprintf("%.2f %%", 100*x)
	case m == "r2" || m == "qwk":
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// Ranks reports whether m depends on the order of the scores, and so on bins.
func (m Metric) Ranks() bool { return m == "auc" || m == "ap" }

// Count counts what m needs: with DefaultBins where it ranks, without bins elsewhere. Arguments are
// those of Count.
func (m Metric) Count(scores mat.Dense, labels graph.Labels, rows []int32) Counts {
	if m.Ranks() {
		return CountBins(scores, labels, rows, DefaultBins)
	}
	return count(scores, labels, rows, 0, nil, m.OfOrder())
}

// Of returns m of what was counted.
func (m Metric) Of(c *Counts) float64 {
	switch m {
	case "accuracy":
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
	panic(m.Fits(target.Single))
}
