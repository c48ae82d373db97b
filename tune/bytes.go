package tune

import (
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/retexo/closedform"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/linear"
)

// Extent is what the bytes of runs and the choice among them depend on besides their configurations. Its sum over all
// peers is that of a contest.
type Extent struct {
	Peers  int64
	Nodes  int64   // owned
	Halo   int64   // rows received from other peers in one exchange
	Labels []int64 // labels.Numbers
	Barred []int64 // by candidate: peers that cannot train by it
}

// Numbers returns the values of e, to be summed over the peers.
func (e Extent) Numbers() []int64 {
	return slices.Concat([]int64{e.Peers, e.Nodes, e.Halo}, e.Labels, e.Barred)
}

// Of returns the extent of such values, of as many labels as e has.
func (e Extent) Of(sums []int64) Extent {
	return Extent{sums[0], sums[1], sums[2], sums[3:][:len(e.Labels)], sums[3+len(e.Labels):]}
}

const (
	// oversample is how many directions more than its components encoder pca sums (linear.Components).
	oversample = 8
	// framesOfSum is the most frames that a reduction sends from one peer to another: meta, floats and counts to their
	// owner, and the sums of both.
	framesOfSum = 5
	// columnSets is how many sets of columns a round of class means chooses from, at most.
	columnSets = 4
	// statement is the meta of a reduction of layer-wise training (wire.md), and greeting what a peer greets another with
	// and the rest that is sent once a run, at most.
	statement, greeting = 9, 4096
	// keysOfSums is what a peer sends to another to agree on the keys of secure sums, hybrid ones at most, and gridBytes the
	// bytes of a step's sum (package secagg).
	keysOfSums, gridBytes = 2700, 32
)

// Plus returns the sum of e and other.
func (e Extent) Plus(other Extent) Extent {
	sums := e.Numbers()
	for k, n := range other.Numbers() {
		sums[k] += n
	}
	return e.Of(sums)
}

// Counts returns the label counts of a run of that seed, where a node has one class or may have several (multi).
func (e Extent) Counts(multi bool, seed uint64) labels.Counts {
	sums := make([]float64, len(e.Labels))
	for k, n := range e.Labels {
		sums[k] = float64(n)
	}
	return labels.Read(sums, multi, seed)
}

// Limit returns the bytes that all peers of a run by c send at most, frames included: those of a run in which no patience
// ends a stage and no peer fails. secure says that sums are (package secagg).
func Limit(c retexo.Config, e Extent, secure bool) (int64, error) {
	if e.Peers < 2 {
		return 0, nil
	}
	m, err := c.NewModel()
	if err != nil {
		return 0, err
	}
	none := graph.Labels{Classes: c.Spec.Classes}
	if c.Spec.Task == "multi" {
		none.Bits = []uint8{}
	}
	metric := int64(eval.NewAccumulator(c.Metric, none, train.SelectionBins).Size())
	final := int64(eval.NewAccumulator(c.Metric, none, eval.DefaultBins).Size())
	t := tallyOf(e, secure)
	t.sum(0, int64(labels.Len(c.Spec.Classes)))
	if c.Inductive {
		t.rows(8)
	}
	first := 1
	switch enc := c.Spec.Encoder; enc.Kind {
	case "pca":
		w := int64(min(enc.Out+oversample, c.Spec.Features))
		for range c.PCAPasses {
			t.parts(int64(c.Spec.Features)*w, w, c.Sums)
		}
		t.parts(w*w, w, c.Sums)
		t.sum(0, 0)
	case "mlp":
		first = 0
	}
	for k := first; k <= len(c.Spec.Layers); k++ {
		t.stage(c, m, k, metric)
		t.sum(0, 2*final)
	}
	return t.total(), nil
}

// tally adds up bytes.
type tally struct {
	pairs, peers, halo, bytes int64
	secure                    bool
}

func tallyOf(e Extent, secure bool) tally {
	t := tally{pairs: e.Peers * (e.Peers - 1), peers: e.Peers, halo: e.Halo, secure: secure}
	if secure {
		t.bytes = t.pairs * keysOfSums
	}
	return t
}

// total returns the bytes with those of headers and greetings.
func (t *tally) total() int64 {
	return t.bytes + t.bytes/(1<<14) + t.pairs*greeting // a header in a frame of 256 KiB
}

// sum adds a reduction.
func (t *tally) sum(floats, counts int64) {
	if t.secure && floats > 0 { // in 64 bits, after a sum that finds the grid
		t.grid(1)
		floats, counts = 0, floats+counts
	}
	t.bytes += 2*(t.peers-1)*(4*floats+8*counts) + t.pairs*(framesOfSum*comm.HeaderLen+statement)
}

// parts adds a reduction of so many numbers in columns, or parts, that have a grid each, in the
// format of retexo.Config.Sums or Updates.
func (t *tally) parts(numbers, columns int64, format string) {
	if format == "" && !t.secure {
		t.sum(numbers, 0)
		return
	}
	width := map[string]int64{"": 4, "float32": 4, "int16": 2, "auto": 2, "int8": 1}[format]
	t.sum(0, 0)
	if t.secure {
		t.grid(columns)
	}
	t.bytes += 2*(t.peers-1)*(width*numbers+4) + t.pairs*(4*columns+framesOfSum*comm.HeaderLen)
}

// grid adds the sum that finds the steps of so many columns.
func (t *tally) grid(columns int64) {
	t.bytes += 2*(t.peers-1)*gridBytes*columns + t.pairs*framesOfSum*comm.HeaderLen
}

