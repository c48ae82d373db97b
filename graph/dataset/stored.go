package dataset

import (
	"bufio"
	"errors"
	"io"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/mat"
)

// StoredNodes is a table of nodes that becomes a stored graph. Its features, which need not fit into memory, are read
// row by row while they are written.
type StoredNodes struct {
	Graph  *graph.Graph // without edges, features and names
	Facts  *table.Facts // what the columns became, without edges
	cfg    ImportConfig
	e      *Encoding
	values []int32 // [N] number of values in each row of features
}

// ReadStored reads the table of nodes of cfg, which names no table of edges, twice: first to decide what its columns
// become, like Import, then for labels, splits and owners. The names of the nodes must be 0, 1, 2, … in the order of
// the table, so that they need no memory. It takes some 10 bytes a node.
func ReadStored(cfg ImportConfig) (*StoredNodes, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Format.Faults = nil // the first fault ends it: to skip a row would renumber the others
	p, err := cfg.Profile()
	if err != nil {
		return nil, err
	}
	s := &StoredNodes{cfg: p.Config}
	if s.e, err = p.Local(); err != nil {
		return nil, err
	}
	var r *Reading
	s.Graph, _, r, err = s.e.scanNodes([]string{s.cfg.Nodes}, s.cfg.Format, func(x *mat.Sparse) error {
		s.values = append(s.values, int32(x.NNZ()))
		return nil
	})
	if err == nil {
		err = Rows(s.cfg.Nodes, s.Graph)
	}
	if err != nil {
		return nil, err
	}
	s.Facts = &table.Facts{Tables: r.Tables, Label: s.e.Label}
	p.addColumns(s.Facts, s.e)
	r.addUnknown(s.Facts, s.e)
	s.Facts.AddNodes(s.Graph)
	s.Facts.Warn()
	return s, s.cfg.finish(s.Graph, s.e)
}

// Features returns the features as sections of a graph file, dense if Import's would be dense: each section reads the
// table once.
func (s *StoredNodes) Features() []section.Section {
	n, cols, total := len(s.values), s.e.Width(), int64(0)
	for _, v := range s.values {
		total += int64(v)
	}
	switch {
	case cols == 0:
		return nil
	case fuller(total, n, cols):
		row := make([]float32, cols)
		return []section.Section{section.Stream("x/dense", section.F32, []int{n, cols},
			s.rows(func(w io.Writer, x *mat.Sparse) error {
				clear(row)
				for k, j := range x.Col {
					row[j] = x.Val[k]
				}
				return section.WriteArray(w, row)
			}))}
	}
	return []section.Section{
		section.Array("x/shape", []int64{int64(n), int64(cols)}),
		section.Stream("x/row_ptr", section.I64, []int{n + 1},
			func(w io.Writer) error { return section.WritePointers(w, s.values) }),
		section.Stream("x/col", section.I32, []int{int(total)},
			s.rows(func(w io.Writer, x *mat.Sparse) error { return section.WriteArray(w, x.Col) })),
		section.Stream("x/val", section.F32, []int{int(total)},
			s.rows(func(w io.Writer, x *mat.Sparse) error { return section.WriteArray(w, x.Val) })),
	}
}

// rows returns a function that writes one piece of each row of the table.
func (s *StoredNodes) rows(write func(w io.Writer, x *mat.Sparse) error) func(io.Writer) error {
	return func(w io.Writer) error {
		b, at := bufio.NewWriterSize(w, 1<<16), 0
		_, _, _, err := s.e.scanNodes([]string{s.cfg.Nodes}, s.cfg.Format, func(x *mat.Sparse) error {
			if at == len(s.values) || int(s.values[at]) != x.NNZ() {
				return errors.New(s.cfg.Nodes + ": has changed while it was read")
			}
			at++
			return write(b, x)
		})
		return errors.Join(err, b.Flush())
	}
}
