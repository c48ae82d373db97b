package kernels

import (
	"fmt"
	"math"
	"runtime"
	"sync"
)

// Attention is a sum over edges whose weights are a softmax (Veličković et al., ICLR 2018, eqs. 3 and 4). For each row
// i, each of its columns j and each head, the logit is LeakyReLU(own_i + far_j). Each head sums its own columns of X: a
// row of X has the heads side by side, Dim values each. Values by head have rows of PadHeads(Heads); those beyond Heads
// must be finite. No value of an edge is stored: the gradient computes the weights again.
type Attention struct {
	RowPtr     []int64
	Col        []int32
	Heads, Dim int
	Slope      float32 // slope of LeakyReLU below 0, in (0, 1]
	Dropout    float32 // dropout of the weights, [0, 1)
	Keys       EdgeKeys
}

// EdgeKeys gives each edge a key for dropout: Dropout gives the mask of the edge's heads for this key.
type EdgeKeys interface {
	// Keys writes the keys of the edges between row and each of the columns.
	Keys(row int, col []int32, keys []uint64)
}

// PadHeads returns the length of a row with one value for each head.
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

// Softmax is the running state of Forward, by rows. Forward may process one block of columns after another; Y/Sum is
// the result.
type Softmax struct {
	Top, Sum []float32 // greatest logit, and sum of exp(logit − Top)
	Y        []float32 // Σ exp(logit − Top)·x_j, after dropout; rows of Heads·Dim values with stride LDY
	LDY      int
	Fresh    bool // no block has been processed: the values are not read
}

// Forward processes the columns: own has a row of values for each row, far for each row of X.
func (a *Attention) Forward(own, far, x []float32, ldx int, s *Softmax) {
	const name = "Attention.Forward"
	c := a.begin(name, far, x, ldx)
	rows, ld := c.rows(), c.ld
	checkLength("own of "+name, len(own), rows*ld)
	checkLength("Top of "+name, len(s.Top), rows*ld)
	checkLength("Sum of "+name, len(s.Sum), rows*ld)
	checkMatrix("Y of "+name, rows, c.n, s.LDY, s.Y)
	c.own, c.far, c.x, c.y, c.ldy, c.top, c.sum, c.fresh = own, far, x, s.Y, s.LDY, s.Top, s.Sum, s.Fresh
	c.do(c)
	c.end()
}

// AttentionGrad has the inputs and outputs of Backward. DX and X have a row for each row of Forward's X; the others
// have Forward's rows.
type AttentionGrad struct {
	Log, Base []float32 // Top + ln Sum, and dY·Y/Sum for each head
	DY        []float32 // the gradient of Y/Sum, rows with stride LDDY
	LDDY      int
	X         []float32 // the rows that Forward summed, with stride LDX
	LDX       int
	DX        []float32 // gradient of X is added, except for its part through the logits
	LDDX      int
	Fresh     bool      // DX is overwritten instead
	DOwn      []float32 // gradient of Backward's own, overwritten
	DFar      []float32 // gradient of Backward's far is added
}

// Backward runs over the transpose: its rows are Forward's columns, and Col has Forward's rows; own is Forward's far,
// and far is Forward's own.
//
// The gradient of an edge's logit goes to both of its ends. The gradients of chunkValues logits at a time are stored
// and then added to DFar in the order of the edges, by each worker to a range of its rows. So bits do not depend on the
// workers, and the memory does not grow with the edges.
func (a *Attention) Backward(own, far []float32, d *AttentionGrad) {
	const name = "Attention.Backward"
	c := a.begin(name, far, d.DY, d.LDDY)
	rows, ld := c.rows(), c.ld
	checkLength("own of "+name, len(own), rows*ld)
	checkLength("DOwn of "+name, len(d.DOwn), rows*ld)
	checkLength("DFar of "+name, len(d.DFar), len(far))
	checkLength("Log of "+name, len(d.Log), len(far))
	checkLength("Base of "+name, len(d.Base), len(far))
	checkMatrix("X of "+name, rows, c.n, d.LDX, d.X)
	checkMatrix("DX of "+name, rows, c.n, d.LDDX, d.DX)
	c.backward, c.far, c.log, c.base, c.x = true, far, d.Log, d.Base, d.DY
	for from, e := 0, a.RowPtr[0]; from < rows && !c.broken.Load(); {
		from, e = c.chunk(a, own, d, from, e)
	}
	c.rowPtr = a.RowPtr
	c.end()
}

// chunkValues bounds the stored gradients of logits: 256 KiB, which fits in L2.
const chunkValues = 1 << 16