// rows adds an exchange of the halo's rows, each of so many bytes.
func (t *tally) rows(each int) {
	t.bytes += t.halo*int64(each) + t.pairs*(2*comm.HeaderLen+8)
}

// stage adds what stage k of a run by c sends while it is trained; a validation of it has so many counts.
func (t *tally) stage(c retexo.Config, m *nn.Model, k int, metric int64) {
	layer, classes := m.Encoder.Layer, int64(c.Spec.Classes)
	var width int64 // of the layer's input
	if k > 0 {
		spec := c.Spec.Layers[k-1]
		layer, width = m.Layers[k-1], int64(spec.In)
		if c.Neighbours > 0 {
			t.rows(4) // degrees of the sample
		}
		degrees := spec.Conv == "gcn" && k == 1 && c.Spec.Encoder.Kind == "raw" // beside rows that are sparse
		for hop := range max(spec.Hops, 1) {
			if degrees {
				t.rows(8) // of both views, if there are two
			}
			t.rows(c.Rows.RowLen(spec.In))
			if c.Inductive && k+hop > 1 || c.Neighbours > 0 && hop > 0 { // training sees other rows
				t.rows(c.Rows.RowLen(spec.In))
			}
		}
	}
	if c.Solver == "ridge" {
		d := 2*width + 1 // own row and aggregate
		if self, nbr, _ := layer.Affine(); self == nil || nbr == nil {
			d = width + 1
		}
		t.sum(d*(d+1)/2+d*classes, 0)
		t.sum(0, int64(len(c.Lambdas))*metric)
		return
	}
	params, trained := int64(0), layer.Params()
	if layer.Head != nil {
		trained = append(trained, layer.Head.Params()...)
	} else if k < len(c.Spec.Layers) { // a head of its own while it trains
		params = int64(layer.Spec.Out+1) * classes
	}
	for _, p := range trained {
		params += int64(len(p.Value.Data))
	}
	for range c.Rounds {
		t.parts(params, int64(len(trained)+2), c.Updates)
		t.sum(0, 2*eval.RealLen+metric)
	}
	t.sum(0, metric)
}

// crossing adds what peers ask of one another before the first hop of so many views, and makes t's halo what crosses then.
func (t *tally) crossing(c closedform.Config, views int64) {
	switch {
	case c.LeastInSum > 1:
		// A row is in at most one sum: five bytes for its place, four for a weight, five for the terms of a sum, and the
		// owner's answer.
		t.rows(15)
		t.bytes += t.pairs * (2*comm.HeaderLen + 16)
		t.halo /= int64(c.LeastInSum)
	case c.Exchange != "halo":
		// A cover is asked for only where the hops of the first two rounds repay it, in rows that do not cross.
		t.bytes += views * t.pairs * 2 * comm.HeaderLen
	}
}

// ClosedLimit is Limit of rounds of class means: that of all of them.
func ClosedLimit(c closedform.Config, e Extent, secure bool) int64 {
	if e.Peers < 2 {
		return 0
	}
	none := graph.Labels{Classes: c.Classes}
	if c.Task == "multi" {
		none.Bits = []uint8{}
	}
	metric := int64(eval.NewAccumulator(c.Metric, none, train.SelectionBins).Size())
	if c.Metric == "accuracy" {
		metric = 1
	}
	final := int64(eval.NewAccumulator(c.Metric, none, eval.DefaultBins).Size())
	classes, features, sums := int64(c.Classes), int64(c.Features), c.Sums
	if sums == "float32" {
		sums = ""
	} else if sums == closedform.Auto {
		sums = "int16"
	}
	views := 1
	if c.Inductive {
		views = 2
	}
	t := tallyOf(e, secure)
	t.sum(0, int64(labels.Len(c.Classes)))
	t.sum(2*features, 1) // statistics of the columns
	t.crossing(c, int64(views))
	if c.Inductive {
		t.rows(8)
	}
	if c.Components > 0 {
		w := int64(min(c.Components+oversample, c.Features))
		for range c.PCAPasses {
			t.parts(features*w, w, sums)
		}
		t.parts(w*w, w, sums)
	}
	spec := c.Layout(c.Residual(e.Counts(c.Task == "multi", c.Seed).Labelled, float64(e.Nodes)))
	columns := 1
	for r := range spec.Rounds {
		wide := spec.Width(c.Classes)
		t.parts(features*int64(wide), int64(wide), sums)
		t.sum(0, classes)
		t.sum(2*int64(wide), 0) // deviations
		for range views * spec.Hops {
			width := wide
			if r == 0 {
				width += c.Components
			}
			t.rows(c.Rows.RowLen(width))
			t.bytes += t.pairs * int64(4*width) // scales of columns
		}
		if r > 0 {
			for range views * spec.LogitHops {
				t.rows(c.Rows.RowLen(wide))
				t.bytes += t.pairs * 4 * int64(wide)
			}
		}
		added := spec.Columns(r, c.Classes)
		if columns += added; r == 0 {
			added++ // the constant
		}
		t.sum(int64(linear.PartLen(columns, added, c.Classes)), 0)
		if spec.Random > 0 {
			format := "int16"
			if sums == "" {
				format = ""
			}
			t.parts(int64(linear.PartLen(columns+spec.Random, spec.Random, c.Classes)), 1, format)
		}
		t.sum(0, columnSets*int64(len(c.Lambdas))*metric+1)
	}
	t.sum(0, 2*final)
	return t.total()
}
