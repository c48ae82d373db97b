package graph

import "math"

// Union returns the edges of a and of b, which have the same destinations and sources and no edge
// in common, and whose rows are in one table.
func Union(a, b *CSR) *CSR {
	out := roomFor(a.NumDst, a.NumSrc, int64(len(a.Col)+len(b.Col)), a, b)
	for i := range a.NumDst {
		l, endL := a.RowPtr[i], a.RowPtr[i+1]
		for r, endR := b.RowPtr[i], b.RowPtr[i+1]; l < endL || r < endR; {
			if r == endR || l < endL && a.Col[l] < b.Col[r] {
				out.take(a, l, a.Col[l])
				l++
			} else {
				out.take(b, r, b.Col[r])
				r++
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}

// Factors returns what each end of an edge puts into the weight that Normalise gives it: edge (j,
// i) of weight w gets w·dst[i]·src[j], up to rounding. So the sum over some sources of a
// destination can be made by the member that has their rows, and weighed by the member that has the destination.
// nil is 1 everywhere; degree is as in Normalise.
func Factors(degree []float32, norm Norm) (dst, src []float64) {
	if norm != GCN && norm != Symmetric && norm != Mean {
		return nil, nil
	}
	f := make([]float64, len(degree))
	for i, d := range degree {
		switch {
		case norm == GCN && d > -1:
			f[i] = 1 / math.Sqrt(1+float64(d))
		case norm == Symmetric && d > 0:
			f[i] = 1 / math.Sqrt(float64(d))
		case norm == Mean && d > 0:
			f[i] = 1 / float64(d)
		}
	}
	if norm == Mean {
		return f, nil
	}
	return f, f
}
