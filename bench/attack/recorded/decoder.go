package recorded

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/mat"
)

// sight is what an attacker knows of single nodes, its own and the victim's: numbers, and a first estimate of the
// probability of each column.
type sight struct {
	*classAttack
	numbers  func(i int) []float64
	estimate func(i int) []float64 // [F] (nil = the row was withheld)
}

// received is the sight of a receiver of the rows of a run: all that is sent, and bestLinear.
func received(a *classAttack) sight {
	without := a.outside()
	return sight{a, a.crossed, func(i int) []float64 {
		k := a.values(i)
		if k == 0 {
			return nil
		}
		bag := a.Bag(i, k)
		switch {
		case bag != nil:
			return bestLinear(bag)
		case slices.ContainsFunc(a.told.Row(i), func(x float32) bool { return x != 0 }):
			return without.estimate(i) // only logits came, and no map to them is known
		}
		return nil
	}}
}

// outside is the sight of an attacker that receives no row: the number of values, the degree, and how often a node of
// the class has a column.
func (a *classAttack) outside() sight {
	return sight{a, func(i int) []float64 {
		k := math.Log1p(float64(a.values(i)))
		return []float64{k, k * k, 1 / (1 + k), math.Log1p(float64(a.degree[i]))}
	}, func(i int) []float64 {
		p := make([]float64, a.Prior.Cols)
		for j, v := range a.Prior.Row(int(a.Class[i])) {
			p[j] = float64(v)
		}
		return p
	}}
}

// crossed returns all that is sent of node i, as if each of its values were 1.
func (a *classAttack) crossed(i int) []float64 {
	scale := 1 / a.Value(max(a.values(i), 1))
	if a.Factor != nil {
		scale /= a.Factor[i]
	}
	x := make([]float64, a.told.Cols)
	for t, v := range a.told.Row(i) {
		x[t] = scale * float64(v)
	}
	return x
}

// decoder is what a member learns from its own nodes, whose features it has: how much likelier a column is than a first
// estimate, given the numbers of a node. Columns of real data depend on one another, and rows of later hops describe
// neighbours, which are alike.
type decoder struct {
	weight mat.Dense // D×F
	centre mat.Dense // C×D: mean numbers of the nodes of each class
	scale  []float64 // [D] by which numbers are multiplied
}

// penalties are the decoder's ridge penalties, by its number of nodes; the last one leaves the first estimate as it is.
var penalties = []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 1e6}

// judged is the number of nodes by which a penalty is chosen.
const judged = 200

// learn fits a decoder to the attacker's own nodes. Half of them choose the penalty.
func learn(ctx context.Context, own sight) (*decoder, error) {
	var fit, judge []int
	for i := range own.Nodes {
		if i%2 == 0 {
			fit = append(fit, i)
		} else {
			judge = append(judge, i)
		}
	}
	half := own.examples(fit)
	var all []*decoder
	for _, penalty := range penalties {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all = append(all, half.solve(penalty))
	}
	hits := make([]int, len(all))
	for _, i := range judge[:min(len(judge), judged)] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		estimate := own.estimate(i)
		for k, d := range all {
			hits[k] += own.hits(i, d.improve(slices.Clone(estimate), own, i))
		}
	}
	best, most := penalties[len(penalties)-1], -1
	for k, n := range hits {
		if n > most {
			best, most = penalties[k], n
		}
	}
	return own.examples(append(fit, judge...)).solve(best), nil
}

// guess returns the likeliest columns of node i, as many as the node has; none if its row was withheld.
func (d *decoder) guess(of sight, i int) []int32 { return d.improve(of.estimate(i), of, i) }

// improve is guess by a first estimate, which it changes.
func (d *decoder) improve(estimate []float64, of sight, i int) []int32 {
	for t, v := range d.input(of, i) {
		for j, w := range d.weight.Row(t)[:len(estimate)] {
			estimate[j] += v * float64(w)
		}
	}
	return likeliest(estimate, of.values(i))
}

// input returns the numbers of node i, less the mean of the class and scaled.
func (d *decoder) input(of sight, i int) []float64 {
	x := of.numbers(i)
	for t := range x {
		x[t] -= float64(d.centre.At(int(of.Class[i]), t))
		if d.scale != nil {
			x[t] *= d.scale[t]
		}
	}
	return x
}

// examples are sums over an attacker's own nodes.
type examples struct {
	decoder
	gram  []float64 // D×D of the inputs
	cross mat.Dense // D×F of the inputs and of what the first estimate leaves
	n     float64
}

// examples sums up nodes.
func (s sight) examples(nodes []int) *examples {
	d, f, classes := len(s.numbers(nodes[0])), s.Raw.Cols(), s.Prior.Rows
	e := &examples{gram: make([]float64, d*d), cross: mat.New(d, f)}
	e.centre, e.scale = mat.New(classes, d), slices.Repeat([]float64{1}, d)
	count := make([]float32, classes)
	for _, i := range nodes {
		c := s.Class[i]
		count[c]++
		for t, v := range s.numbers(i) {
			e.centre.Set(int(c), t, e.centre.At(int(c), t)+float32(v))
		}
	}
	for c, n := range count {
		for t := range d {
			e.centre.Set(c, t, e.centre.At(c, t)/max(n, 1))
		}
	}
	square := make([]float64, d)
	for _, i := range nodes {
		for t, v := range e.input(s, i) {
			square[t] += v * v / float64(len(nodes))
		}
	}
	for t, v := range square {
		e.scale[t] = 1 / math.Sqrt(max(v, 1e-12))
	}
	for _, i := range nodes {
		left := s.estimate(i)
		if left == nil {
			continue
		}
		e.n++
		for j := range left {
			left[j] = -left[j]
		}
		col, _ := attack.NonZeros(s.Raw, s.Nodes[i])
		for _, j := range col {
			left[j]++
		}
		x := e.input(s, i)
		for t, v := range x {
			row := e.cross.Row(t)
			for j, l := range left {
				row[j] += float32(v * l)
			}
			for u, w := range x {
				e.gram[t*d+u] += v * w
			}
		}
	}
	return e
}

// solve fits a decoder by ridge regression.
func (e *examples) solve(penalty float64) *decoder {
	d := len(e.scale)
	out := e.decoder
	out.weight = mat.New(d, e.cross.Cols)
	if e.n == 0 {
		return &out
	}
	g := slices.Clone(e.gram)
	for t := range d {
		g[t*d+t] += penalty * e.n
	}
	attack.FactorLower(g, d)
	for t := range d {
		unit := make([]float64, d)
		unit[t] = 1
		attack.Substitute(g, unit)
		row := out.weight.Row(t)
		for s, w := range unit {
			for j, v := range e.cross.Row(s) {
				row[j] += float32(w) * v
			}
		}
	}
	return &out
}
