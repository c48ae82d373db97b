package poison

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// defence limits the effect of false means on a sum.
type defence struct {
	name string
	plan func(p *heddle.Plan) // sets the defence in a plan; nil: sum applies it
	// sum takes the sum of means. Number i of a mean is of column i modulo columns, and of weight[m] nodes; those of weight 0
	// do not count.
	sum func(to []float32, means [][]float32, weight [][]float64, columns int)
}

// defencesOf returns the defences that are tried on a plan.
func defencesOf(p heddle.Plan) []defence {
	all := []defence{{name: "norm clip", sum: clipped}, {name: "trimmed mean", sum: trimmed}, {name: "median", sum: median}}
	if p.InClosedForm() {
		return append(all, defence{name: "`clip_means`", plan: func(p *heddle.Plan) { p.ClipMeans = true }})
	}
	return append(all, defence{name: "centred clipping", sum: centred}, defence{name: "`update_norm: 0.1`", plan: func(p *heddle.Plan) { p.UpdateNorm = 0.1 }})
}

// mostLength is how many times the median length a mean may have.
const mostLength = 1.5

// clipped brings each column's means down to 1.5 times their median length.
func clipped(to []float32, means [][]float32, weight [][]float64, columns int) {
	for c := range columns {
		all := lengths(means, columns, c)
		var sorted []float64
		for m, l := range all {
			if weight[m][c] > 0 {
				sorted = append(sorted, l)
			}
		}
		if len(sorted) == 0 {
			continue
		}
		slices.Sort(sorted)
		shorten(to, means, weight, columns, c, all, mostLength*(sorted[(len(sorted)-1)/2]+sorted[len(sorted)/2])/2)
	}
}

// lengths returns the length of column c of each mean.
func lengths(means [][]float32, columns, c int) []float64 {
	length := make([]float64, len(means))
	for m, x := range means {
		for i := c; i < len(x); i += columns {
			length[m] += float64(x[i]) * float64(x[i])
		}
		length[m] = math.Sqrt(length[m])
	}
	return length
}

// shorten writes to column c the sum of the means, none of them longer than most.
func shorten(to []float32, means [][]float32, weight [][]float64, columns, c int, length []float64, most float64) {
	for i := c; i < len(to); i += columns {
		sum := 0.0
		for m, x := range means {
			sum += weight[m][c] * min(1, most/max(length[m], math.SmallestNonzeroFloat64)) * float64(x[i])
		}
		to[i] = float32(sum)
	}
}

// centred is the sum of comm.Contribution.Clipped.
func centred(to []float32, means [][]float32, weight [][]float64, columns int) {
	if err := comm.ClippedSum(context.Background(), to, means, weight, columns); err != nil {
		panic(err) // nothing ends that context
	}
}

func total(weight [][]float64, c int) (sum float64) {
	for _, w := range weight {
		sum += w[c]
	}
	return sum
}

// trimmed leaves out of each number a quarter of the weight at either end (Yin et al., ICML 2018), and median all but the middle.
func trimmed(to []float32, means [][]float32, weight [][]float64, columns int) {
	quantiles(to, means, weight, columns, 0.25)
}

func median(to []float32, means [][]float32, weight [][]float64, columns int) {
	quantiles(to, means, weight, columns, 0.5)
}

// quantiles writes the mean between the quantiles cut and 1 − cut of each number, by weight, times the weight of all.
func quantiles(to []float32, means [][]float32, weight [][]float64, columns int, cut float64) {
	order := make([]int, len(means))
	for i := range to {
		c := i % columns
		for m := range order {
			order[m] = m
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(means[a][i], means[b][i]) })
		all := total(weight, c)
		// for the median: a narrow interval around the middle
		low, high := min(cut, 0.5-1e-6)*all, max(1-cut, 0.5+1e-6)*all
		at, sum, counted := 0.0, 0.0, 0.0
		for _, m := range order {
			w := weight[m][c]
			if part := min(at+w, high) - max(at, low); part > 0 {
				sum, counted = sum+part*float64(means[m][i]), counted+part
			}
			at += w
		}
		if to[i] = 0; counted > 0 {
			to[i] = float32(sum / counted * all)
		}
	}
}

// meeting computes the robust sums of the members of a run, which are all in this process.
type meeting struct {
	shards []*shard.Shard
	by     defence

	mu    sync.Mutex
	full  *sync.Cond
	parts []comm.Contribution // of the current sum, by rank
	here  int
	sums  int
	sum   []float32
}

func meet(shards []*shard.Shard, by defence) *meeting {
	m := &meeting{shards: shards, by: by, parts: make([]comm.Contribution, len(shards))}
	m.full = sync.NewCond(&m.mu)
	return m
}

// defended is one member's reducer, whose class means and updates are summed by the defence.
type defended struct {
	comm.Reducer
	rank int
	at   *meeting
}

func (d defended) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind != "class means" && c.ID.Kind != "round" {
		return d.Reducer.Reduce(ctx, c)
	}
	own := comm.Contribution{ID: c.ID, Update: slices.Clone(c.Update), Columns: max(c.Columns, 1), Counts: slices.Clone(c.Counts)}
	said, err := d.Reducer.Reduce(ctx, c) // with its checks
	if err == nil {
		copy(c.Update, d.at.sumOf(d.rank, own))
	}
	return said, err
}

// sumOf returns the robust sum of the members' parts, of which own is that of rank. All members come, since the plain sum
// came to an end.
func (m *meeting) sumOf(rank int, own comm.Contribution) []float32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[rank] = own
	if m.here++; m.here == len(m.parts) {
		m.take()
		m.here, m.sums = 0, m.sums+1
		m.full.Broadcast()
		return m.sum
	}
	for sums := m.sums; sums == m.sums; {
		m.full.Wait()
	}
	return m.sum
}

func (m *meeting) take() {
	means, weight := make([][]float32, len(m.parts)), make([][]float64, len(m.parts))
	for rank, c := range m.parts {
		weight[rank] = m.weights(rank, c)
		means[rank] = make([]float32, len(c.Update))
		for i, v := range c.Update {
			if w := weight[rank][i%c.Columns]; w > 0 {
				means[rank][i] = float32(float64(v) / w)
			}
		}
	}
	m.sum = make([]float32, len(means[0]))
	m.by.sum(m.sum, means, weight, m.parts[0].Columns)
}

// weights returns the number of nodes of each column of a member's part: its counts, or its training nodes.
func (m *meeting) weights(rank int, c comm.Contribution) []float64 {
	if c.ID.Kind == "round" {
		return []float64{eval.Real(c.Counts[eval.RealLen:])}
	}
	weight := make([]float64, c.Columns)
	for k := range weight {
		if weight[k] = float64(len(m.shards[rank].NodesIn(graph.Train))); c.Counts != nil {
			weight[k] = float64(c.Counts[k])
		}
	}
	return weight
}
