package graph

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/mat"
)

// How the types of this package lie in section files. Each writer has its reader below it, which checks everything
// that Valid checks; what it returns shares the file's memory.

// Sections returns the adjacency as sections adj/NUMBER/…: 0 is that of all edges, 1 the stack of relations.
func (g *CSR) Sections(number int) []Section {
	name := fmt.Sprintf("adj/%d/", number)
	list := []Section{Array(name+"row_ptr", g.RowPtr), Array(name+"col", g.Col)}
	if g.Weight != nil {
		list = append(list, Array(name+"weight", g.Weight))
	}
	return list
}

// CSR returns the adjacency under a number, 0 that of all edges, between numDst destinations and numSrc sources.
func (f *Sections) CSR(number, numDst, numSrc int) (g CSR, err error) {
	name := fmt.Sprintf("adj/%d/", number)
	g.NumDst, g.NumSrc = numDst, numSrc
	if g.RowPtr, err = Values[int64](f, name+"row_ptr", numDst+1); err != nil {
		return CSR{}, err
	}
	if g.Col, err = Values[int32](f, name+"col"); err != nil {
		return CSR{}, err
	}
	if f.Has(name + "weight") {
		if g.Weight, err = Values[float32](f, name+"weight", len(g.Col)); err != nil {
			return CSR{}, err
		}
	}
	if err := g.Valid(); err != nil {
		return CSR{}, f.Errorf(name+"col", "%w", err)
	}
	if err := g.validWeights(); err != nil {
		return CSR{}, f.Errorf(name+"weight", "%w", err)
	}
	return g, nil
}

// Sections returns the features as sections x/…, none where there are none.
func (f Features) Sections() []Section {
	if s := f.Sparse; s != nil {
		return []Section{Array("x/shape", []int64{int64(s.Rows), int64(s.Cols)}),
			Array("x/row_ptr", s.RowPtr), Array("x/col", s.Col), Array("x/val", s.Val)}
	}
	if f.Dense.Cols == 0 {
		return nil
	}
	d := f.Dense
	if !d.Compact() {
		d = d.Clone()
	}
	return []Section{Array("x/dense", d.Data[:d.Rows*d.Cols], d.Rows, d.Cols)}
}

// Features returns the features of the given number of rows.
func (f *Sections) Features(rows int) (x Features, err error) {
	name := "x/dense"
	switch {
	case f.Has(name):
		data, err := Values[float32](f, name, rows, -1)
		if err != nil {
			return Features{}, err
		}
		x.Dense = mat.View(rows, f.list[f.index[name]].Shape[1], data)
	case f.Has("x/shape"):
		name = "x/val"
		shape, err := Values[int64](f, "x/shape", 2)
		if err != nil {
			return Features{}, err
		}
		s := &mat.Sparse{Rows: rows, Cols: int(shape[1])}
		if shape[0] != int64(rows) || shape[1] < 0 || shape[1] > math.MaxInt32 {
			return Features{}, f.Errorf("x/shape", "%d×%d, want %d rows and at most %d columns", shape[0], shape[1], rows, math.MaxInt32)
		}
		if s.RowPtr, err = Values[int64](f, "x/row_ptr", rows+1); err != nil {
			return Features{}, err
		}
		if s.Col, err = Values[int32](f, "x/col"); err != nil {
			return Features{}, err
		}
		if s.Val, err = Values[float32](f, "x/val", len(s.Col)); err != nil {
			return Features{}, err
		}
		x.Sparse = s
	}
	if err := x.Valid(); err != nil {
		return Features{}, f.Errorf(name, "%w", err)
	}
	return x, nil
}

// Sections returns the labels as sections y/….
func (l Labels) Sections() []Section {
	list := []Section{Array("y/classes", []int64{int64(l.Classes)})}
	if l.Class != nil {
		list = append(list, Array("y/class", l.Class))
	}
	if l.Bits != nil {
		list = append(list, Array("y/bits", l.Bits))
	}
	return append(list, Strings("y/names", l.Names)...)
}

// Labels returns the labels of n nodes.
func (f *Sections) Labels(n int) (l Labels, err error) {
	classes, err := Values[int64](f, "y/classes", 1)
	if err != nil {
		return Labels{}, err
	}
	l.Classes = int(classes[0])
	if classes[0] < 0 || classes[0] > math.MaxInt32 {
		return Labels{}, f.Errorf("y/classes", "%d classes, want 0 to %d", classes[0], math.MaxInt32)
	}
	if f.Has("y/class") {
		if l.Class, err = Values[int32](f, "y/class", n); err != nil {
			return Labels{}, err
		}
	}
	if f.Has("y/bits") {
		if l.Bits, err = Values[uint8](f, "y/bits"); err != nil {
			return Labels{}, err
		}
	}
	if l.Names, err = f.Strings("y/names", l.Classes); err != nil {
		return Labels{}, err
	}
	if err := l.Valid(n); err != nil {
		return Labels{}, f.Errorf("y/class", "%w", err)
	}
	return l, nil
}

// Strings returns a list of strings as sections NAME/ptr and NAME/text, none where the list is nil: string k is bytes
// [ptr[k], ptr[k+1]) of text.
func Strings(name string, list []string) []Section {
	if list == nil {
		return nil
	}
	ptr := make([]int64, len(list)+1)
	for k, s := range list {
		ptr[k+1] = ptr[k] + int64(len(s))
	}
	return []Section{Array(name+"/ptr", ptr), Array(name+"/text", []byte(strings.Join(list, "")))}
}

// Strings returns copies of the n strings of NAME, nil where the file has none.
func (f *Sections) Strings(name string, n int) ([]string, error) {
	if !f.Has(name + "/ptr") {
		return nil, nil
	}
	ptr, err := Values[int64](f, name+"/ptr", -1)
	if err != nil {
		return nil, err
	}
	text, err := Values[uint8](f, name+"/text")
	if err != nil {
		return nil, err
	}
	if len(ptr) != n+1 || ptr[0] != 0 || ptr[n] != int64(len(text)) {
		return nil, f.Errorf(name+"/ptr", "%d pointers, want %d from 0 to %d", len(ptr), n+1, len(text))
	}
	for k := range n {
		if ptr[k+1] < ptr[k] || ptr[k+1] > int64(len(text)) {
			return nil, f.Errorf(name+"/ptr", "string %d ends at %d, before its start %d or past the %d bytes", k, ptr[k+1], ptr[k], len(text))
		}
	}
	all, list := string(text), make([]string, n)
	for k := range list {
		list[k] = all[ptr[k]:ptr[k+1]]
	}
	return list, nil
}

// Sections returns everything in g that training may use, all but the sites, as it lies in a file of kind GraphKind.
func (g *Graph) Sections() []Section {
	list := []Section{Array("name", []byte(g.Name)), Array("split", g.Split), Array("encoding", g.Encoding)}
	list = append(list, g.Adj.Sections(0)...)
	list = append(list, g.Typed.Sections()...)
	list = append(list, g.X.Sections()...)
	list = append(list, g.Labels.Sections()...)
	return append(list, Strings("ids", g.IDs)...)
}

// GraphKind is the kind of the section files that hold a whole graph.
const GraphKind = "graph"

// Digest returns the SHA-256 of a file of g.Sections(). Equal graphs have equal digests on every machine.
func (g *Graph) Digest() [32]byte {
	h := sha256.New()
	if err := EncodeSections(h, GraphKind, g.Sections()); err != nil {
		panic(err) // the names are ours, and a hash takes every byte: only a big-endian machine comes here
	}
	return [32]byte(h.Sum(nil))
}
