package tape

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Product writes y = x·w + bias, or adds it to y, and applies ReLU where relu. bias is that of each column, or nil.
func Product(y, x, w mat.Dense, add bool, bias []float32, relu bool) {
	kernels.GemmNNBias(y.Rows, y.Cols, w.Rows, x.Data, x.Stride, w.Data, w.Stride, y.Data, y.Stride, add, bias, relu)
}

// AddWeightGrad adds xᵀ·dy to dw.
func AddWeightGrad(dw, x, dy mat.Dense) {
	kernels.GemmTN(dw.Rows, dw.Cols, dy.Rows, x.Data, x.Stride, dy.Data, dy.Stride, dw.Data, dw.Stride, true)
}

// InputGrad writes dx = dy·wᵀ, or adds it to dx.
func InputGrad(dx, dy, w mat.Dense, add bool) {
	kernels.GemmNT(dx.Rows, dx.Cols, w.Cols, dy.Data, dy.Stride, w.Data, w.Stride, dx.Data, dx.Stride, add)
}

// WeightedSum writes y = S·x, or adds it to y: S is a CSR of values val (nil: all 1).
func WeightedSum(y mat.Dense, rowPtr []int64, col []int32, val []float32, x mat.Dense, add bool) {
	kernels.SpMM(rowPtr, col, val, x.Cols, x.Data, x.Stride, y.Data, y.Stride, add)
}

// SparseProduct writes y = x·w, or adds it to y, of sparse rows x.
func SparseProduct(y mat.Dense, x *mat.Sparse, w mat.Dense, add bool) {
	kernels.SpMMPanels(x.RowPtr, x.Col, x.Val, w.Cols, w.Data, w.Stride, y.Data, y.Stride, add)
}
