package kernels

import (
	"fmt"
	"sync"
)

// Attention is a sum over edges whose weights are a softmax (Veličković et al., ICLR 2018, eqs. 3
// and 4). For each row i, each of its columns j and each head, the logit is LeakyReLU(own_i +
// far_j), and the sums are of the head's own columns of X: a row of X has the heads side by side,
// Dim values each. Values of heads come in rows of PadHeads(Heads), of which what is beyond Heads
// must be finite. No value of an edge is kept: the gradient computes the weights again.
type Attention struct {
	RowPtr     []int64
	Col        []int32
	Heads, Dim int
	Slope      float32 // of LeakyReLU where it is negative, in (0, 1]
	Dropout    float32 // of the weights, [0, 1)
	Keys       EdgeKeys
}

// EdgeKeys names the edges, for dropout: the mask of an edge's heads is that of Dropout.
type EdgeKeys interface {
	// Keys writes the keys of the edges between row and each of the columns.
	Keys(row int, col []int32, keys []uint64)
}

// PadHeads returns how many values a row has that holds one for each head.
func PadHeads(heads int) int {
	if heads > headGroup {
		return (heads + headGroup - 1) / headGroup * headGroup
	}
	pad := 1
	for pad < heads {
		pad *= 2
	}
	return pad
}

// headGroup is how many heads are computed together.
const headGroup = 8

// Softmax is the running state of Forward, by rows: begin with Top at −Inf and the others at zero.
// Blocks of columns may then come one after another. Y/Sum is the result.
type Softmax struct {
	Top, Sum []float32 // greatest logit, and the sum of exp(logit − Top)
	Y        []float32 // Σ exp(logit − Top)·x_j, after dropout; rows of Heads·Dim values with stride LDY
	LDY      int
	// The derivatives of Sum and of Y by own, with the stride of Y; both nil where no gradient is
	// needed.
	SumSlope, YSlope []float32
}

// Forward takes the columns in: own has a row of values for each row, far for each row of X.
func (a *Attention) Forward(own, far, x []float32, ldx int, s *Softmax) {
	const name = "Attention.Forward"
	c := a.begin(name, far, x, ldx)
	rows, ld := c.rows(), c.ld
	checkLength("own of "+name, len(own), rows*ld)
	checkLength("Top of "+name, len(s.Top), rows*ld)
	checkLength("Sum of "+name, len(s.Sum), rows*ld)
	checkMatrix("Y of "+name, rows, c.n, s.LDY, s.Y)
	c.own, c.far, c.x, c.y, c.ldy, c.top, c.sum = own, far, x, s.Y, s.LDY, s.Top, s.Sum
	if c.slanted = s.YSlope != nil; c.slanted {
		checkLength("SumSlope of "+name, len(s.SumSlope), rows*ld)
		checkMatrix("YSlope of "+name, rows, c.n, s.LDY, s.YSlope)
		c.sumSlope, c.ySlope = s.SumSlope, s.YSlope
	}
	c.end(name)
}

// Backward is the other way round: rows are what Forward had as columns, and Col what it had as
// rows, of which far, log (Top + ln Sum) and base (dY·Y/Sum of each head) hold a row of values each
// and dY the gradient of Y/Sum. X are the rows that Forward summed. It adds their gradient to dX,
// but for what goes through the logits: that is written to dOwn, the gradient of own, which Forward
// had as far.
func (a *Attention) Backward(own, far, log, base, dy []float32, lddy int, x []float32, ldx int, dx []float32, lddx int, dOwn []float32) {
	const name = "Attention.Backward"
	c := a.begin(name, far, dy, lddy)
	rows, ld := c.rows(), c.ld
	checkLength("own of "+name, len(own), rows*ld)
	checkLength("dOwn of "+name, len(dOwn), rows*ld)
	checkLength("log of "+name, len(log), len(far))
	checkLength("base of "+name, len(base), len(far))
	checkMatrix("X of "+name, rows, c.n, ldx, x)
	checkMatrix("dX of "+name, rows, c.n, lddx, dx)
	c.backward, c.own, c.far, c.log, c.base, c.x, c.y, c.ldy = true, own, far, log, base, dy, dx, lddx
	c.z, c.ldz, c.dOwn = x, ldx, dOwn
	c.end(name)
}

// attention is a call.
type attention struct {
	csr
	Attention
	name     string
	backward bool
	slanted  bool // Y's derivative is computed
	ld       int  // of values of heads
	limit    uint32
	up       float32 // of dropout

	own, far []float32
	x, y     []float32
	ldy      int

	top, sum, sumSlope, ySlope []float32 // forward

	log, base, z, dOwn []float32 // backward
	ldz                int
}

var attentionCalls = sync.Pool{New: func() any { return new(attention) }}

