package eval

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Metric names what to measure: "accuracy", "micro-f1", "macro-f1", "auc" (area under the ROC
// curve) or "ap" (average precision). More is better in all of them, and all lie in [0, 1].
type Metric string

// Validate returns an error where m is none of the metrics.
func (m Metric) Validate() error {
	switch m {
	case "accuracy", "micro-f1", "macro-f1", "auc", "ap":
		return nil
	}
	return fmt.Errorf(`eval: metric must be "accuracy", "micro-f1", "macro-f1", "auc" or "ap" (got %q)`, string(m))
}

// Ranks reports whether m depends on the order of the scores, and so on bins.
func (m Metric) Ranks() bool { return m == "auc" || m == "ap" }

// Count counts what m needs: with DefaultBins where it ranks, without bins elsewhere. Arguments are
// those of Count.
func (m Metric) Count(scores mat.Dense, labels graph.Labels, rows []int32) Counts {
	if m.Ranks() {
		return CountBins(scores, labels, rows, DefaultBins)
	}
	return Count(scores, labels, rows)
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
	}
	panic(m.Validate())
}

// Exact returns m of rows that are all here: the ranking metrics from the scores themselves.
// Arguments are those of Count.
func (m Metric) Exact(scores mat.Dense, labels graph.Labels, rows []int32) float64 {
	if !m.Ranks() {
		c := Count(scores, labels, rows)
		return m.Of(&c)
	}
	c := newCounts(labels, 0)
	curves := c.curves
	odds, truths := make([][]float64, curves), make([][]uint8, curves)
	x := make([]float64, curves)
	eachRow(scores, labels, rows, func(row []float32, class int, bits []uint8) {
		logOdds(x, row, labels.Multi())
		for k := range curves {
			odds[k] = append(odds[k], x[k])
			truths[k] = append(truths[k], uint8(1-side(c.positive(k, class, bits))))
		}
	})
	var sum, n float64
	for k := range curves {
		pos := 0
		for _, t := range truths[k] {
			pos += int(t)
		}
		switch {
		case m == "ap" && pos > 0:
			sum += AP(odds[k], truths[k])
			n++
		case m == "auc" && pos > 0 && pos < len(truths[k]):
			sum += AUC(odds[k], truths[k])
			n++
		}
	}
	return ratio(sum, n)
}
