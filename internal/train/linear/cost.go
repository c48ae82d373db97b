package linear

import (
	"fmt"
	"time"
)

// MaxComponents bounds the components of encoder pca.
const MaxComponents = 1 << 10

// MaxRidge bounds the columns of a closed form: the Gram matrix has their square of numbers.
const MaxRidge = 1 << 13

// What a solution may cost at each peer. gonum's products reach this rate on one core of a small server.
const (
	flopsPerSecond = 5e9
	longSolve      = 10 * time.Second
	longestSolve   = 10 * time.Minute
	manyBytes      = 32 << 20
)

// Cost is what a closed form takes at each peer whatever its rows are, known before anything is sent.
type Cost struct {
	what, instead string
	fault         error
	flops         float64
	sent          int64 // bytes of the peer's part of the sums
}

// RidgeCost returns the cost of a closed form with d columns, c outputs and `lambdas` penalties.
func RidgeCost(d, c, lambdas int) Cost {
	n, outputs := float64(d), float64(c)
	cost := Cost{what: fmt.Sprintf("a closed form with %d columns, %d outputs and %d penalties", d, c, lambdas),
		instead: "fewer random features or rounds",
		flops:   float64(lambdas) * (n*n*n/3 + 2*n*n*outputs), sent: 4 * (int64(d)*int64(d+1)/2 + int64(d)*int64(c))}
	if d > MaxRidge {
		cost.fault = fmt.Errorf("columns of a closed form must be at most %d (got %d): use fewer random "+
			"features or rounds", MaxRidge, d)
	}
	return cost
}

// ComponentsCost returns the cost of Components with f features, k components and the given passes. One more pass finds
// the peer's own components.
func ComponentsCost(f, k, passes int) Cost {
	rows, w := float64(f), float64(min(k+oversample, f))
	cost := Cost{what: fmt.Sprintf("encoder pca:%d over %d features", k, f), instead: "fewer components or passes",
		flops: float64(passes+1)*4*rows*w*w + 18*w*w*w + 4*rows*w*float64(k),
		sent:  4 * int64(w*(rows*float64(passes)+w))}
	if k > MaxComponents {
		cost.fault = fmt.Errorf("components must be at most %d with encoder pca (got %d): use fewer, or encoder raw",
			MaxComponents, k)
	}
	return cost
}

// took is an estimate. Its bound keeps the time of a refused solution within the range of a Duration.
func (c Cost) took() time.Duration {
	return time.Duration(min(c.flops/flopsPerSecond, 1e6) * float64(time.Second))
}

// Err returns an error if a solution would take longer than any site waits, else nil.
func (c Cost) Err() error {
	if c.fault != nil || c.took() <= longestSolve {
		return c.fault
	}
	return fmt.Errorf("%s would take about %s of one core at each peer, more than %s: use %s", c.what,
		c.took().Round(time.Second), longestSolve, c.instead)
}

// Warning returns the cost of a solution that takes long or sends much, or an empty text if it does neither.
func (c Cost) Warning() string {
	if c.took() < longSolve && c.sent < manyBytes {
		return ""
	}
	return fmt.Sprintf("%s takes about %s of one core at each peer, whose part of the sums has %d MB; "+
		"it takes less with %s", c.what, max(c.took().Round(time.Second), time.Second), (c.sent+5e5)/1e6, c.instead)
}
