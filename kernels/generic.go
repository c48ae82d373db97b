package kernels

import "math"

// generic is plain Go, the reference that the other sets are tested against. Products are rounded before they are added
// (float32(x*y)), because Go would fuse them on some processors and not on others.
var generic = &set{
	name: "generic",

	axpy:     axpyGeneric,
	dot:      dotGeneric,
	add:      addGeneric,
	scale:    scaleGeneric,
	relu:     reluGeneric,
	reluGrad: reluGradGeneric,
	where:    whereGeneric,
	leakyDot: leakyDotGeneric, leakyGrad: leakyGradGeneric, leakySource: leakySourceGeneric,
	elu:      eluGeneric,
	eluGrad:  eluGradGeneric,
	waves:    wavesGeneric,
	adam:     adamGeneric,
	dropout:  dropoutGeneric,
	kept:     keptGeneric,
	packKept: packKeptGeneric,
	turnKept: turnKeptGeneric,
	addWide:  addWideGeneric,
	sumWide:  sumWideGeneric,
	integers: integersGeneric,
	maxIndex: maxIndexGeneric,

	toBF16:   toBF16Generic,
	fromBF16: fromBF16Generic,
	maxAbs:   maxAbsGeneric,
	toInt8:   toInt8Generic,
	fromInt8: fromInt8Generic,
	toFixed:  toFixedGeneric,
	fixed:    fixedGeneric,

	sum:        sumGeneric,
	sumSquares: sumSquaresGeneric,
	normalise:  normaliseGeneric,
	normSums:   normSumsGeneric,
	normGrad:   normGradGeneric,
	addNorm:    addNormGeneric,
	max:        maxGeneric,
	expSum:     expSumGeneric,

	pick:       pickGeneric,
	logits:     logitsGeneric,
	weights:    weightsGeneric,
	drop:       dropGeneric,
	attend:     attendGeneric,
	attendDots: attendDotsGeneric,
	logitGrads: logitGradsGeneric,
	addPicked:  addPickedGeneric,

	gemm:  gemmGeneric,
	spmm:  spmmGeneric,
	spmax: spmaxGeneric,
}

func axpyGeneric(a float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

func dotGeneric(x, y []float32) float32 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s0 += float32(x[i] * y[i])
		s1 += float32(x[i+1] * y[i+1])
		s2 += float32(x[i+2] * y[i+2])
		s3 += float32(x[i+3] * y[i+3])
	}
	for ; i < len(x); i++ {
		s0 += float32(x[i] * y[i])
	}
	return (s0 + s1) + (s2 + s3)
}

func addGeneric(x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += v
	}
}

func scaleGeneric(a float32, x []float32) {
	for i := range x {
		x[i] *= a
	}
}

func reluGeneric(x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		y[i] = v
	}
}

func whereGeneric(e int32, arg []int32, x, y []float32) {
	for i, a := range arg {
		v := x[i]
		if a != e {
			v = 0
		}
		y[i] = v
	}
}

func reluGradGeneric(y, dy, dx []float32) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, v := range y {
		d := dy[i]
		if !(v > 0) {
			d = 0
		}
		dx[i] = d
	}
}

func adamGeneric(p, g, m, v []float32, c adam) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for i := range p {
		w := p[i]
		gi := float32(c.scale*g[i]) + float32(c.decay*w)
		mi := float32(c.beta1*m[i]) + float32(c.rest1*gi)
		vi := float32(c.beta2*v[i]) + float32(float32(c.rest2*gi)*gi)
		m[i], v[i] = mi, vi
		p[i] = float32(w*c.shrink) - float32(c.step*mi)/(float32(float32(math.Sqrt(float64(vi)))*c.root)+c.eps)
	}
}

func addWideGeneric(x []float32, sum []float64) {
	sum = sum[:len(x)]
	for i, v := range x {
		sum[i] += float64(v)
	}
}

func maxIndexGeneric(col []int32) uint32 {
	var m uint32
	for _, j := range col {
		m = max(m, uint32(j))
	}
	return m
}

// gemmGeneric is the plain triple loop, in the order that reads C and B by rows.
func gemmGeneric(g *gemm, _ *scratch, i0, i1, j0, j1 int) {
	if !g.acc {
		for i := i0; i < i1; i++ {
			clear(g.c[i*g.ldc+j0 : i*g.ldc+j1])
		}
	}
	switch g.form {
	case nn:
		for i := i0; i < i1; i++ {
			ci := g.c[i*g.ldc+j0 : i*g.ldc+j1]
			for p, v := range g.a[i*g.lda:][:g.k] {
				axpyGeneric(v, g.b[p*g.ldb+j0:p*g.ldb+j1], ci)
			}
			g.finish(i, i+1, j0, j1)
		}
	case tn:
		for p := range g.k {
			bp := g.b[p*g.ldb+j0 : p*g.ldb+j1]
			for i := i0; i < i1; i++ {
				axpyGeneric(g.a[p*g.lda+i], bp, g.c[i*g.ldc+j0:i*g.ldc+j1])
			}
		}
	case nt:
		for i := i0; i < i1; i++ {
			ai, ci := g.a[i*g.lda:][:g.k], g.c[i*g.ldc:]
			j := j0
			for ; j+4 <= j1; j += 4 { // four sums at once: a single sum waits for each addition
				b0, b1, b2, b3 := g.b[j*g.ldb:][:g.k], g.b[(j+1)*g.ldb:][:g.k], g.b[(j+2)*g.ldb:][:g.k],
					g.b[(j+3)*g.ldb:][:g.k]
				s0, s1, s2, s3 := ci[j], ci[j+1], ci[j+2], ci[j+3]
				for p, v := range ai {
					s0 += float32(v * b0[p])
					s1 += float32(v * b1[p])
					s2 += float32(v * b2[p])
					s3 += float32(v * b3[p])
				}
				ci[j], ci[j+1], ci[j+2], ci[j+3] = s0, s1, s2, s3
			}
			for ; j < j1; j++ {
				s := ci[j]
				for p, v := range g.b[j*g.ldb:][:g.k] {
					s += float32(ai[p] * v)
				}
				ci[j] = s
			}
		}
	}
}

func spmmGeneric(s *spmm, lo, hi int) {
	for i := lo; i < hi; i++ {
		yi := s.y[i*s.ldy:][:s.n]
		if !s.acc {
			clear(yi)
		}
		for k := s.rowPtr[i]; k < s.rowPtr[i+1]; k++ {
			xj := s.x[int(s.col[k])*s.ldx:][:s.n]
			if s.val != nil {
				axpyGeneric(s.val[k], xj, yi)
			} else {
				addGeneric(xj, yi)
			}
		}
	}
}

func spmaxGeneric(s *spmax, lo, hi int) { spmaxColumns(s, lo, hi, 0) }

// spmaxColumns computes the columns from `from` on.
func spmaxColumns(s *spmax, lo, hi, from int) {
	for i := lo; i < hi; i++ {
		yi, ai := s.y[i*s.ldy:][from:s.n], s.arg[i*s.lda:][from:s.n]
		for _, j := range s.col[s.rowPtr[i]:s.rowPtr[i+1]] {
			for c, v := range s.x[int(j)*s.ldx:][from:s.n] {
				if v > yi[c] {
					yi[c], ai[c] = v, j
				}
			}
		}
	}
}
