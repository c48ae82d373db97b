package recovery

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Shapes has rows and columns of the features of a checkpoint, by their names; it belongs in the checkpoint's header.
type Shapes map[string][2]int

// PutFeatures adds f to c under a name, and its shape to shapes. Features without rows and columns leave no trace.
func (c *Checkpoint) PutFeatures(shapes Shapes, name string, f graph.Features) {
	if f.Rows() == 0 && f.Cols() == 0 {
		return
	}
	shapes[name] = [2]int{f.Rows(), f.Cols()}
	if f.Sparse == nil {
		c.F32[name] = f.Dense.Clone().Data
		return
	}
	c.I64[name+"/rowptr"], c.I64[name+"/col"], c.F32[name] = f.Sparse.RowPtr, widen(f.Sparse.Col), f.Sparse.Val
}

// PutGraph adds the edges of a graph to c under a name, with the degrees of its sources.
func (c *Checkpoint) PutGraph(name string, adj *graph.CSR, degree []float32) {
	c.I64[name+"/rowptr"], c.I64[name+"/col"] = adj.RowPtr, widen(adj.Col)
	c.F32[name+"/degree"] = degree
	if adj.Weight != nil {
		c.F32[name+"/weight"] = adj.Weight
	}
}

// Rows reads what PutFeatures and PutGraph added to a checkpoint.
type Rows struct {
	Of     *Checkpoint
	Shapes Shapes
	Err    error // the first fault
}

// Has reports whether features were added under that name.
func (r *Rows) Has(name string) bool {
	_, ok := r.Shapes[name]
	return ok
}

// Features returns the features of that name, none if there are none.
func (r *Rows) Features(name string) graph.Features {
	shape, ok := r.Shapes[name]
	if !ok {
		return graph.Features{}
	}
	if ptr, sparse := r.Of.I64[name+"/rowptr"]; sparse {
		s := &mat.Sparse{Rows: shape[0], Cols: shape[1], RowPtr: ptr, Col: narrow(r.Of.I64[name+"/col"]), Val: r.Of.F32[name]}
		r.fault(s.Valid())
		return graph.Features{Sparse: s}
	}
	d := mat.Dense{Rows: shape[0], Cols: shape[1], Stride: shape[1], Data: r.Of.F32[name]}
	r.fault(d.Valid())
	return graph.Features{Dense: d}
}

// Graph returns the edges of that name, with degrees, from so many sources.
func (r *Rows) Graph(name string, sources int) (adj *graph.CSR, degree []float32) {
	adj = &graph.CSR{RowPtr: r.Of.I64[name+"/rowptr"], Col: narrow(r.Of.I64[name+"/col"]), Weight: r.Of.F32[name+"/weight"]}
	degree = r.Of.F32[name+"/degree"]
	adj.NumDst, adj.NumSrc = len(adj.RowPtr)-1, sources
	r.fault(adj.Valid())
	return adj, degree
}

func (r *Rows) fault(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

func widen(x []int32) []int64 {
	y := make([]int64, len(x))
	for i, v := range x {
		y[i] = int64(v)
	}
	return y
}

func narrow(x []int64) []int32 {
	y := make([]int32, len(x))
	for i, v := range x {
		y[i] = int32(v)
	}
	return y
}
