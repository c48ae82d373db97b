package graph

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/mat"
)

// The section formats of this package's types. Each writer is followed by its reader, which checks everything that
// Valid checks; the result shares the file's memory.

// Sections returns the adjacency as sections adj/NUMBER/…: 0 is for all edges, 1 the stack of
// relations.
func (g *CSR) Sections(number int) []section.Section {
	name := fmt.Sprintf("adj/%d/", number)
	list := []section.Section{section.Array(name+"row_ptr", g.RowPtr), section.Array(name+"col", g.Col)}
	if g.Weight != nil {
		list = append(list, section.Array(name+"weight", g.Weight))
	}
	if g.Edge != nil {
		list = append(list, section.Array(name+"edge", g.Edge))
	}
	return list
}

// readCSR returns the adjacency under a number, 0 for all edges, between numDst destinations
// and numSrc sources.
func readCSR(f *section.Arrays, number, numDst, numSrc int) (g CSR, err error) {
	name := fmt.Sprintf("adj/%d/", number)
	g.NumDst, g.NumSrc = numDst, numSrc
	if g.RowPtr, err = section.Values[int64](f, name+"row_ptr", numDst+1); err != nil {
		return CSR{}, err
	}
	if g.Col, err = section.Values[int32](f, name+"col"); err != nil {
		return CSR{}, err
	}
	if g.Weight, err = section.Optional[float32](f, name+"weight", len(g.Col)); err != nil {
		return CSR{}, err
	}
	if g.Edge, err = section.Optional[int32](f, name+"edge", len(g.Col)); err != nil {
		return CSR{}, err
	}
	if err := g.Valid(); err != nil {
		return CSR{}, f.Errorf(name+"col", "%w", err)
	}
	if err := g.validWeights(); err != nil {
		return CSR{}, f.Errorf(name+"weight", "%w", err)
	}
	return g, nil
}

// Sections returns the rows as sections NAME/…, none if there are none: x for the features of nodes,
// edge for the columns of edges.
func (f Features) Sections(name string) []section.Section {
	if s := f.Sparse; s != nil {
		return []section.Section{section.Array(name+"/shape", []int64{int64(s.Rows), int64(s.Cols)}),
			section.Array(name+"/row_ptr", s.RowPtr), section.Array(name+"/col", s.Col),
			section.Array(name+"/val", s.Val)}
	}
	if f.Dense.Cols == 0 {
		return nil
	}
	d := f.Dense
	if !d.Compact() {
		d = d.Clone()
	}
	return []section.Section{section.Array(name+"/dense", d.Data[:d.Rows*d.Cols], d.Rows, d.Cols)}
}

// readFeatures returns the rows under a name, as many as given (−1 = any number).
func readFeatures(f *section.Arrays, name string, rows int) (x Features, err error) {
	at := name + "/dense"
	switch {
	case f.Has(at):
		data, err := section.Values[float32](f, at, rows, -1)
		if err != nil {
			return Features{}, err
		}
		shape, err := f.Shape(at, section.F32)
		if err != nil {
			return Features{}, err
		}
		x.Dense = mat.View(shape[0], shape[1], data)
	case f.Has(name + "/shape"):
		at = name + "/val"
		if x.Sparse, err = readSparse(f, name, rows); err != nil {
			return Features{}, err
		}
	}
	if err := x.Valid(); err != nil {
		return Features{}, f.Errorf(at, "%w", err)
	}
	return x, nil
}

// readSparse reads sparse rows, as many as given (−1 = any number), and checks pointers, columns and values.
func readSparse(f *section.Arrays, name string, rows int) (*mat.Sparse, error) {
	shape, err := section.Values[int64](f, name+"/shape", 2)
	if err != nil {
		return nil, err
	}
	if rows < 0 {
		rows = int(min(max(shape[0], 0), math.MaxInt32))
	}
	s := &mat.Sparse{Rows: rows, Cols: int(shape[1])}
	if shape[0] != int64(rows) || shape[1] < 0 || shape[1] > math.MaxInt32 {
		return nil, f.Errorf(name+"/shape", "must be %d rows of at most %d columns (got %d×%d)", rows, math.MaxInt32,
			shape[0], shape[1])
	}
	if s.RowPtr, err = section.Values[int64](f, name+"/row_ptr", rows+1); err != nil {
		return nil, err
	}
	if s.Col, err = section.Values[int32](f, name+"/col"); err != nil {
		return nil, err
	}
	s.Val, err = section.Values[float32](f, name+"/val", len(s.Col))
	return s, err
}

// Sections returns the labels as sections y/….
func (l Labels) Sections() []section.Section {
	list := []section.Section{section.Array("y/classes", []int64{int64(l.Classes)})}
	if l.Class != nil {
		list = append(list, section.Array("y/class", l.Class))
	}
	if l.Bits != nil {
		list = append(list, section.Array("y/bits", l.Bits))
	}
	if l.Values != nil {
		list = append(list, section.Array("y/values", l.Values))
	}
	return append(list, section.Strings("y/names", l.Names)...)
}

// readLabels returns the labels of n nodes.
func readLabels(f *section.Arrays, n int) (l Labels, err error) {
	classes, err := section.Values[int64](f, "y/classes", 1)
	if err != nil {
		return Labels{}, err
	}
	l.Classes = int(classes[0])
	if classes[0] < 0 || classes[0] > math.MaxInt32 {
		return Labels{}, f.Errorf("y/classes", "number of classes must be 0 to %d (got %d)", math.MaxInt32, classes[0])
	}
	if l.Class, err = section.Optional[int32](f, "y/class", n); err != nil {
		return Labels{}, err
	}
	if l.Bits, err = section.Optional[uint8](f, "y/bits"); err != nil {
		return Labels{}, err
	}
	if l.Values, err = section.Optional[float32](f, "y/values"); err != nil {
		return Labels{}, err
	}
	if l.Names, err = f.Strings("y/names", l.Classes); err != nil {
		return Labels{}, err
	}
	if err := l.Valid(n); err != nil {
		return Labels{}, f.Errorf("y/class", "%w", err)
	}
	return l, nil
}

// Sections returns everything in g that training may use, all but the sites, as it is in a file
// of kind GraphKind.
func (g *Graph) Sections() []section.Section {
	list := []section.Section{section.Array("name", []byte(g.Name)), section.Array("split", g.Split),
		section.Array("encoding", g.Encoding)}
	list = append(list, g.Adj.Sections(0)...)
	list = append(list, g.Typed.Sections()...)
	list = append(list, g.X.Sections("x")...)
	list = append(list, g.Types.Sections()...)
	list = append(list, Features{Dense: g.EdgeX}.Sections("edge")...)
	list = append(list, g.Labels.Sections()...)
	return append(list, section.Strings("ids", g.IDs)...)
}

// GraphKind is the kind of the section files that hold a whole graph.
const GraphKind = "graph"

// Digest returns the SHA-256 of a file of g.Sections(). Equal graphs have equal digests on every machine.
func (g *Graph) Digest() [32]byte {
	h := sha256.New()
	if err := section.Encode(h, GraphKind, g.Sections()); err != nil {
		panic(err) // the names are valid, and a hash accepts every byte: this is a big-endian machine
	}
	return [32]byte(h.Sum(nil))
}
