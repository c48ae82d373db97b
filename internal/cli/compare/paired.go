package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
)

// spread is a figure over several runs.
type spread struct {
	Mean      float64  `json:"mean"`
	Deviation *float64 `json:"deviation"` // between runs; null: there is one run
}

// gain is by how much joining is ahead, with its 95 % interval.
type gain struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// spreadOf returns mean and sample deviation of x, of at least one run.
func spreadOf(x []float64) spread {
	mean, deviation := cli.Spread(x)
	return spread{mean, cli.Number(deviation)}
}

// difference is what two ways of one run differ by on the same test nodes.
type difference struct {
	value float64
	error float64 // standard error: another sample of test nodes would give another difference
}

// gainOf returns the mean of the differences of all runs with a 95 % interval: Student's t over the runs. If all runs
// have the same test nodes, or there is only one run, the choice of these nodes adds 1.96 standard errors, in
// quadrature.
func gainOf(all []difference, sameNodes bool) gain {
	values, nodes := make([]float64, len(all)), 0.0
	for k, d := range all {
		values[k] = d.value
		nodes += d.error / float64(len(all))
	}
	mean, deviation := cli.Spread(values)
	half := 0.0
	if len(all) > 1 {
		half = halfInterval(len(all), deviation)
	}
	if sameNodes || len(all) == 1 {
		half = math.Hypot(half, 1.96*nodes)
	}
	return gain{mean, mean - half, mean + half}
}

// halfInterval is half the 95 % interval of the mean of n runs, by Student's t.
func halfInterval(n int, deviation float64) float64 {
	x := mathext.InvRegIncBeta(float64(n-1)/2, 0.5, 0.05)
	return deviation * math.Sqrt((1-x)/x*float64(n-1)/float64(n))
}

// part has one model's logits for the test nodes of one site: the same nodes in the same order for every way.
type part = eval.Scored

// Most samples of the bootstrap, and about how many logits are read for all of them at most.
const (
	samples = 100
	effort  = 2e8
)

// differenceOf compares two models on the same test nodes, of at least one site. The standard error comes from a
// bootstrap (Efron, Annals of Statistics 7, 1979), which samples nodes with replacement, within each site, by key.
func differenceOf(metric eval.Metric, a, b []part, key rng.Key) difference {
	d := difference{value: metric.Pooled(a...) - metric.Pooled(b...)}
	size := 0
	for _, p := range a {
		size += len(p.Rows) * max(1, p.Scores.Cols)
	}
	n := min(samples, max(25, int(effort/float64(2*max(1, size)))))
	sampled := make([]float64, 0, n)
	for k := range n {
		ours, theirs := slices.Clone(a), slices.Clone(b)
		for site, p := range a {
			one, other := []int32{}, []int32{} // nil would mean every row
			key := key.Fold(uint64(k)).Fold(uint64(site))
			for i := range p.Rows {
				j := int(key.Uint64(uint64(i)) % uint64(len(p.Rows)))
				one, other = append(one, p.Rows[j]), append(other, b[site].Rows[j])
			}
			ours[site].Rows, theirs[site].Rows = one, other
		}
		if x := metric.Pooled(ours...) - metric.Pooled(theirs...); !math.IsNaN(x) { // a sample may lack a class
			sampled = append(sampled, x)
		}
	}
	if len(sampled) > 1 {
		_, d.error = cli.Spread(sampled)
	}
	return d
}
