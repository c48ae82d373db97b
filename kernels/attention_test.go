package kernels

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// edgeNames gives the edges of a test their keys, the same from both ends.
type edgeNames struct{ back bool }

func (e edgeNames) Keys(row int, col []int32, keys []uint64) {
	for k, j := range col {
		i, j := uint64(row), uint64(j)
		if e.back {
			i, j = j, i
		}
		keys[k] = i*0x9e3779b97f4a7c15 ^ j*0xd1342543de82ef95
	}
}

// attentionCase is an attention on random rows: destinations × sources, values by head at both ends.
type attentionCase struct {
	heads, dim, gap, tall int
	drop                  float32
	rowPtr                []int64
	col                   []int32
	own, far, x, dy       []float32
	ld, ldx               int
}

func newAttentionCase(lengths []int, tall, heads, dim, gap int, drop float32) *attentionCase {
	c := &attentionCase{heads: heads, dim: dim, gap: gap, tall: tall, drop: drop, ld: PadHeads(heads),
		ldx: heads*dim + gap}
	c.rowPtr, c.col = sparse(5, lengths, tall)
	c.own, c.far = noise(1, make([]float32, len(lengths)*c.ld)), noise(2, make([]float32, tall*c.ld))
	for i := range c.far {
		c.far[i] *= 5
	}
	c.x, c.dy = noise(3, make([]float32, tall*c.ldx)), noise(4, make([]float32, len(lengths)*c.ldx))
	return c
}

func (c *attentionCase) rows() int { return len(c.rowPtr) - 1 }

func (c *attentionCase) edges() *Attention {
	return &Attention{RowPtr: c.rowPtr, Col: c.col, Heads: c.heads, Dim: c.dim, Slope: 0.2, Dropout: c.drop,
		Keys: edgeNames{}}
}

func (c *attentionCase) start() *Softmax {
	n := c.rows()
	return &Softmax{Top: nans(n * c.ld), Sum: nans(n * c.ld), Y: make([]float32, n*c.ldx), LDY: c.ldx, Fresh: true}
}

func nans(n int) []float32 { return slices.Repeat([]float32{float32(math.NaN())}, n) }

// attentionTruth is the result in float64, with sums divided.
type attentionTruth struct{ log, y, base, dx, dOwn, dFar []float64 }

func (c *attentionCase) truth() (t attentionTruth) {
	n, w := c.rows(), c.ldx
	t.log, t.base, t.dFar, t.dOwn = make([]float64, n*c.ld), make([]float64, n*c.ld), make([]float64, n*c.ld),
		make([]float64, c.tall*c.ld)
	t.y, t.dx = make([]float64, n*w), make([]float64, c.tall*w)
	keep, key := make([]float32, c.heads), make([]uint64, 1)
	for _, pass := range []int{0, 1, 2} {
		for i := range n {
			for k := c.rowPtr[i]; k < c.rowPtr[i+1]; k++ {
				j := int(c.col[k])
				edgeNames{}.Keys(i, c.col[k:k+1], key)
				dropped(key[0], c.drop, keep)
				for h := range c.heads {
					e, slope := float64(c.own[i*c.ld+h]+c.far[j*c.ld+h]), 1.0
					if e < 0 {
						slope = 0.2
					}
					if e *= slope; pass == 0 {
						t.log[i*c.ld+h] += math.Exp(e)
						continue
					}
					p := math.Exp(e) / t.log[i*c.ld+h]
					dot := 0.0
					for d := h * c.dim; d < (h+1)*c.dim; d++ {
						v, x, g := p*float64(keep[h]), float64(c.x[j*w+d]), float64(c.dy[i*w+d])
						dot += float64(keep[h]) * x * g
						if pass == 1 {
							t.y[i*w+d] += v * x
							t.base[i*c.ld+h] += v * x * g
						} else {
							t.dx[j*w+d] += v * g
						}
					}
					if pass == 2 {
						d := p * slope * (dot - t.base[i*c.ld+h])
						t.dOwn[j*c.ld+h] += d
						t.dFar[i*c.ld+h] += d
					}
				}
			}
		}
	}
	for i, v := range t.log {
		t.log[i] = math.Log(v)
	}
	return t
}

// transposed returns the transpose of the case's CSR.
func (c *attentionCase) transposed() (rowPtr []int64, col []int32) {
	rowPtr = make([]int64, c.tall+1)
	for j := range c.tall {
		for i := range c.rows() {
			for _, to := range c.col[c.rowPtr[i]:c.rowPtr[i+1]] {
				if int(to) == j {
					col = append(col, int32(i))
				}
			}
		}
		rowPtr[j+1] = int64(len(col))
	}
	return rowPtr, col
}

