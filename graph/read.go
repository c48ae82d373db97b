package graph

import (
	"bytes"
	"os"

	"github.com/heddle-gnn/heddle/graph/section"
)

// Read reads a file of kind GraphKind into memory, with types, relations, columns of edges and sites if it has them.
func Read(path string) (*Graph, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := section.Decode(path, GraphKind, b)
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	if err := g.read(f); err != nil {
		return nil, err
	}
	return g, nil
}

// read reads the sections that Sections wrote, and the sites.
func (g *Graph) read(f *section.Arrays) (err error) {
	for name, to := range map[string]func(b []byte){"name": func(b []byte) { g.Name = string(b) },
		"encoding": func(b []byte) { g.Encoding = b }} {
		b, err := section.Values[uint8](f, name)
		if err != nil {
			return err
		}
		if len(b) > 0 {
			to(bytes.Clone(b))
		}
	}
	if g.Split, err = section.Values[Split](f, "split", -1); err != nil {
		return err
	}
	n := len(g.Split)
	if err := g.ReadTables(f, n, n); err != nil {
		return err
	}
	if f.Has("site") {
		if g.Site, err = section.Values[int32](f, "site", n); err != nil {
			return err
		}
		if g.Sites, err = f.Strings("sites", -1); err != nil {
			return err
		}
	}
	if err := g.Valid(); err != nil {
		return f.Errorf("adj/0/col", "%w", err)
	}
	return nil
}

// ReadTables reads the tables of numDst nodes that Sections wrote, and the edges into them from numSrc nodes. It does
// not read name, encoding and splits.
func (g *Graph) ReadTables(f *section.Arrays, numDst, numSrc int) (err error) {
	if g.Adj, err = readCSR(f, 0, numDst, numSrc); err != nil {
		return err
	}
	if err := g.Typed.read(f, &g.Adj); err != nil {
		return err
	}
	if g.X, err = readFeatures(f, "x", numDst); err != nil {
		return err
	}
	if err := g.Types.read(f, numDst, g.X); err != nil {
		return err
	}
	edge, err := readFeatures(f, "edge", -1)
	if err != nil {
		return err
	}
	if g.EdgeX = edge.Dense; edge.Sparse != nil {
		return f.Errorf("edge/shape", "columns of edges must be dense")
	}
	if g.Labels, err = readLabels(f, numDst); err != nil {
		return err
	}
	g.IDs, err = f.Strings("ids", numDst)
	return err
}
