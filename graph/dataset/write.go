package dataset

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
)

// Write stores g in a new directory dir so that Read(dir, 0) returns the same graph: graph.npz and meta.json in the
// layout of the package comment. Each undirected edge is stored once; if edges have types, each edge of each relation
// is stored. dir must not exist or must be empty; it appears complete or not at all.
func Write(dir string, g *graph.Graph) error {
	return WriteUntil(dir, g, func() error { return nil })
}

// WriteUntil is Write that calls stopped every few kilobytes. If stopped returns an error, it ends the work, and
// nothing is left.
func WriteUntil(dir string, g *graph.Graph, stopped func() error) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s: the directory is not empty; remove it or choose another", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, os.RemoveAll(tmp)); err != nil {
			err = fmt.Errorf("%s: %w", dir, err)
		}
	}()
	data := filepath.Join(tmp, "data") // a new directory, for the permissions of the user's umask
	if err := os.Mkdir(data, 0o777); err != nil {
		return err
	}
	oneWay := directed(g)
	if err := writeFile(stopped, filepath.Join(data, arraysFile),
		func(w io.Writer) error { return writeArrays(w, g, oneWay) }); err != nil {
		return err
	}
	if err := writeFile(stopped, filepath.Join(data, metaFile),
		func(w io.Writer) error { return writeMeta(w, g, oneWay) }); err != nil {
		return err
	}
	// dir is empty, and some systems refuse to rename over it
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(data, dir)
}

// until is a writer that writes nothing more once it is stopped.
type until struct {
	io.Writer
	stopped func() error
}

func (u until) Write(b []byte) (int, error) {
	if err := u.stopped(); err != nil {
		return 0, err
	}
	return u.Writer.Write(b)
}

// writeFile creates a file, fills it through a buffer and syncs it, unless stopped.
func writeFile(stopped func() error, path string, fill func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(until{f, stopped}, 1<<16)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if filepath.Base(path) == arraysFile {
		if err := npy.Seal(f); err != nil {
			return err
		}
	}
	return f.Sync()
}