// run returns the softmax of all columns, processed in `blocks` blocks, and its gradients.
func (c *attentionCase) run(t *testing.T, blocks, offset int) (s *Softmax, dx, dOwn, dFar []float32) {
	t.Helper()
	s = c.start()
	y, checkY := fenced(t, offset, len(s.Y))
	clear(y) // including the gaps between rows
	for i := range y {
		if i%c.ldx < c.heads*c.dim {
			y[i] = float32(math.NaN())
		}
	}
	s.Y = y
	e := c.edges()
	for b := range blocks { // each block has the columns of a range
		part := *e
		part.RowPtr, part.Col = []int64{0}, nil
		for i := range c.rows() {
			for _, j := range c.col[c.rowPtr[i]:c.rowPtr[i+1]] {
				if int(j)*blocks/c.tall == b {
					part.Col = append(part.Col, j)
				}
			}
			part.RowPtr = append(part.RowPtr, int64(len(part.Col)))
		}
		part.Forward(c.own, c.far, c.x, c.ldx, s)
		s.Fresh = false
	}
	checkY()
	n := c.rows()
	log, base := make([]float32, n*c.ld), make([]float32, n*c.ld)
	for i := range n {
		for h := range c.heads {
			at := i*c.ld + h
			log[at] = s.Top[at] + float32(math.Log(float64(s.Sum[at])))
			if s.Sum[at] == 0 {
				continue
			}
			for d := h * c.dim; d < (h+1)*c.dim; d++ {
				s.Y[i*c.ldx+d] /= s.Sum[at]
				base[at] += c.dy[i*c.ldx+d] * s.Y[i*c.ldx+d]
			}
		}
	}
	dx, checkX := fenced(t, offset, len(c.x))
	fresh := offset%2 == 0
	if clear(dx); fresh {
		copy(dx, nans(len(dx)))
	}
	dOwn, checkOwn := fenced(t, offset, c.tall*c.ld)
	dFar, checkFar := fenced(t, offset, n*c.ld)
	clear(dFar)
	back := *e
	rowPtr, col := c.transposed()
	back.Keys = edgeNames{true}
	for b := range blocks { // each block has the rows of a range
		from, to := b*c.tall/blocks, (b+1)*c.tall/blocks
		back.RowPtr, back.Col, back.Keys = rowPtr[from:to+1], col, edgesFrom{edgeNames{true}, from}
		back.Backward(c.far[from*c.ld:to*c.ld], c.own, &AttentionGrad{Log: log, Base: base, DY: c.dy, LDDY: c.ldx,
			X: c.x[from*c.ldx:], LDX: c.ldx, DX: dx[from*c.ldx:], LDDX: c.ldx, Fresh: fresh,
			DOwn: dOwn[from*c.ld : to*c.ld], DFar: dFar})
	}
	checkX()
	checkOwn()
	checkFar()
	return s, dx, dOwn, dFar
}

// edgesFrom has the keys of rows from a given row on.
type edgesFrom struct {
	edgeNames
	from int
}

func (e edgesFrom) Keys(row int, col []int32, keys []uint64) { e.edgeNames.Keys(e.from+row, col, keys) }

// TestAttention compares the softmax, its derivatives and the gradients with float64, with and without dropout, in one
// block and in several.
func TestAttention(t *testing.T) {
	hub := slices.Repeat([]int{3}, 70) // and more rows than fit in a round
	hub[40] = 2500
	long := slices.Repeat([]int{700}, 70) // more edges than fit in a chunk of gradients
	for _, lengths := range [][]int{{}, {0}, {1}, {0, 3, 0, 1, 17, 0, 40, 0}, hub, long} {
		for k, d := range [][2]int{{1, 1}, {1, 7}, {2, 8}, {3, 5}, {4, 16}, {8, 8}, {8, 1}, {5, 33}, {9, 3}, {17, 4},
			{1, 300}, {4, 50}, {7, 27}, {5, 60}, {8, 32}, {3, 32}} {
			if len(lengths) > 10 && (k%3 > 0 || raceEnabled) {
				continue
			}
			c := newAttentionCase(lengths, 45, d[0], d[1], k%3, float32(k%2)*0.4)
			want := c.truth()
			each(t, func(t *testing.T) {
				for _, blocks := range []int{1, 3} {
					s, dx, dOwn, dFar := c.run(t, blocks, k%7)
					near := func(what string, got []float32, want []float64, values, ld int) {
						t.Helper()
						for i := range got {
							if i%ld < values && !(math.Abs(float64(got[i])-want[i]) <= 2e-5*(1+math.Abs(want[i]))) &&
								!(math.IsInf(want[i], -1)) {
								t.Fatalf("%d heads of %d, %d rows, %d blocks: %s[%d] = %g, must be %g", c.heads, c.dim,
									c.rows(), blocks, what, i, got[i], want[i])
							}
						}
					}
					near("Y", s.Y, want.y, c.heads*c.dim, c.ldx)
					near("dX", dx, want.dx, c.heads*c.dim, c.ldx)
					near("dOwn", dOwn, want.dOwn, c.heads, c.ld)
					near("dFar", dFar, want.dFar, c.heads, c.ld)
					for i := range s.Top {
						got := float64(s.Top[i]) + math.Log(float64(s.Sum[i]))
						if i%c.ld < c.heads && math.Abs(got-want.log[i]) > 1e-5 {
							t.Fatalf("log[%d] = %g, must be %g", i, got, want.log[i])
						}
					}
					for i, v := range s.Y {
						if i%c.ldx >= c.heads*c.dim && v != 0 {
							t.Fatalf("wrote between rows at %d", i)
						}
					}
				}
			})
		}
	}
}