// chunk processes the edges from e on; the first one is in row from or in a later row. It returns where the next chunk
// begins, which depends only on the CSR.
func (c *attention) chunk(a *Attention, own []float32, d *AttentionGrad, from int, e int64) (int, int64) {
	edges := int64(max(1, chunkValues/c.ld))
	c.from, c.first, c.goesOn, c.chunkPtr = from, e, e > a.RowPtr[from], append(c.chunkPtr[:0], e)
	to, stop := from, e+edges
	for to < len(a.RowPtr)-1 && to-from < chunkValues/headGroup && e < stop {
		if a.RowPtr[to+1] < a.RowPtr[to] || a.RowPtr[to+1] > int64(len(a.Col)) {
			c.broken.Store(true)
			return to, e
		}
		e = min(a.RowPtr[to+1], stop)
		c.chunkPtr = append(c.chunkPtr, e)
		to++
	}
	c.rowPtr = c.chunkPtr
	c.own, c.dOwn = own[from*c.ld:], d.DOwn[from*c.ld:]
	c.y, c.ldy, c.fresh = d.DX[from*d.LDDX:], d.LDDX, d.Fresh
	c.z, c.ldz = d.X[from*d.LDX:], d.LDX
	if n := int(e-c.first) * c.ld; cap(c.slopes) < n {
		c.slopes = make([]float32, max(n, chunkValues))
	}
	c.do(c)
	if e > c.first && !c.broken.Load() {
		c.adding, c.dFar, c.parts = true, d.DFar, 1
		if (e-c.first)*int64(c.ld) >= chunkValues/4 { // else it is too little work to share
			c.parts = runtime.GOMAXPROCS(0)
		}
		shared.do(c, c.parts)
		c.adding = false
	}
	if e == stop && e < a.RowPtr[to] { // the row continues in the next chunk
		to--
	}
	return to, e
}

// attention is one call.
type attention struct {
	csr
	Attention
	name     string
	backward bool
	fresh    bool // y is not initialized
	ld       int  // stride of values by head
	limit    uint32
	up       float32 // factor of kept values in dropout

	own, far []float32
	x, y     []float32
	ldy      int

	top, sum []float32 // in the forward pass

	log, base, z, dOwn, dFar []float32 // in the backward pass
	ldz                      int
	from                     int       // first row of the chunk
	first                    int64     // the first edge of the chunk
	goesOn                   bool      // the last chunk had a part of the first row's edges
	adding                   bool      // the chunk's gradients of logits have been computed and are being added
	chunkPtr                 []int64   // row pointers of the chunk; its memory is reused by the next call
	slopes                   []float32 // [edge of the chunk] gradients of logits; its memory is reused by the next call
}

var attentionCalls = sync.Pool{New: func() any { return new(attention) }}

func (a *Attention) begin(name string, far, x []float32, ldx int) *attention {
	if a.Heads < 1 || a.Dim < 1 || !(a.Slope > 0) || !(a.Dropout >= 0 && a.Dropout < 1) {
		panic(fmt.Sprintf("kernels: %s of %d heads of %d, slope %g, dropout %g", name, a.Heads, a.Dim, a.Slope,
			a.Dropout))
	}
	c := attentionCalls.Get().(*attention)
	c.init(name, a.RowPtr, a.Col, a.Heads*a.Dim, len(x), ldx)
	c.Attention, c.name, c.ld = *a, name, PadHeads(a.Heads)
	c.tall = min(c.tall, len(far)/c.ld)
	c.limit, c.up = dropLimit(a.Dropout), 1/(1-a.Dropout)
	return c
}

func (c *attention) end() {
	if c.broken.Load() {
		c.explain(c.name)
	}
	*c = attention{chunkPtr: c.chunkPtr, slopes: c.slopes}
	attentionCalls.Put(c)
}

// roomValues is how many values by head fit in one round; roomRows bounds its rows. A backward pass reads the rows of X
// twice, nearValues of which stay in the nearest caches.
const (
	roomValues = 2048
	roomRows   = 64
	nearValues = 1 << 14
)

// headLanes are 16 values: one for each head of a group, repeated.
type headLanes [16]float32

// room is the memory of one worker: for each edge of a round the values of a group of heads.
type room struct {
	group         attentionGroup
	q, keep       [roomValues + 16]float32 // logits; dropout
	shift, factor [roomValues + 16]float32 // subtracted from logits; subtracted from the gradient of a weight
	w, slope      [roomValues + 16]float32 // weights; their derivatives by the logit before LeakyReLU, without dropout
	dots          [roomValues + 16]float32 // gradients of weights
	keys          [roomValues + 16]uint64  // 16 more than used, because vectors read past the end
	drop          dropPattern
	acc           bool // attend adds to rows
	own, top, sum headLanes
	rowPtr        [roomRows + 1]int64
	head          []int32 // [column] its head, for heads of headDim columns
	headDim       int
}

