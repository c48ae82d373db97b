package graph

import "math"

// Union returns the edges of a and of b, which have the same destinations and sources and no edge
// in common.
func Union(a, b *CSR) *CSR {
	n := len(a.Col) + len(b.Col)
	out := &CSR{NumDst: a.NumDst, NumSrc: a.NumSrc, RowPtr: make([]int64, a.NumDst+1), Col: make([]int32, 0, n)}
	if a.Weight != nil || b.Weight != nil {
		out.Weight = make([]float32, 0, n)
	}
	for i := range a.NumDst {
		left, leftWeight := a.Row(i)
		right, rightWeight := b.Row(i)
		for l, r := 0, 0; l < len(left) || r < len(right); {
			if r == len(right) || l < len(left) && left[l] < right[r] {
				out.push(left, leftWeight, l)
				l++
			} else {
				out.push(right, rightWeight, r)
				r++
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}

// push appends edge k of a row.
func (g *CSR) push(col []int32, weight []float32, k int) {
	g.Col = append(g.Col, col[k])
	switch {
	case g.Weight == nil:
	case weight == nil:
		g.Weight = append(g.Weight, 1)
	default:
		g.Weight = append(g.Weight, weight[k])
	}
}

// Factors returns what each end of an edge puts into the weight that Normalise gives it: edge (j,
// i) of weight w gets w·dst[i]·src[j], up to rounding. So the sum over some sources of a
// destination can be made by whoever has their rows, and weighed by whoever has the destination.
// nil is 1 everywhere; degree is as in Normalise.
func Factors(degree []float32, norm Norm) (dst, src []float64) {
	switch norm {
	case GCN:
		f := make([]float64, len(degree))
		for i, d := range degree {
			if d > -1 {
				f[i] = 1 / math.Sqrt(1+float64(d))
			}
		}
		return f, f
	case Symmetric:
		f := make([]float64, len(degree))
		for i, d := range degree {
			if d > 0 {
				f[i] = 1 / math.Sqrt(float64(d))
			}
		}
		return f, f
	case Mean:
		f := make([]float64, len(degree))
		for i, d := range degree {
			if d > 0 {
				f[i] = 1 / float64(d)
			}
		}
		return f, nil
	}
	return nil, nil
}