// TestAttentionBits checks that weights have the bits of plain Go on every set, that sums agree between the assembly
// sets, and that no result depends on the workers.
func TestAttentionBits(t *testing.T) {
	lengths := make([]int, 400)
	for i := range lengths {
		lengths[i] = i % 90
	}
	lengths[7] = 5000
	for _, d := range [][2]int{{4, 20}, {8, 8}, {8, 32}, {5, 60}, {2, 40}} {
		newAttentionCase(lengths, 300, d[0], d[1], 1, 0.3).checkBits(t)
	}
}

func (c *attentionCase) checkBits(t *testing.T) {
	forward := func(workers int) *Softmax {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		s := c.start()
		c.edges().Forward(c.own, c.far, c.x, c.ldx, s)
		return s
	}
	before := active
	defer func() { active = before }()
	active = generic
	plain := forward(1)
	var first *Softmax
	var firstX []float32
	for _, set := range usable()[1:] {
		active = set
		s := forward(1)
		same(t, set.name+" Top", s.Top, plain.Top)
		same(t, set.name+" Sum", s.Sum, plain.Sum)
		dx, dOwn, dFar := c.gradients(1)
		if first == nil {
			first, firstX = s, dx
		}
		same(t, set.name+" Y", s.Y, first.Y)
		same(t, set.name+" dX", dx, firstX)
		three := forward(3)
		same(t, set.name+" with three workers", three.Y, s.Y)
		dx3, dOwn3, dFar3 := c.gradients(3)
		same(t, set.name+" dX with three workers", dx3, dx)
		same(t, set.name+" dOwn with three workers", dOwn3, dOwn)
		same(t, set.name+" dFar with three workers", dFar3, dFar)
	}
}

// gradients returns the gradients of made-up softmaxes.
func (c *attentionCase) gradients(workers int) (dx, dOwn, dFar []float32) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	n := len(c.own)
	dx, dOwn, dFar = make([]float32, len(c.x)), make([]float32, len(c.far)), make([]float32, n)
	back := c.edges()
	back.RowPtr, back.Col = c.transposed()
	back.Keys = edgeNames{true}
	back.Backward(c.far, c.own, &AttentionGrad{Log: noise(7, make([]float32, n)), Base: noise(8, make([]float32, n)),
		DY: c.dy, LDDY: c.ldx, X: c.x, LDX: c.ldx, DX: dx, LDDX: c.ldx, DOwn: dOwn, DFar: dFar})
	return dx, dOwn, dFar
}

// TestAttentionSpecial checks that NaN and infinities reach the results that depend on them, and no others.
func TestAttentionSpecial(t *testing.T) {
	each(t, func(t *testing.T) {
		c := newAttentionCase([]int{20, 0, 5, 20}, 30, 4, 8, 0, 0)
		c.own[2*c.ld+1] = float32(math.NaN())
		c.own[3*c.ld] = float32(math.Inf(1))
		s := c.start()
		c.edges().Forward(c.own, c.far, c.x, c.ldx, s)
		for i, v := range s.Y {
			bad := i/c.ldx == 2 && i%c.ldx/c.dim == 1 || i/c.ldx == 3 && i%c.ldx < c.dim
			if (v != v) != bad {
				t.Fatalf("Y[%d, %d] = %g", i/c.ldx, i%c.ldx, v)
			}
		}
	})
}

