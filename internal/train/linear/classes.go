package linear

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// Means maps features to one column per class by diagonal linear discriminant analysis with a shrunken variance
// (Tibshirani, Hastie, Narasimhan and Chu, PNAS 2002). Let D = diag(s/mean(s) + shrink), s the sums of squares by
// column, m_c the mean of class c and t/N the mean of all nodes; then column c of the map is D⁻¹(m_c − t/N). A peer
// sends only its parts of sums: 2F numbers once, and F·C for each map.
type Means struct {
	Inverse []float32 // [F] D⁻¹
	Centre  []float32 // [F] t/N

	common []float32 // [F] factor of row f of Sums: rare columns count as common ones if sums are rounded
}

// rare is the variance, in units of the mean, below which Sums does not raise a column further.
const rare = 0.05

// Statistics returns this peer's part of the sum and of the sum of squares of each column of the features x, F×2, over
// the given rows.
func Statistics(x graph.Features, rows []int32) hmat.Dense {
	f := x.Cols()
	sums := make([]float64, 2*f)
	eachValue(x, rows, func(j int, v float32) {
		sums[2*j] += float64(v)
		sums[2*j+1] += float64(v) * float64(v)
	})
	y := hmat.New(f, 2)
	for j, v := range sums {
		y.Data[j] = float32(v)
	}
	return y
}

// eachValue calls do with the column and the value of every value of the rows that may be other than 0.
func eachValue(x graph.Features, rows []int32, do func(j int, v float32)) {
	for _, i := range rows {
		if s := x.Sparse; s != nil {
			col, val := s.Row(int(i))
			for k, j := range col {
				do(int(j), val[k])
			}
			continue
		}
		for j, v := range x.Dense.Row(int(i)) {
			do(j, v)
		}
	}
}

// Agree takes the statistics of all peers, over n rows.
func (m *Means) Agree(stats hmat.Dense, n, shrink float64) {
	f := stats.Rows
	mean := 0.0
	for j := range f {
		mean += float64(stats.At(j, 1)) / float64(f)
	}
	if !(mean > 0) {
		mean = 1 // features of zeros
	}
	m.Inverse, m.Centre, m.common = make([]float32, f), make([]float32, f), make([]float32, f)
	for j := range f {
		variance := max(float64(stats.At(j, 1))/mean, 0)
		m.Inverse[j] = float32(1 / (variance + shrink))
		m.Centre[j] = float32(float64(stats.At(j, 0)) / max(n, 1))
		m.common[j] = float32(1 / math.Sqrt(variance+rare))
	}
}

// Sums returns this peer's part of XᵀP of features x, F×C, each row times a factor that Map and ResidualMap take out
// again. P, N×C, is the weight of each node in each class.
func (m *Means) Sums(x graph.Features, p hmat.Dense) hmat.Dense {
	y := hmat.New(x.Cols(), p.Cols)
	if x.Sparse != nil {
		t := x.Sparse.Transpose(nil)
		kernels.SpMM(t.RowPtr, t.Col, t.Val, p.Cols, p.Data, p.Stride, y.Data, y.Stride, false)
	} else if d := x.Dense; !d.Empty() {
		kernels.GemmTN(d.Cols, p.Cols, d.Rows, d.Data, d.Stride, p.Data, p.Stride, y.Data, y.Stride, false)
	}
	m.Scale(y)
	return y
}

// Scale makes plain sums of rows over each class, F×C, what Sums returns.
func (m *Means) Scale(sums hmat.Dense) {
	for j, f := range m.common {
		kernels.Scale(f, sums.Row(j))
	}
}

// Map returns the map of the class means, F×C, from the sum of all peers' Sums and of the columns of P. If n of a class
// is 0, its column is zeros.
func (m *Means) Map(sums hmat.Dense, n []float64) hmat.Dense {
	u := hmat.New(sums.Rows, sums.Cols)
	for j := range u.Rows {
		for c, k := range n {
			if k > 0 {
				u.Set(j, c, m.Inverse[j]*(sums.At(j, c)/m.common[j]/float32(k)-m.Centre[j]))
			}
		}
	}
	return u
}

// ResidualMap returns D⁻¹XᵀE, the direction in which a linear model with a diagonal metric descends,
// from the sum of all peers' Sums of the residuals E of their training nodes.
func (m *Means) ResidualMap(sums hmat.Dense) hmat.Dense {
	u := sums.Clone()
	for j, f := range m.common {
		kernels.Scale(m.Inverse[j]/f, u.Row(j))
	}
	return u
}
