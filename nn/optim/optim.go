// Package optim has optimisers that step over flat buffers, one of parameters and one of gradients,
// and schedules of the learning rate. No product is fused with a sum, so every peer keeps the same
// bits whatever its processor.
package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/kernels"
)

// Config describes an optimiser.
type Config struct {
	Name     string  `json:"name"`               // "sgd", "adam" or "adamw"
	LR       float32 `json:"lr"`                 // step size before the schedule, > 0
	Momentum float32 `json:"momentum,omitempty"` // sgd: in [0, 1) (0 = none)
	Beta1    float32 `json:"beta1,omitempty"`    // adam, adamw: in [0, 1) (0 = 0.9)
	Beta2    float32 `json:"beta2,omitempty"`    // adam, adamw: in [0, 1) (0 = 0.999)
	Eps      float32 `json:"eps,omitempty"`      // adam, adamw: ≥ 0 (0 = 1e-8)
	// ≥ 0; L2 penalty Decay·w of the gradient (sgd, adam), or w times 1−lr·Decay (adamw)
	Decay float32 `json:"decay,omitempty"`
}

// Validate returns every fault of c, joined, or nil.
func (c Config) Validate() error {
	var faults []error
	need := func(ok bool, field string, value any, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s must be %s (got %v)", field, want, value))
		}
	}
	sgd := c.Name == "sgd"
	need(sgd || c.Name == "adam" || c.Name == "adamw", "name", fmt.Sprintf("%q", c.Name), `"sgd", "adam" or "adamw"`)
	need(c.LR > 0 && c.LR <= math.MaxFloat32, "lr", c.LR, "a finite number above 0")
	need(c.Momentum >= 0 && c.Momentum < 1, "momentum", c.Momentum, "a number in [0, 1)")
	need(c.Beta1 >= 0 && c.Beta1 < 1, "beta1", c.Beta1, "a number in [0, 1)")
	need(c.Beta2 >= 0 && c.Beta2 < 1, "beta2", c.Beta2, "a number in [0, 1)")
	need(c.Eps >= 0 && c.Eps <= math.MaxFloat32, "eps", c.Eps, "a finite number of at least 0")
	need(c.Decay >= 0 && c.Decay <= math.MaxFloat32, "decay", c.Decay, "a finite number of at least 0")
	if sgd {
		need(c.Beta1 == 0 && c.Beta2 == 0 && c.Eps == 0, "beta1, beta2 or eps", "set", "none of them with sgd")
	} else {
		need(c.Momentum == 0, "momentum", c.Momentum, "0 without sgd (beta1 is Adam's)")
	}
	return errors.Join(faults...)
}

// Optimizer moves n parameters against their gradients. It is not safe for concurrent use.
type Optimizer struct {
	cfg     Config
	n       int
	steps   int64
	moments [][]float32 // each with n values: none, the momentum, or Adam's first and second moments
	pass    updatePass  // of the step being made
}

// New returns the optimiser of n parameters that cfg describes, or all of cfg's faults.
func New(cfg Config, n int) (*Optimizer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o := &Optimizer{cfg: cfg, n: n}
	moments := 2
	if cfg.Name == "sgd" {
		moments = 0
		if cfg.Momentum > 0 {
			moments = 1
		}
	} else {
		o.cfg.Beta1 = orDefault(cfg.Beta1, 0.9)
		o.cfg.Beta2 = orDefault(cfg.Beta2, 0.999)
		o.cfg.Eps = orDefault(cfg.Eps, 1e-8)
	}
	for range moments {
		o.moments = append(o.moments, make([]float32, n))
	}
	return o, nil
}

func orDefault(x, def float32) float32 {
	if x == 0 {
		return def
	}
	return x
}

// Step makes one step with the learning rate lr (Config.LR times the schedule's factor): it reads
// grad and changes value, both as long as New's n.
func (o *Optimizer) Step(value, grad []float32, lr float32) { o.StepScaled(value, grad, 1, lr) }

