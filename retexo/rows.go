package retexo

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// shapes has the numbers of rows and columns of a checkpoint's features, by the features' names. It is part of the
// checkpoint's header.
type shapes map[string][2]int

// put adds f to c under a name, and its shape to s. Features without rows or columns are not added.
func (s shapes) put(c *train.Checkpoint, name string, f graph.Features) {
	if f.Rows() == 0 && f.Cols() == 0 {
		return
	}
	s[name] = [2]int{f.Rows(), f.Cols()}
	if f.Sparse == nil {
		c.F32[name] = f.Dense.Clone().Data
		return
	}
	c.I64[name+"/rowptr"], c.I64[name+"/col"], c.F32[name] = f.Sparse.RowPtr, widen(f.Sparse.Col), f.Sparse.Val
}

// putGraph adds the edges of a graph to c under a name, with the degrees of its sources.
func putGraph(c *train.Checkpoint, name string, adj *graph.CSR, degree []float32) {
	c.I64[name+"/rowptr"], c.I64[name+"/col"] = adj.RowPtr, widen(adj.Col)
	c.F32[name+"/degree"] = degree
	if adj.Weight != nil {
		c.F32[name+"/weight"] = adj.Weight
	}
}

// savedRows reads the values that put and putGraph added to a checkpoint.
type savedRows struct {
	of     *train.Checkpoint
	shapes shapes
	err    error // the first fault
}

// features returns the features of that name, or none if the checkpoint has none.
func (r *savedRows) features(name string) graph.Features {
	shape, ok := r.shapes[name]
	if !ok {
		return graph.Features{}
	}
	if ptr, sparse := r.of.I64[name+"/rowptr"]; sparse {
		s := &mat.Sparse{Rows: shape[0], Cols: shape[1], RowPtr: ptr, Col: narrow(r.of.I64[name+"/col"]),
			Val: r.of.F32[name]}
		r.fault(s.Valid())
		return graph.Features{Sparse: s}
	}
	d := mat.Dense{Rows: shape[0], Cols: shape[1], Stride: shape[1], Data: r.of.F32[name]}
	r.fault(d.Valid())
	return graph.Features{Dense: d}
}

// graph returns the edges of that name from `sources` nodes, with the sources' degrees.
func (r *savedRows) graph(name string, sources int) (adj *graph.CSR, degree []float32) {
	adj = &graph.CSR{RowPtr: r.of.I64[name+"/rowptr"], Col: narrow(r.of.I64[name+"/col"]),
		Weight: r.of.F32[name+"/weight"]}
	degree = r.of.F32[name+"/degree"]
	adj.NumDst, adj.NumSrc = len(adj.RowPtr)-1, sources
	r.fault(adj.Valid())
	return adj, degree
}

func (r *savedRows) fault(err error) {
	if r.err == nil {
		r.err = err
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