func (a *Attention) begin(name string, far, x []float32, ldx int) *attention {
	if a.Heads < 1 || a.Dim < 1 || !(a.Slope > 0) || !(a.Dropout >= 0 && a.Dropout < 1) {
		panic(fmt.Sprintf("kernels: %s of %d heads of %d, slope %g, dropout %g", name, a.Heads, a.Dim, a.Slope, a.Dropout))
	}
	c := attentionCalls.Get().(*attention)
	c.init(name, a.RowPtr, a.Col, a.Heads*a.Dim, len(x), ldx)
	c.Attention, c.name, c.ld = *a, name, PadHeads(a.Heads)
	c.tall = min(c.tall, len(far)/c.ld)
	c.limit, c.up = dropLimit(a.Dropout), 1/(1-a.Dropout)
	return c
}

func (c *attention) end(name string) {
	c.do(c)
	if c.broken.Load() {
		c.explain(name)
	}
	*c = attention{}
	attentionCalls.Put(c)
}

// roomValues is how many values of heads one round has room for; roomRows and roomSums bound its
// rows and their sums.
const (
	roomValues = 2048
	roomRows   = 64
	roomSums   = 1 << 14
)

// headLanes are 16 values that repeat with the heads of a group.
type headLanes [16]float32

// room is what one worker computes in: for each edge of a round the values of a group of heads.
type room struct {
	group                  attentionGroup
	q, keep, shift, factor [roomValues + 16]float32 // logits; dropout; what is subtracted; what the sum of slopes is times
	w                      [2][roomValues + 16]float32
	keys                   [roomValues + 16]uint64 // vectors read on
	drop                   dropPattern
	own, top, one          headLanes
	sums                   [2]headLanes // of exp(logit − shift), and of its derivative times factor
	rowPtr                 [roomRows + 1]int64
	head                   [128]int32 // of columns from headFrom on, for heads of headDim columns
	headFrom, headDim      int
	unwanted               [128]float32
	base                   [roomRows][headGroup]float32
	slope                  []float32 // rows of Σ w[1]·x where they are not kept
}

var rooms = sync.Pool{New: func() any { return new(room) }}

func (c *attention) run(part int) {
	r := rooms.Get().(*room)
	for i := range r.one {
		r.one[i] = 1
	}
	for lo, hi := c.part(part); lo < hi; {
		end, ok := c.block(lo, hi)
		if !ok {
			c.broken.Store(true)
			break
		}
		c.tell(lo, end)
		for h := 0; h < c.Heads; h += headGroup {
			c.group(r, lo, end, h)
		}
		lo = end
	}
	r.group.attention = nil
	rooms.Put(r)
}

// tell tells the race detector what assembly touches.
func (c *attention) tell(lo, end int) {
	if !raceEnabled {
		return
	}
	c.csr.tell(lo, end, c.x, c.y, c.ldy)
	for i := lo; i < end && c.slanted; i++ {
		writes(c.ySlope[i*c.ldy:][:c.n])
	}
}

// group computes the heads of one group, the first of which is h0, for rows [lo, end): some whole
// rows at a time, or a part of a row that has too many edges. Where a row is cut depends on the row
// alone.
func (c *attention) group(r *room, lo, end, h0 int) {
	g := &r.group // not a variable here: what is passed to a function of the set would be allocated
	g.attention, g.h0, g.heads, g.pad = c, h0, min(headGroup, c.Heads-h0), min(headGroup, c.ld)
	g.width = g.heads * c.Dim
	edges := roomValues / g.pad
	rows := min(roomRows, max(1, roomSums/max(1, g.width)))
	for lo < end {
		last := lo + 1
		for last < end && last-lo < rows && c.rowPtr[last+1]-c.rowPtr[lo] <= int64(edges) {
			last++
		}
		g.round(r, lo, last, edges)
		lo = last
	}
}

type attentionGroup struct {
	*attention
	h0, heads, pad, width int
}

// round does the rows [lo, hi), whose edges there is room for, or one row in pieces.
func (g *attentionGroup) round(r *room, lo, hi, edges int) {
	g.scratchSlope(r, hi-lo)
	first, last := int(g.rowPtr[lo]), int(g.rowPtr[hi])
	for e := first; e < last || e == first; e += edges {
		r.rowPtr[0] = 0
		for i := lo; i < hi; i++ {
			from, to := max(e, int(g.rowPtr[i])), min(e+edges, int(g.rowPtr[i+1]))
			r.rowPtr[i-lo+1] = int64(to - e)
			if from < to {
				g.weigh(r, i, i-lo, from, to, from-e)
			}
		}
		if e < last {
			active.attend(g, r, lo, hi-lo, e, min(edges, last-e))
		}
	}
	if g.backward {
		for i := lo; i < hi; i++ {
			g.finish(r, i, i-lo)
		}
	}
}

// scratchSlope makes room for the rows that are not kept.
func (g *attentionGroup) scratchSlope(r *room, rows int) {
	if !g.backward {
		return
	}
	if cap(r.slope) < rows*g.width {
		r.slope = make([]float32, rows*g.width)
	}
	r.slope = r.slope[:rows*g.width]
	clear(r.slope)
	clear(r.base[:rows])
}