// writeMeta writes meta.json; oneWay is true for a directed graph.
func writeMeta(w io.Writer, g *graph.Graph, oneWay bool) error {
	n := g.N()
	m := meta{Types: g.Types.Names, Directed: oneWay, Name: g.Name, Nodes: &n, Classes: &g.Labels.Classes,
		ClassNames: g.Labels.Names, Sites: g.Sites, Relations: g.Typed.Names, Encoding: g.Encoding}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// writeArrays writes graph.npz in the layout of the package comment.
func writeArrays(w io.Writer, g *graph.Graph, oneWay bool) error {
	z := zip.NewWriter(w)
	n := g.N()
	var err error
	put := func(name string, shape []int, values any) {
		if err == nil {
			err = npy.Write(z, name, shape, values)
		}
	}
	l, err := listed(g, oneWay)
	if err != nil {
		return err
	}
	if l.kind != nil {
		put("edge_type", []int{len(l.kind)}, l.kind)
	}
	put("edge_index", []int{2, len(l.src)}, append(l.src, l.dst...))
	if l.weight != nil {
		put("edge_weight", []int{len(l.weight)}, l.weight)
	}
	if x := g.EdgeX; x.Cols > 0 {
		put("edge_row", []int{len(l.row)}, l.row)
		put("edge_attr", []int{x.Rows, x.Cols}, x.Clone().Data)
	}
	if t := g.Types; t.Count() > 0 {
		kind := make([]int32, n)
		for i, k := range t.Of {
			kind[i] = int32(k)
		}
		put("node_type", []int{n}, kind)
		if t.Ptr != nil {
			put("x_types", []int{len(t.Ptr)}, t.Ptr)
		}
	}
	switch {
	case g.X.Sparse != nil:
		x := g.X.Sparse
		put("x_indptr", []int{n + 1}, x.RowPtr)
		put("x_indices", []int{len(x.Col)}, x.Col)
		put("x_data", []int{len(x.Val)}, x.Val)
		put("x_shape", []int{2}, []int64{int64(x.Rows), int64(x.Cols)})
	case g.X.Cols() > 0:
		put("x", []int{n, g.X.Cols()}, g.X.Dense.Clone().Data)
	}
	putLabels(put, g.Labels, n)
	for kind, name := range maskNames {
		if kind == int(graph.None) {
			continue
		}
		mask, marked := make([]bool, n), false
		for i, s := range g.Split {
			if s == graph.Split(kind) {
				mask[i], marked = true, true
			}
		}
		if marked {
			put(name, []int{n}, mask)
		}
	}
	if g.Site != nil {
		put("client", []int{n}, g.Site)
	}
	if g.IDs != nil {
		ptr, text := make([]int64, n+1), []uint8{}
		for i, id := range g.IDs {
			text = append(text, id...)
			ptr[i+1] = int64(len(text))
		}
		put("ids_indptr", []int{n + 1}, ptr)
		put("ids", []int{len(text)}, text)
	}
	return errors.Join(err, z.SetComment(npy.Unsealed), z.Close())
}

// putLabels writes the labels of n nodes.
func putLabels(put func(name string, shape []int, values any), l graph.Labels, n int) {
	if l.Kind() == graph.Numbers {
		put("y", []int{n, l.Classes}, l.Values)
		return
	}
	if l.Multi() {
		y := make([]bool, len(l.Bits))
		for k, b := range l.Bits {
			y[k] = b != 0
		}
		put("y", []int{n, l.Classes}, y)
		return
	}
	y := make([]int64, n)
	for i := range y {
		y[i] = -1
		if l.Class != nil {
			y[i] = int64(l.Class[i])
		}
	}
	put("y", []int{n}, y)
}

// entries are edges as a file lists them.
type entries struct {
	src, dst, kind, row []int32   // kind nil = no types; row nil = no columns
	weight              []float32 // nil = all 1
}

// listed returns the edges of a graph from which Read makes it: each undirected edge once, all of a directed graph, or
// if edges have types each edge of each relation.
func listed(g *graph.Graph, oneWay bool) (*entries, error) {
	l, n, of := &entries{}, g.N(), &g.Adj
	if g.Typed.Count() > 0 {
		of, l.kind = &g.Typed.Adj, []int32{}
	}
	if of.Weight != nil {
		l.weight = []float32{}
	}
	if of.Edge != nil {
		l.row = []int32{}
	}
	once := l.kind == nil && !oneWay // edges are stored in both directions
	for at := range of.NumDst {
		i := int32(at % n)
		col, weight := of.Row(at)
		rows := of.EdgeRows(at)
		for k, j := range col {
			switch {
			case !once:
				l.src, l.dst = append(l.src, j), append(l.dst, i)
			case j > i:
				l.src, l.dst = append(l.src, i), append(l.dst, j)
			default:
				continue
			}
			if l.kind != nil {
				l.kind = append(l.kind, int32(at/n))
			}
			if weight != nil {
				l.weight = append(l.weight, weight[k])
			}
			if rows != nil {
				l.row = append(l.row, rows[k])
			}
		}
	}
	for i := range n {
		col, _ := g.Adj.Row(i)
		if _, ok := slices.BinarySearch(col, int32(i)); ok {
			return nil, fmt.Errorf("self-loops cannot be stored (got one of node %d)", i)
		}
	}
	if l.kind == nil {
		return l, nil
	}
	again, err := graph.FromEdges(n, l.src, l.dst, l.weight, graph.Build{Directed: oneWay, Edge: l.row})
	if err == nil && !sameEdges(&again, &g.Adj) {
		err = fmt.Errorf("the %d edges of the relations must be the edges of the graph, with the largest of their "+
			"weights and the lowest of their rows (got %d edges)", again.NumEdges(), g.Adj.NumEdges())
	}
	return l, err
}

// sameEdges reports whether two adjacencies have the same edges, weights and rows of columns.
func sameEdges(a, b *graph.CSR) bool {
	return slices.Equal(a.RowPtr, b.RowPtr) && slices.Equal(a.Col, b.Col) && slices.Equal(a.Weight, b.Weight) &&
		slices.Equal(a.Edge, b.Edge)
}

// directed reports whether a graph has edges in only one direction, or relations without their reverse.
func directed(g *graph.Graph) bool {
	if !g.Adj.Symmetric() {
		return true
	}
	n := g.Typed.Count()
	if n == 0 {
		return false
	}
	list := make([]*graph.CSR, n)
	for k := range list {
		list[k] = g.Typed.Adj.Relation(k, n)
	}
	closed := graph.WithInverses(g.Typed.Names, list)
	return closed.Count() != n
}