// StepScaled is Step with scale·grad: the same bits as multiplying first, in one pass over the
// memory instead of two. What it leaves in grad is of no use.
func (o *Optimizer) StepScaled(value, grad []float32, scale, lr float32) {
	if len(value) != o.n || len(grad) != o.n {
		panic(fmt.Sprintf("optim: a step must be over %d values and gradients (got %d and %d)",
			o.n, len(value), len(grad)))
	}
	o.steps++
	p := &o.pass
	*p = updatePass{config: &o.cfg, value: value, grad: grad, scale: scale, lr: lr}
	copy(p.moments[:], o.moments)
	if o.cfg.Name != "sgd" {
		p.correct1, p.correct2 = correction(o.cfg.Beta1, o.steps), correction(o.cfg.Beta2, o.steps)
	}
	kernels.Parallel(p, (o.n+piece-1)/piece)
	*p = updatePass{}
}

// A step is made by pieces of as many values, shared between cores: what one loop wrote the next
// finds in the cache.
const piece = 1 << 14 // 256 KiB with gradients and two moments

type updatePass struct {
	config             *Config
	value, grad        []float32
	moments            [2][]float32
	scale, lr          float32
	correct1, correct2 float32
}

// Run makes the step for one piece.
func (p *updatePass) Run(part int) {
	lo, hi := part*piece, min((part+1)*piece, len(p.value))
	c, value, grad := p.config, p.value[lo:hi], p.grad[lo:hi]
	if c.Name == "sgd" && p.scale != 1 {
		kernels.Scale(p.scale, grad)
	}
	switch {
	case c.Name == "sgd" && c.Momentum == 0:
		descend(value, grad, p.lr, c.Decay)
	case c.Name == "sgd":
		descendMomentum(value, grad, p.moments[0][lo:hi], p.lr, c.Momentum, c.Decay)
	default:
		l2, decoupled := c.Decay, float32(0)
		if c.Name == "adamw" {
			l2, decoupled = 0, c.Decay
		}
		kernels.AdamStep(value, grad, p.moments[0][lo:hi], p.moments[1][lo:hi],
			p.scale, p.lr, c.Beta1, c.Beta2, c.Eps, p.correct1, p.correct2, l2, decoupled)
	}
}

// State returns the number of steps made and the moments, which alias the optimiser's own.
func (o *Optimizer) State() (steps int64, moments [][]float32) { return o.steps, o.moments }

// Restore sets what State returned, copying the moments. The error names the length that differs;
// then nothing changed.
func (o *Optimizer) Restore(steps int64, moments [][]float32) error {
	if steps < 0 || len(moments) != len(o.moments) {
		return fmt.Errorf("the state of %s must have %d moments and at least 0 steps (got %d and %d)",
			o.cfg.Name, len(o.moments), len(moments), steps)
	}
	for i, m := range moments {
		if len(m) != len(o.moments[i]) {
			return fmt.Errorf("moment %d of %s must have %d values (got %d)",
				i, o.cfg.Name, len(o.moments[i]), len(m))
		}
	}
	for i, m := range moments {
		copy(o.moments[i], m)
	}
	o.steps = steps
	return nil
}

// correction returns 1−βᵗ, what the bias of a moment that started at 0 is divided by. The power is
// squared up by hand: math.Pow does not promise the same last bit on every processor.
func correction(beta float32, t int64) float32 {
	p, b := 1.0, float64(beta)
	for ; t > 0; t >>= 1 {
		if t&1 == 1 {
			p *= b
		}
		b *= b
	}
	return float32(1 - p)
}

// descend is one step of gradient descent: w ← w − lr·(g + decay·w).
func descend(w, g []float32, lr, decay float32) {
	g = g[:len(w)]
	for i, wi := range w {
		w[i] = wi - float32(lr*(g[i]+float32(decay*wi)))
	}
}

// descendMomentum is one step with heavy-ball momentum (Polyak 1964; Sutskever et al., ICML 2013,
// as PyTorch scales it): m ← mu·m + (g + decay·w), w ← w − lr·m.
func descendMomentum(w, g, m []float32, lr, mu, decay float32) {
	g, m = g[:len(w)], m[:len(w)]
	for i, wi := range w {
		mi := float32(mu*m[i]) + (g[i] + float32(decay*wi))
		m[i] = mi
		w[i] = wi - float32(lr*mi)
	}
}
