package figures

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Published are figures of one site's test nodes, sent to the others. They are so coarse that no node's label follows,
// even if the receiver knows all other labels.
type Published struct {
	Rank   int     `json:"rank"`
	Name   string  `json:"name"`
	Rows   int64   `json:"rows"`   // test nodes with a label, rounded down to tens
	Metric float64 `json:"metric"` // the run's, in hundredths, at least 2/rows and at most 1−2/rows
}

// The terms of the sum that decides whether figures are sent: each site adds 1 to publishing, to hidden or to neither;
// hidden sites with fewNodes test nodes or more add 1 to large, too.
const (
	publishing = iota
	hidden     // has test nodes, and sends nothing
	large
	standings
)

// fewNodes is how many test nodes a hidden site has at least to count as large, and of how many figures are rounded
// down.
const fewNodes = 10

// mayTell reports whether single sites may send their figures. The totals less the published figures are the hidden
// sites', and each of these knows its own part. So no site may be hidden, or at least leastHidden with more than a few
// nodes: then nobody sees a remainder of fewer than two sites.
func mayTell(of [standings]int64) bool {
	return of[publishing] > 0 && (of[hidden] == 0 || of[large] >= leastHidden)
}

// leastHidden is how many hidden sites there are at least, as parts of a sum.
const leastHidden = 3

// standing returns what this site adds to the sum.
func (e *Exchange) standing() (is [standings]int64, err error) {
	if e.logits.Empty() {
		return is, nil // it adds nothing to the totals either
	}
	n := 0
	for _, i := range e.Shard.NodesIn(graph.Test) {
		if e.Shard.Labels.Has(int(i)) {
			n++
		}
	}
	publishes := e.Publish > 0 && n >= e.Publish && !e.Metric.Plain() // hundredths are of metrics in [0, 1]
	if publishes {
		t, err := e.ownTest()
		if err != nil {
			return is, err
		}
		publishes = !e.thin(t)
	}
	switch {
	case publishes:
		is[publishing] = 1
	case n > 0:
		is[hidden] = 1
		if n >= fewNodes {
			is[large] = 1
		}
	}
	return is, nil
}

// ownTest counts the test nodes of this site, without calibration.
func (e *Exchange) ownTest() (*eval.Table, error) {
	sheet := eval.NewSheet(e.Shard.Labels, e.Goal)
	v := make([]int64, 2*sheet.Size())
	writeSheets(sheet, v, e.Shard, e.logits, eval.Temperatures{})
	_, test, err := tables(sheet, v)
	return test, err
}

// thin reports whether the metric of t depends on very few nodes, as a ranking does if a class has fewer than fewNodes,
// or none.
func (e *Exchange) thin(t *eval.Table) bool {
	if x := t.Of(e.Metric); math.IsNaN(x) || !e.Metric.Ranks() {
		return math.IsNaN(x)
	}
	for k := range e.Shard.Labels.Classes {
		if right, _, missed := t.Class(k); right+missed < fewNodes {
			return true
		}
	}
	return false
}

// tell sends the others this site's figures if it publishes any, and returns the figures of all sites that do. s are
// the sums over all sites.
func (e *Exchange) tell(ctx context.Context, g *comm.Group, s *sums, publishes bool) (all []Published, err error) {
	text := []byte{0}
	if publishes {
		f, err := e.figures(s)
		if err != nil {
			return nil, err
		}
		// By the thresholds and calibration of all sites, so that the published figures compare.
		_, counts := e.split(s)
		_, test, err := tables(eval.NewSheet(e.Shard.Labels, e.Goal), e.sheets)
		if err != nil {
			return nil, err
		}
		text = publishedOf(e.set(test, f, counts)).encode()
	}
	r, err := g.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Kind: ofSites}, Meta: text})
	if err != nil {
		return nil, err
	}
	for rank, b := range r.Meta {
		if len(b) < 2 {
			continue // it publishes nothing, or failed
		}
		one, err := readPublished(b)
		if err == nil && one.Rows > e.Shard.Nodes {
			err = fmt.Errorf("there must be at most %d test nodes (got %d)", e.Shard.Nodes, one.Rows)
		}
		if err != nil {
			return nil, comm.Refused("figures of site %d: %v", rank, err)
		}
		one.Rank = rank
		all = append(all, one)
	}
	return all, nil
}

// publishedOf rounds the figures of test nodes. The rounded metric means at least two right and two wrong nodes: 0 and
// 100 % would reveal which labels the model names right.
func publishedOf(s Set) Published {
	edge := 2 / float64(max(4, s.Rows))
	metric := min(max(float64(s.Metric), edge), 1-edge)
	return Published{Rows: s.Rows / fewNodes * fewNodes, Metric: math.Round(100*metric) / 100}
}

// PublishedBytes is how many bytes a site sends each other one to publish its figures.
const PublishedBytes = 5

// encode returns the bytes that are sent: tens of nodes, hundredths of the metric.
func (p Published) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(p.Rows/fewNodes))
	return append(b, byte(math.Round(100*p.Metric)))
}

// readPublished reads what encode writes.
func readPublished(b []byte) (p Published, err error) {
	if len(b) != PublishedBytes || b[4] > 100 {
		return p, fmt.Errorf("figures must be 5 bytes, the last at most 100 (got %x)", b)
	}
	return Published{Rows: fewNodes * int64(binary.LittleEndian.Uint32(b)), Metric: float64(b[4]) / 100}, nil
}

// The result is what this site has sent the others about itself (nil = nothing).
func (e *Exchange) Told() *Published {
	if e.sums == nil {
		return nil
	}
	for _, one := range e.sums.Told {
		if one.Rank == e.Shard.Rank {
			return &one
		}
	}
	return nil
}
