package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// DecoderSpec describes how the rows of two nodes give the score of the pair under a relation. Letters: N rows, D
// columns, R relations, P pairs. Kind is one of
//
//	dot       Σ u∘v, the same for all relations (Kipf and Welling, Variational Graph Auto-Encoders, 2016)
//	distmult  Σ u∘w_r∘v, with a vector for each relation (Yang et al., ICLR 2015)
//	mlp       a hidden layer and an output over u∘w_r∘v (He et al., Neural Collaborative Filtering, 2017, of GMF)
//
// All of them give (u, v) and (v, u) the same score.
type DecoderSpec struct {
	Kind      string   `json:"kind"`
	Width     int      `json:"width"`            // D
	Relations []string `json:"relations"`        // [R] whose links are scored; one empty name: edges without types
	Hidden    int      `json:"hidden,omitempty"` // mlp: width of its hidden layer
}

// decoderKinds are the values of DecoderSpec.Kind.
var decoderKinds = []string{"dot", "distmult", "mlp"}

// Validate returns the first fault of s, or nil.
func (s DecoderSpec) Validate() error {
	switch {
	case !slices.Contains(decoderKinds, s.Kind):
		return fmt.Errorf("kind must be one of %q (got %q)", decoderKinds, s.Kind)
	case s.Width < 1 || s.Width > maxWidth:
		return fmt.Errorf("width must be 1 to %d (got %d)", maxWidth, s.Width)
	case len(s.Relations) < 1 || len(s.Relations) > 1<<16:
		return fmt.Errorf("relations must be 1 to %d (got %d)", 1<<16, len(s.Relations))
	case s.Kind == "mlp" && (s.Hidden < 1 || s.Hidden > maxWidth):
		return fmt.Errorf("hidden must be 1 to %d for mlp (got %d)", maxWidth, s.Hidden)
	case s.Kind != "mlp" && s.Hidden != 0:
		return fmt.Errorf("hidden must be 0 for %s (got %d)", s.Kind, s.Hidden)
	}
	return nil
}

// Pair is a pair of rows of Z and a relation, an index of the DecoderSpec's.
type Pair struct{ U, V, Relation int32 }

// Decoder scores pairs. Parameters are nil for kinds without them: an inner product has nothing to learn.
type Decoder struct {
	Spec     DecoderSpec
	relation *tape.Param   // R×D; nil for dot
	mlp      tape.Operator // D → Hidden → 1; nil except for mlp
}

// NewDecoder returns the decoder that s describes with random parameters by key; relations begin as inner products.
func NewDecoder(s DecoderSpec, key rng.Key) (*Decoder, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	d := &Decoder{Spec: s}
	if s.Kind == "dot" {
		return d, nil
	}
	d.relation = tape.NewParam("decoder.relation", len(s.Relations), s.Width, 1)
	if s.Kind == "mlp" {
		d.mlp = tape.NewHead("decoder.mlp", s.Width, []int{s.Hidden, 1}, 0, key)
	}
	return d, nil
}

// Params returns the parameters under unique names.
func (d *Decoder) Params() (all []*tape.Param) {
	if d.relation != nil {
		all = append(all, d.relation)
	}
	if d.mlp != nil {
		all = append(all, d.mlp.Params()...)
	}
	return all
}

// pairBlock is how many pairs are scored at once, which bounds the memory.
const pairBlock = 4096

// Scores returns the score of each pair of rows of z, [P]: the log-odds that it is a link.
func (d *Decoder) Scores(z mat.Dense, of []Pair) []float32 {
	out := make([]float32, len(of))
	memory := tape.NewInference()
	for lo := 0; lo < len(of); lo += pairBlock {
		memory.Reset()
		hi := min(lo+pairBlock, len(of))
		d.forward(out[lo:hi], z, of[lo:hi], memory)
	}
	return out
}

// forward writes the scores of some pairs and keeps the inputs of backward. For mlp it returns the rows u∘w∘v.
func (d *Decoder) forward(out []float32, z mat.Dense, of []Pair, t *tape.Tape) {
	if d.relation == nil {
		for k, p := range of {
			out[k] = kernels.Dot(z.Row(int(p.U)), z.Row(int(p.V)))
		}
		return
	}
	x := t.Raw(len(of), d.Spec.Width)
	for k, p := range of {
		u, v, w, y := z.Row(int(p.U)), z.Row(int(p.V)), d.relation.Value.Row(int(p.Relation)), x.Row(k)
		if d.mlp == nil {
			for c := range y {
				y[c] = u[c] * v[c]
			}
			out[k] = kernels.Dot(y, w)
			continue
		}
		for c := range y {
			y[c] = u[c] * v[c] * w[c]
		}
	}
	if d.mlp != nil {
		d.mlp.Forward(mat.View(len(of), 1, out), x, t)
	}
}