var rooms = sync.Pool{New: func() any { return new(room) }}

func (c *attention) run(part int) {
	if c.adding {
		c.add(part)
		return
	}
	r := rooms.Get().(*room)
	for lo, hi := c.part(part); lo < hi; {
		end, ok := c.block(lo, hi)
		if !ok {
			c.broken.Store(true)
			break
		}
		if raceEnabled {
			c.tell(lo, end, c.x, c.y, c.ldy)
		}
		for h := 0; h < c.Heads; h += headGroup {
			c.group(r, lo, end, h)
		}
		lo = end
	}
	r.group.attention = nil
	rooms.Put(r)
}

// add adds the gradients of the chunk's logits to one worker's range of DFar's rows.
func (c *attention) add(part int) {
	rows := len(c.dFar) / c.ld
	lo, hi := rows*part/c.parts, rows*(part+1)/c.parts
	col := c.col[c.first:c.rowPtr[c.rows()]]
	pad := min(headGroup, c.ld)
	for h0 := 0; h0 < c.Heads; h0 += headGroup {
		active.addPicked(c.slopes[c.slopesAt(h0, c.first):][:len(col)*pad], c.dFar[h0:], c.ld, pad, col, lo, hi)
	}
}

// slopesAt returns the index of the gradients of the logits of an edge's group of heads.
func (c *attention) slopesAt(h0 int, e int64) int {
	edges := c.rowPtr[c.rows()] - c.first
	return h0*int(edges) + int(e-c.first)*min(headGroup, c.ld)
}