// weigh computes the weights of the edges [from, to) of row i, which come at place at of the round.
func (g *attentionGroup) weigh(r *room, i, row, from, to, at int) {
	pad, col := g.pad, g.col[from:to]
	lo, n := at*pad, (to-from)*pad
	q := r.q[lo : lo+n]
	active.pick(q, g.far[g.h0:], g.ld, pad, col)
	r.own.repeat(g.own[i*g.ld+g.h0:], pad)
	shift, factor, step := &r.top[0], &r.one[0], 0
	if g.backward {
		active.pick(r.shift[lo:lo+n], g.log[g.h0:], g.ld, pad, col)
		active.pick(r.factor[lo:lo+n], g.base[g.h0:], g.ld, pad, col)
		shift, factor, step = &r.shift[lo], &r.factor[lo], 64
	} else {
		r.top.repeat(g.top[i*g.ld+g.h0:], pad)
	}
	active.logits(q, g.Slope, &r.own, &r.top)
	if !g.backward {
		g.raise(r, i)
	}
	var keep *float32
	if g.Dropout > 0 {
		keep = &r.keep[lo]
		g.drop(r, i, col, r.keep[lo:lo+n])
	}
	r.sums = [2]headLanes{}
	active.weights(n, &q[0], shift, factor, step, keep, &r.w[0][lo], &r.w[1][lo], g.Slope, &r.sums)
	r.sums[0].fold(pad)
	r.sums[1].fold(pad)
	if g.backward {
		for h := range pad {
			r.base[row][h] += r.sums[1][h]
		}
		return
	}
	sum := g.sum[i*g.ld+g.h0:][:pad]
	for h := range sum {
		sum[h] += r.sums[0][h]
	}
	if g.slanted {
		slope := g.sumSlope[i*g.ld+g.h0:][:pad]
		for h := range slope {
			slope[h] += r.sums[1][h]
		}
	}
}

// raise makes r.top the greatest logit so far of row i and shrinks what was summed below a smaller
// one.
func (g *attentionGroup) raise(r *room, i int) {
	r.top.foldMax(g.pad)
	at := i*g.ld + g.h0
	top, sum := g.top[at:][:g.pad], g.sum[at:]
	for h, before := range top {
		m := r.top[h]
		if m > before && sum[h] > 0 {
			shrink := exp(before - m)
			sum[h] *= shrink
			if h < g.heads {
				active.scale(shrink, g.y[i*g.ldy+(g.h0+h)*g.Dim:][:g.Dim])
			}
			if g.slanted {
				g.sumSlope[at+h] *= shrink
				if h < g.heads {
					active.scale(shrink, g.ySlope[i*g.ldy+(g.h0+h)*g.Dim:][:g.Dim])
				}
			}
		}
		top[h] = m
	}
	r.top.repeat(top, g.pad)
}

// drop writes the dropout of the edges of row i. Vectors may write past keep, where the next row's
// comes later.
func (g *attentionGroup) drop(r *room, i int, col []int32, keep []float32) {
	keys := r.keys[:len(col)]
	g.Keys.Keys(i, col, keys)
	r.drop.fill(g.h0, g.pad)
	active.drop(keys, &r.drop, g.limit, g.up, keep)
}

// dropPattern says for each of sixteen values where in the keys, in pieces of 32 bits, the halves
// of its own are, and what its head adds.
type dropPattern struct {
	lo, hi [16]uint32
	add    [16]uint32
	h0     int
	pad    int // 0: not yet filled
}

func (p *dropPattern) fill(h0, pad int) {
	if p.h0 == h0 && p.pad == pad {
		return
	}
	p.h0, p.pad = h0, pad
	for c := range p.add {
		p.lo[c], p.hi[c] = uint32(2*(c/pad)), uint32(2*(c/pad)+1)
		p.add[c] = uint32(h0+c%pad) * golden // Dropout's of a column
	}
}

// finish writes the gradient of own of row i.
func (g *attentionGroup) finish(r *room, i, row int) {
	z, slope := g.z[i*g.ldz+g.h0*g.Dim:][:g.width], r.slope[row*g.width:][:g.width]
	out := g.dOwn[i*g.ld+g.h0:][:g.pad]
	clear(out)
	for h := range g.heads {
		out[h] = dotShort(z[h*g.Dim:(h+1)*g.Dim], slope[h*g.Dim:(h+1)*g.Dim]) - r.base[row][h]
	}
}

// repeat fills l with the first pad values of x, again and again.
func (l *headLanes) repeat(x []float32, pad int) {
	switch pad {
	case 8:
		x := *(*[8]float32)(x)
		*(*[8]float32)(l[:8]), *(*[8]float32)(l[8:]) = x, x
	case 4:
		x := *(*[4]float32)(x)
		*(*[4]float32)(l[:4]), *(*[4]float32)(l[4:8]), *(*[4]float32)(l[8:12]), *(*[4]float32)(l[12:]) = x, x, x, x
	default:
		for c := range l {
			l[c] = x[c%pad]
		}
	}
}

// fold adds to the first pad lanes those of the same heads.
func (l *headLanes) fold(pad int) {
	for n := 8; n >= pad; n /= 2 {
		for c := range n {
			l[c] += l[c+n]
		}
	}
}

func (l *headLanes) foldMax(pad int) {
	for n := 8; n >= pad; n /= 2 {
		for c := range n {
			if l[c+n] > l[c] {
				l[c] = l[c+n]
			}
		}
	}
}