// backward adds to dz, of z's shape, and to the parameters' gradients. ds is the gradient of the scores that forward
// wrote last for these pairs.
func (d *Decoder) backward(dz mat.Dense, ds []float32, z mat.Dense, of []Pair, t *tape.Tape) {
	var dx mat.Dense
	if d.mlp != nil {
		dx = t.Scratch(len(of), d.Spec.Width)
		d.mlp.Backward(dx, mat.View(len(of), 1, ds), t)
	}
	for k, p := range of {
		u, v := z.Row(int(p.U)), z.Row(int(p.V))
		du, dv := dz.Row(int(p.U)), dz.Row(int(p.V))
		if d.relation == nil {
			kernels.Axpy(ds[k], v, du)
			kernels.Axpy(ds[k], u, dv)
			continue
		}
		w, dw := d.relation.Value.Row(int(p.Relation)), d.relation.Grad.Row(int(p.Relation))
		for c := range w {
			g := ds[k]
			if d.mlp != nil {
				g = dx.Row(k)[c]
			}
			uc, vc := u[c], v[c] // u and v may be one row
			du[c] += g * w[c] * vc
			dv[c] += g * w[c] * uc
			dw[c] += g * uc * vc
		}
	}
}

// BestScores returns the indices of the k highest scores, highest first; among equals the first.
func BestScores(scores []float32, k int) (top []int) {
	for at, s := range scores {
		if len(top) == k && !(s > scores[top[k-1]]) {
			continue
		}
		where, _ := slices.BinarySearchFunc(top, s, func(other int, s float32) int {
			if scores[other] >= s {
				return -1
			}
			return 1
		})
		if top = slices.Insert(top, where, at); len(top) > k {
			top = top[:k]
		}
	}
	return top
}

// PairGroups are known pairs, each followed by Negatives random ones that count as no links: 1+Negatives pairs a group.
type PairGroups struct {
	Pairs     []Pair
	Negatives int
}

// Len returns the number of groups.
func (g PairGroups) Len() int { return len(g.Pairs) / (1 + g.Negatives) }

// Loss returns the binary cross-entropy of scores, [P], summed over the groups: −ln σ(s₀) − Σ_k w·ln σ(−s_k), w =
// 1/Negatives. ds, unless it is nil, gets its gradient.
func (g PairGroups) Loss(ds, scores []float32) (loss float64) {
	n := 1 + g.Negatives
	if len(scores) != len(g.Pairs) || len(scores)%n != 0 {
		panic(fmt.Sprintf("nn: there must be a score for each of %d pairs in groups of %d (got %d)",
			len(g.Pairs), n, len(scores)))
	}
	weight := 1 / float64(g.Negatives)
	for lo := 0; lo < len(scores); lo += n {
		of := scores[lo : lo+n]
		for k, v := range of {
			s, w := -float64(v), 1.0
			if k > 0 {
				s, w = -s, weight
			}
			small := math.Exp(-math.Abs(s)) // −ln σ(−s) = max(s, 0) + ln(1+e^−|s|)
			loss += float64(w * (max(s, 0) + math.Log1p(small)))
			if ds == nil {
				continue
			}
			p := sigmoid(s, small)
			if k == 0 {
				p = -p
			}
			ds[lo+k] = float32(w * p)
		}
	}
	return loss
}

// Learn returns the loss of groups of pairs of rows of z. It adds its gradient to dz, of z's shape, and to the
// gradients of the parameters.
func (d *Decoder) Learn(dz, z mat.Dense, of PairGroups) (loss float64) {
	n := 1 + of.Negatives
	size := max(pairBlock/n, 1) * n
	memory := tape.New()
	ds, scores := make([]float32, min(size, len(of.Pairs))), make([]float32, min(size, len(of.Pairs)))
	for lo := 0; lo < len(of.Pairs); lo += size {
		memory.Reset()
		some := of
		some.Pairs = of.Pairs[lo:min(lo+size, len(of.Pairs))]
		s := scores[:len(some.Pairs)]
		d.forward(s, z, some.Pairs, memory)
		loss += some.Loss(ds[:len(s)], s)
		d.backward(dz, ds[:len(s)], z, some.Pairs, memory)
	}
	return loss
}
