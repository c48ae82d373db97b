package graph

import "github.com/heddle-gnn/heddle/mat"

// Columns returns the rows of list side by side, sparse if all of them are.
func Columns(list []Features) Features {
	rows, cols, sparse := list[0].Rows(), 0, true
	for _, f := range list {
		cols += f.Cols()
		sparse = sparse && f.Sparse != nil
	}
	if !sparse {
		out := mat.New(rows, cols)
		at := 0
		for _, f := range list {
			out.ColRange(at, at+f.Cols()).CopyFrom(f.Matrix())
			at += f.Cols()
		}
		return Features{Dense: out}
	}
	out := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	for i := range rows {
		at := int32(0)
		for _, f := range list {
			col, val := f.Sparse.Row(i)
			for _, j := range col {
				out.Col = append(out.Col, at+j)
			}
			out.Val = append(out.Val, val...)
			at += int32(f.Cols())
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return Features{Sparse: out}
}

// Below returns the rows of list one below the other, sparse if all of them are.
func Below(list []Features) Features {
	rows, cols, sparse := 0, list[0].Cols(), true
	for _, f := range list {
		rows += f.Rows()
		sparse = sparse && f.Sparse != nil
	}
	if !sparse {
		out, at := mat.New(rows, cols), 0
		for _, f := range list {
			out.RowRange(at, at+f.Rows()).CopyFrom(f.Matrix())
			at += f.Rows()
		}
		return Features{Dense: out}
	}
	n := 0
	for _, f := range list {
		n += f.Sparse.NNZ()
	}
	out := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: make([]int64, 1, rows+1), Col: make([]int32, 0, n),
		Val: make([]float32, 0, n)}
	for _, f := range list {
		for _, end := range f.Sparse.RowPtr[1:] {
			out.RowPtr = append(out.RowPtr, int64(len(out.Col))+end)
		}
		out.Col, out.Val = append(out.Col, f.Sparse.Col...), append(out.Val, f.Sparse.Val...)
	}
	return Features{Sparse: out}
}

// Diagonal returns the rows of list one below the other. Each matrix has its own columns; all other values are 0.
func Diagonal(list []Features) *mat.Sparse {
	out := &mat.Sparse{RowPtr: []int64{0}}
	for _, f := range list {
		for i := range f.Rows() {
			if f.Sparse != nil {
				col, val := f.Sparse.Row(i)
				for _, j := range col {
					out.Col = append(out.Col, int32(out.Cols)+j)
				}
				out.Val = append(out.Val, val...)
			} else {
				for j, v := range f.Dense.Row(i) {
					if v != 0 {
						out.Col, out.Val = append(out.Col, int32(out.Cols+j)), append(out.Val, v)
					}
				}
			}
			out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
		}
		out.Rows, out.Cols = out.Rows+f.Rows(), out.Cols+f.Cols()
	}
	return out
}

// OneHot returns a row for each class of the list, 1 at its column, or zeros for −1.
func OneHot(class []int32, classes int) Features {
	s := &mat.Sparse{Rows: len(class), Cols: classes, RowPtr: make([]int64, len(class)+1)}
	for i, y := range class {
		if y >= 0 {
			s.Col, s.Val = append(s.Col, y), append(s.Val, 1)
		}
		s.RowPtr[i+1] = int64(len(s.Col))
	}
	return Features{Sparse: s}
}

// ClassIn returns the class of every node in a split, −1 for all others.
func ClassIn(in Split, l Labels, split []Split) []int32 {
	class := make([]int32, len(split))
	for i, s := range split {
		if class[i] = -1; s == in && l.Class != nil {
			class[i] = l.Class[i]
		}
	}
	return class
}
