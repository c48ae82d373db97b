package kernels

import (
	"math"
	"runtime"
	"sync"
)

// Axpy computes y += a·x, without fused multiply-add.
func Axpy(a float32, x, y []float32) {
	checkLength("y of Axpy", len(y), len(x))
	vectors(vector{op: opAxpy, a: a, x: x, y: y}, 12)
}

// Add computes y += x.
func Add(x, y []float32) {
	checkLength("y of Add", len(y), len(x))
	vectors(vector{op: opAdd, x: x, y: y}, 12)
}

// Scale computes x *= a.
func Scale(a float32, x []float32) { vectors(vector{op: opScale, a: a, y: x}, 8) }

// ReLU computes y = max(x, 0); NaN stays NaN. y may be x.
func ReLU(x, y []float32) {
	checkLength("y of ReLU", len(y), len(x))
	vectors(vector{op: opReLU, x: x, y: y}, 8)
}

// ReLUGrad computes dx = dy where y > 0, else 0; y is ReLU's output or its input. dx may be dy.
func ReLUGrad(y, dy, dx []float32) {
	checkLength("dy of ReLUGrad", len(dy), len(y))
	checkLength("dx of ReLUGrad", len(dx), len(y))
	vectors(vector{op: opReLUGrad, x: y, z: dy, y: dx}, 12)
}

// Dot returns Σ x·y.
func Dot(x, y []float32) float32 {
	checkLength("y of Dot", len(y), len(x))
	reads(x)
	reads(y)
	return active.dot(x, y)
}

// adam has the constants of one Adam step.
type adam struct {
	step, beta1, rest1, beta2, rest2, eps, scale, root, decay, shrink float32 // in the order of assembly
}

// AdamStep is one step of Adam (Kingma and Ba, ICLR 2015, algorithm 1) over a slab: p are the parameters, scale·g the
// gradients, m and v the moments. correct1 = 1−β₁ᵗ and correct2 = 1−β₂ᵗ become one factor each, of lr and of √v.
// Dividing every m and v by them would take as long as all the rest. decay is added to the gradient (L2); decoupled
// first scales p by 1−lr·decoupled (AdamW, Loshchilov and Hutter, ICLR 2019). No product is fused with a sum, so that
// different processors compute the same bits.
func AdamStep(p, g, m, v []float32, scale, lr, beta1, beta2, eps, correct1, correct2, decay, decoupled float32) {
	checkLength("g of AdamStep", len(g), len(p))
	checkLength("m of AdamStep", len(m), len(p))
	checkLength("v of AdamStep", len(v), len(p))
	vectors(vector{op: opAdam, x: g, y: p, m: m, v: v, adam: adam{
		step: lr / correct1, beta1: beta1, rest1: 1 - beta1, beta2: beta2, rest2: 1 - beta2, eps: eps,
		scale: scale, root: 1 / float32(math.Sqrt(float64(correct2))), decay: decay, shrink: 1 - float32(lr*decoupled),
	}}, 28)
}

type vectorOp uint8

const (
	opAxpy vectorOp = iota
	opAdd
	opScale
	opReLU
	opReLUGrad
	opELU
	opELUGrad
	opAdam
	opToBF16
	opFromBF16
)

// vector is a call on whole slabs, cut into pieces of equal length.
type vector struct {
	op      vectorOp
	a       float32
	x, z, y []float32 // y is the output
	half    []uint16
	m, v    []float32
	adam    adam
	piece   int
}

// run processes piece i.
func (c *vector) run(i int) { c.on(i*c.piece, min((i+1)*c.piece, c.len())) }

func (c *vector) len() int { return max(len(c.y), len(c.half)) }

// on processes the elements [lo, hi).
func (c *vector) on(lo, hi int) {
	if c.op == opToBF16 {
		reads(c.x[lo:hi])
		writes(c.half[lo:hi])
		active.toBF16(c.x[lo:hi], c.half[lo:hi])
		return
	}
	y := c.y[lo:hi]
	writes(y)
	if c.x != nil {
		reads(c.x[lo:hi])
	}
	switch c.op {
	case opAxpy:
		active.axpy(c.a, c.x[lo:hi], y)
	case opAdd:
		active.add(c.x[lo:hi], y)
	case opScale:
		active.scale(c.a, y)
	case opReLU:
		active.relu(c.x[lo:hi], y)
	case opReLUGrad:
		reads(c.z[lo:hi])
		active.reluGrad(c.x[lo:hi], c.z[lo:hi], y)
	case opELU:
		active.elu(c.x[lo:hi], y)
	case opELUGrad:
		reads(c.z[lo:hi])
		active.eluGrad(c.x[lo:hi], c.z[lo:hi], y)
	case opAdam:
		writes(c.m[lo:hi])
		writes(c.v[lo:hi])
		active.adam(y, c.x[lo:hi], c.m[lo:hi], c.v[lo:hi], c.adam)
	case opFromBF16:
		reads(c.half[lo:hi])
		active.fromBF16(c.half[lo:hi], y)
	}
}

var vectorCalls = sync.Pool{New: func() any { return new(vector) }}

// vectors runs v, in pieces if it is long; bytes is the memory traffic of one element.
func vectors(v vector, bytes int) {
	const alone = 1 << 20 // bytes, some 50 µs
	n := v.len()
	if n*bytes < alone {
		v.on(0, n)
		return
	}
	c := vectorCalls.Get().(*vector)
	*c = v
	parts := min(2*runtime.GOMAXPROCS(0), n*bytes/(alone/4))
	c.piece = ((n+parts-1)/parts + 63) &^ 63
	shared.do(c, (n+c.piece-1)/c.piece)
	*c = vector{}
	vectorCalls.Put(c)
}