// group computes the heads of one group, from head h0, for rows [lo, end). It takes several whole rows at a time, or a
// part of a row that has too many edges. Only the row and the chunk decide where a row is cut.
func (c *attention) group(r *room, lo, end, h0 int) {
	g := &r.group // not a local variable: it would be allocated, since it is passed to a function of the set
	g.attention, g.h0, g.heads, g.pad = c, h0, min(headGroup, c.Heads-h0), min(headGroup, c.ld)
	g.width = g.heads * c.Dim
	edges := roomValues / g.pad
	if c.backward {
		edges = max(1, min(edges, nearValues/g.width))
	}
	for lo < end {
		last := lo + 1
		alone := g.backward && lo == 0 && g.goesOn // added to the last chunk's sums
		for !alone && last < end && last-lo < roomRows && c.rowPtr[last+1]-c.rowPtr[lo] <= int64(edges) {
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

// round processes the rows [lo, hi), whose edges fit in a round, or one row in pieces.
func (g *attentionGroup) round(r *room, lo, hi, edges int) {
	for i := lo; i < hi; i++ {
		g.start(i)
	}
	first, last := int(g.rowPtr[lo]), int(g.rowPtr[hi])
	for e := first; e < last; e += edges {
		n := min(edges, last-e)
		r.rowPtr[0] = 0
		for i := lo; i < hi; i++ {
			r.rowPtr[i-lo+1] = int64(min(e+n, int(g.rowPtr[i+1])) - e)
		}
		g.weigh(r, lo, hi-lo, e, n)
		r.acc = !g.fresh || g.backward && lo == 0 && g.goesOn || e > first
		if g.backward {
			active.attendDots(g, r, lo, hi-lo, e, n)
			g.logitGrads(r, lo, hi-lo, e, n)
		} else {
			active.attend(g, r, lo, hi-lo, e, n)
		}
	}
}

// start initializes the sums of row i, unless they have been initialized.
func (g *attentionGroup) start(i int) {
	if g.backward && !(i == 0 && g.goesOn) {
		clear(g.dOwn[i*g.ld+g.h0:][:g.pad])
	}
	if !g.fresh || g.backward && i == 0 && g.goesOn {
		return
	}
	if g.rowPtr[i] == g.rowPtr[i+1] { // else attend writes the row
		clear(g.y[i*g.ldy+g.h0*g.Dim:][:g.width])
	}
	if !g.backward {
		at := i*g.ld + g.h0
		clear(g.sum[at:][:g.pad])
		for h := range g.pad {
			g.top[at+h] = float32(math.Inf(-1))
		}
	}
}

// weigh computes the weights of the n edges from e on, which belong to rows from lo on.
func (g *attentionGroup) weigh(r *room, lo, rows, e, n int) {
	pad := g.pad
	col := g.col[e : e+n]
	active.pick(r.q[:n*pad], g.far[g.h0:], g.ld, pad, col)
	var keep *float32
	if g.Dropout > 0 {
		for row := range rows {
			if from, to := r.rowPtr[row], r.rowPtr[row+1]; from < to {
				g.Keys.Keys(g.from+lo+row, col[from:to], r.keys[from:to])
			}
		}
		r.drop.fill(g.h0, pad)
		active.drop(r.keys[:n], &r.drop, g.limit, g.up, r.keep[:n*pad])
		keep = &r.keep[0]
	}
	for row := range rows {
		from, to := int(r.rowPtr[row])*pad, int(r.rowPtr[row+1])*pad
		if from == to {
			continue
		}
		i := lo + row
		r.own.repeat(g.own[i*g.ld+g.h0:], pad)
		if g.backward {
			active.logits(r.q[from:to], g.Slope, &r.own, &r.top)
			continue
		}
		r.top.repeat(g.top[i*g.ld+g.h0:], pad)
		active.logits(r.q[from:to], g.Slope, &r.own, &r.top)
		if g.fresh && e+from/pad == int(g.rowPtr[i]) {
			r.top.foldMax(pad)
			copy(g.top[i*g.ld+g.h0:][:pad], r.top[:])
			r.top.repeat(g.top[i*g.ld+g.h0:], pad)
		} else {
			g.raise(r, i)
		}
		r.sum = headLanes{}
		if keep != nil {
			keep = &r.keep[from]
		}
		active.weights(to-from, &r.q[from], &r.top[0], 0, keep, &r.w[from], &r.slope[from], g.Slope, &r.sum)
		r.sum.fold(pad)
		sum := g.sum[i*g.ld+g.h0:][:pad]
		for h := range sum {
			sum[h] += r.sum[h]
		}
	}
	if g.backward {
		active.pick(r.shift[:n*pad], g.log[g.h0:], g.ld, pad, col)
		active.weights(n*pad, &r.q[0], &r.shift[0], 64, keep, &r.w[0], &r.slope[0], g.Slope, &r.sum)
	}
}

// logitGrads computes the gradients of the logits of the n edges from e on, and sums them by row.
func (g *attentionGroup) logitGrads(r *room, lo, rows, e, n int) {
	pad := g.pad
	active.pick(r.factor[:n*pad], g.base[g.h0:], g.ld, pad, g.col[e:e+n])
	for row := range rows {
		from, to := int(r.rowPtr[row])*pad, int(r.rowPtr[row+1])*pad
		if from == to {
			continue
		}
		var keep *float32
		if g.Dropout > 0 {
			keep = &r.keep[from]
		}
		r.sum = headLanes{}
		out := g.slopes[g.slopesAt(g.h0, int64(e))+from:]
		active.logitGrads(to-from, &r.slope[from], keep, &r.dots[from], &r.factor[from], &out[0], &r.sum)
		r.sum.fold(pad)
		down := g.dOwn[(lo+row)*g.ld+g.h0:][:pad]
		for h := range g.heads {
			down[h] += r.sum[h]
		}
	}
}

// raise makes r.top the greatest logit of row i so far and scales down sums that were computed with a smaller one.
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
		}
		top[h] = m
	}
	r.top.repeat(top, g.pad)
}

// dropPattern describes sixteen values: the positions of the halves of their keys among 32-bit pieces, and the number
// that each head adds.
type dropPattern struct {
	lo, hi [16]uint32
	add    [16]uint32
	h0     int
	pad    int // (0 = not yet filled)
}

func (p *dropPattern) fill(h0, pad int) {
	if p.h0 == h0 && p.pad == pad {
		return
	}
	p.h0, p.pad = h0, pad
	for c := range p.add {
		p.lo[c], p.hi[c] = uint32(2*(c/pad)), uint32(2*(c/pad)+1)
		p.add[c] = uint32(h0+c%pad) * golden // the same as Dropout's for a column
	}
}

// repeat fills l with the first pad values of x, repeated.
func (l *headLanes) repeat(x []float32, pad int) {
	switch pad {
	case 8:
		x := *(*[8]float32)(x)
		*(*[8]float32)(l[:8]), *(*[8]float32)(l[8:]) = x, x
	case 4:
		x := *(*[4]float32)(x)
		*(*[4]float32)(l[:4]), *(*[4]float32)(l[4:8]), *(*[4]float32)(l[8:12]), *(*[4]float32)(l[12:]) = x, x, x, x
	case 2:
		for c := 0; c < len(l); c += 2 {
			l[c], l[c+1] = x[0], x[1]
		}
	default:
		for c := range l {
			l[c] = x[0]
		}
	}
}

// fold adds the other lanes of each head to the first pad lanes.
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
