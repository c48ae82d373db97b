package eval

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/rng"
)

// resamples is how many random resamples Interval makes.
const resamples = 1000

// Interval returns the 95 % interval of m over random resamples of the counted rows, as many as were counted
// (percentile bootstrap; Efron and Tibshirani 1993, §13.3). A resample takes the cells of the confusion matrix from a
// multinomial distribution by key. Rankings have Metric.StandardError instead, and numbers the standard error from
// their sums. The interval covers chance in the choice of these rows, not in training. It is NaN if there are no rows,
// or if counts by class do not show which errors belong to one row.
func (t *Table) Interval(m Metric, key rng.Key) (low, high float64) {
	if t.numbers != nil {
		return t.numbers.interval(m)
	}
	var cells []int64
	drawn := Table{counts: MetricCounts{classes: t.counts.classes, curves: t.counts.curves, bins: t.counts.bins,
		ordered: t.counts.ordered, n: slices.Clone(t.counts.n)}}
	var set func([]int64)
	switch {
	case t.Rows() == 0 || t.multi && m != "accuracy" || t.cut || m.Ranks():
		return math.NaN(), math.NaN()
	case m == "accuracy": // it needs only the numbers of right and wrong rows
		cells = []int64{t.counts.n[1], t.Rows() - t.counts.n[1]}
		set = func(x []int64) { drawn.counts.n[1] = x[0] }
	case t.Matrix != nil:
		cells = slices.Concat(t.Matrix...)
		set = func(x []int64) {
			drawn.Matrix = drawn.Matrix[:0]
			for k := range t.counts.classes {
				drawn.Matrix = append(drawn.Matrix, x[k*t.counts.classes:][:t.counts.classes])
			}
			drawn.fromMatrix()
		}
	default:
		return math.NaN(), math.NaN()
	}
	all, x := make([]float64, resamples), make([]int64, len(cells))
	for b := range all {
		multinomial(x, cells, t.Rows(), &uniform{key: key.Fold(uint64(b))})
		set(x)
		all[b] = m.Of(&drawn.counts)
	}
	slices.Sort(all)
	return all[resamples/40], all[resamples-1-resamples/40]
}

// uniform is a sequence of uniform random numbers in [0, 1).
type uniform struct {
	key rng.Key
	at  uint64
}

func (s *uniform) next() float64 {
	s.at++
	return s.key.Float64(s.at)
}

// multinomial samples n rows with the cells' frequencies.
func multinomial(dst, cells []int64, n int64, u *uniform) {
	left := int64(0)
	for _, c := range cells {
		left += c
	}
	for k, c := range cells {
		dst[k] = 0
		if c > 0 && n > 0 {
			dst[k] = binomial(n, float64(c)/float64(left), u)
			n, left = n-dst[k], left-c
		}
	}
}

// binomial samples how many of n events with probability p occur. If few are expected, it samples the gaps between
// them, else it uses transformed rejection (Hörmann, The generation of binomial random variates, 1993, algorithm BTRS).
func binomial(n int64, p float64, u *uniform) int64 {
	switch {
	case p >= 1:
		return n
	case p > 0.5:
		return n - binomial(n, 1-p, u)
	case float64(n)*p < 10:
		k, at, scale := int64(0), 0.0, math.Log1p(-p)
		for {
			if at += math.Floor(math.Log(1-u.next())/scale) + 1; at > float64(n) {
				return k
			}
			k++
		}
	}
	m, q := float64(n), 1-p
	deviation := math.Sqrt(m * p * q)
	b := 1.15 + 2.53*deviation
	a := -0.0873 + 0.0248*b + 0.01*p
	center, alpha, odds := m*p+0.5, (2.83+5.1/b)*deviation, math.Log(p/q)
	mode := math.Floor((m + 1) * p)
	height := lgamma(mode+1) + lgamma(m-mode+1)
	for {
		x, v := u.next()-0.5, u.next()
		us := 0.5 - math.Abs(x)
		k := math.Floor((2*a/us+b)*x + center)
		if us >= 0.07 && v <= 0.92-4.2/b {
			return int64(k)
		}
		if k < 0 || k > m {
			continue
		}
		if math.Log(v*alpha/(a/(us*us)+b)) <= height-lgamma(k+1)-lgamma(m-k+1)+(k-mode)*odds {
			return int64(k)
		}
	}
}

// lgamma is the logarithm of the gamma function of x > 0.
func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}