func TestAttentionPanics(t *testing.T) {
	each(t, func(t *testing.T) {
		c := newAttentionCase([]int{2, 1}, 4, 2, 3, 0, 0)
		s := c.start()
		run := func(change func(a *Attention, s *Softmax)) func() {
			a, soft := *c.edges(), *s
			a.RowPtr, a.Col = slices.Clone(a.RowPtr), slices.Clone(a.Col)
			change(&a, &soft)
			return func() { a.Forward(c.own, c.far, c.x, c.ldx, &soft) }
		}
		panics(t, "column 4 of edge 1", run(func(a *Attention, s *Softmax) { a.Col[1] = 4 }))
		panics(t, "column -1 of edge 0", run(func(a *Attention, s *Softmax) { a.Col[0] = -1 }))
		panics(t, "row pointer 1", run(func(a *Attention, s *Softmax) { a.RowPtr[1] = 9 }))
		panics(t, "one row pointer more than rows", run(func(a *Attention, s *Softmax) { a.RowPtr = nil }))
		panics(t, "own of Attention.Forward", run(func(a *Attention, s *Softmax) { a.RowPtr = a.RowPtr[:2] }))
		panics(t, "0 heads", run(func(a *Attention, s *Softmax) { a.Heads = 0 }))
		panics(t, "heads of 0", run(func(a *Attention, s *Softmax) { a.Dim = 0 }))
		panics(t, "slope 0", run(func(a *Attention, s *Softmax) { a.Slope = 0 }))
		panics(t, "dropout 1", run(func(a *Attention, s *Softmax) { a.Dropout = 1 }))
		panics(t, "Top of", run(func(a *Attention, s *Softmax) { s.Top = s.Top[1:] }))
		panics(t, "Y of", run(func(a *Attention, s *Softmax) { s.Y = s.Y[:5] }))
		rowPtr, col := c.transposed()
		back := &Attention{RowPtr: rowPtr, Col: col, Heads: 2, Dim: 3, Slope: 1}
		grad := func(change func(d *AttentionGrad)) func() {
			d := &AttentionGrad{Log: s.Top, Base: s.Sum, DY: c.dy, LDDY: 6, X: c.x, LDX: 6, DX: make([]float32, 24),
				LDDX: 6, DOwn: make([]float32, 8), DFar: make([]float32, 4)}
			change(d)
			return func() { back.Backward(c.far, c.own[:len(d.DFar)], d) }
		}
		panics(t, "column 1 of",
			grad(func(d *AttentionGrad) { d.DFar, d.Log, d.Base = d.DFar[:2], d.Log[:2], d.Base[:2] }))
		panics(t, "DX of", grad(func(d *AttentionGrad) { d.DX = d.DX[:23] }))
		panics(t, "DOwn of", grad(func(d *AttentionGrad) { d.DOwn = d.DOwn[:7] }))
		panics(t, "Base of", grad(func(d *AttentionGrad) { d.Base = nil }))
		back.RowPtr[2] = 9
		panics(t, "row pointer 2", grad(func(d *AttentionGrad) {}))
	})
}

// FuzzAttention checks that a broken CSR only panics with a message.
func FuzzAttention(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, []byte{0, 1, 2}, uint8(3), uint8(5))
	f.Add([]byte{0, 200, 3}, []byte{255, 1, 2}, uint8(1), uint8(40))
	f.Fuzz(func(t *testing.T, ptr, cols []byte, heads, dim uint8) {
		rowPtr, col := make([]int64, len(ptr)), make([]int32, len(cols))
		for i, p := range ptr {
			rowPtr[i] = int64(int8(p))
		}
		for i, c := range cols {
			col[i] = int32(int8(c))
		}
		a := Attention{RowPtr: rowPtr, Col: col, Heads: 1 + int(heads%20), Dim: 1 + int(dim%70), Slope: 0.2,
			Dropout: 0.5, Keys: edgeNames{}}
		w, ld, rows := a.Heads*a.Dim, PadHeads(a.Heads), max(0, len(ptr)-1)
		x, own, far := noise(1, make([]float32, 20*w)), noise(2, make([]float32, rows*ld)),
			noise(3, make([]float32, 20*ld))
		before := active
		defer func() { active = before }()
		for _, s := range usable() {
			active = s
			y, check := fenced(t, int(dim)%7, rows*w)
			for _, f := range []func(){
				func() {
					a.Forward(own, far, x, w, &Softmax{Top: make([]float32, rows*ld), Sum: make([]float32, rows*ld),
						Y: y, LDY: w})
				},
				func() {
					d := &AttentionGrad{Log: make([]float32, 20*ld), Base: make([]float32, 20*ld), DY: x, LDDY: w,
						X: make([]float32, rows*w), LDX: w, DX: y, LDDX: w, DOwn: make([]float32, rows*ld),
						DFar: make([]float32, 20*ld)}
					a.Backward(own, far, d)
				},
			} {
				func() {
					defer func() {
						if r := recover(); r != nil && !strings.HasPrefix(fmt.Sprint(r), "kernels: ") {
							panic(r)
						}
					}()
					f()
				}()
				check()
			}
		}
	})
}
