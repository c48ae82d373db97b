package attack

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
)

// ownRounds is how many rounds a site trains an encoder mlp that it attacks by itself.
const ownRounds = 20

// checkHidden attacks hidden rows of an encoder that the site trains by itself.
func checkHidden(ctx context.Context, p plan.Plan, own *shard.Shard,
	nodes []int32) (func(int, *Recovery) error, error) {
	site, err := apart(own)
	if err != nil {
		return nil, err
	}
	p.Gradient().Layers, p.Gradient().Rounds = 1, min(p.Gradient().Rounds, ownRounds)
	model, err := train(ctx, p, site)
	if err != nil {
		return nil, err
	}
	c, err := p.Layerwise(own)
	if err != nil {
		return nil, err
	}
	rows, err := asReceived(model.Encoder.Encode(own.X.Select(nodes)).Dense, c.Rows)
	return func(i int, sum *Recovery) error {
		set := Unhidden(model.Encoder.Layer, rows.Row(i))
		sum.Score(own.X, nodes[i], Evenly(set))
		return nil
	}, err
}

// Unhidden returns the columns of a row x of zeros and equal values, given y, a multiple of ReLU(norm(x·w + b)), and
// the layer's parameters. Where y is positive, y/γ is a combination of the rows of w that x has, b, a constant (the
// mean that the norm takes out) and β/γ. The last three are projected out.
func Unhidden(l *nn.Layer, y []float32) []int32 {
	params := l.Params()
	w, b, gain, beta := params[0].Value, params[1].Value.Data, params[2].Value.Data, params[3].Value.Data
	var open []int
	for k, v := range y {
		if v > 0 && math.Abs(float64(gain[k])) > 1e-3 {
			open = append(open, k)
		}
	}
	if len(open) < 8 {
		return nil
	}
	m, target, unknown := mat.New(w.Rows, len(open)), mat.New(1, len(open)), mat.New(3, len(open))
	for t, k := range open {
		target.Set(0, t, y[k]/gain[k])
		unknown.Set(0, t, 1)
		unknown.Set(1, t, b[k])
		unknown.Set(2, t, beta[k]/gain[k])
		for j := range w.Rows {
			m.Set(j, t, w.At(j, k))
		}
	}
	without(target, unknown)
	without(m, unknown)
	x := lasso(m, target.Row(0))
	var set []int32
	for j, v := range x {
		if most := slices.Max(x); most > 0 && v > most/2 {
			set = append(set, int32(j))
		}
	}
	return set
}

// lasso returns the x ≥ 0 that minimises ½‖x·a − y‖² + λΣx by coordinate descent, λ falling to 10⁻⁵ of where x is 0.
func lasso(a mat.Dense, y []float32) []float64 {
	x, left := make([]float64, a.Rows), slices.Clone(y)
	square, lambda := make([]float64, a.Rows), 0.0
	for j := range x {
		square[j] = dot32(a.Row(j), a.Row(j))
		lambda = max(lambda, dot32(a.Row(j), left))
	}
	const steps, sweeps = 25, 8
	for range steps {
		lambda *= math.Pow(1e-5, 1.0/steps)
		for range sweeps {
			for j, old := range x {
				if square[j] == 0 {
					continue
				}
				x[j] = max(0, old+(dot32(a.Row(j), left)-lambda)/square[j])
				if d := float32(x[j] - old); d != 0 {
					for t, v := range a.Row(j) {
						left[t] -= d * v
					}
				}
			}
		}
	}
	return x
}

// without removes from each row of x its projection onto the span of the rows of u, which it orthogonalises.
func without(x, u mat.Dense) {
	for k := range u.Rows {
		if k > 0 {
			without(u.RowRange(k, k+1), u.RowRange(0, k))
		}
		square := dot32(u.Row(k), u.Row(k))
		for i := range x.Rows {
			if square > 0 {
				f := dot32(x.Row(i), u.Row(k)) / square
				for t, v := range u.Row(k) {
					x.Row(i)[t] -= float32(f * float64(v))
				}
			}
		}
	}
}

func dot32(a, b []float32) (sum float64) {
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}
