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

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/npy"
	"github.com/heddle-gnn/heddle/graph/target"
)

// Write stores g in a new directory dir so that Read(dir, 0) returns the same graph: graph.npz and
// meta.json in the layout that Read opens, each undirected edge once, or where edges have types
// each edge of each relation, which must have the reverse of each among them. dir must not exist or
// must be empty; it appears complete or not at all.
func Write(dir string, g *graph.Graph) error {
	return WriteUntil(dir, g, func() error { return nil })
}

// WriteUntil is Write that asks stopped before each some kilobytes: its error ends the work, and nothing is left.
func WriteUntil(dir string, g *graph.Graph, stopped func() error) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("dataset: %s: the directory is not empty; remove it or choose another", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dataset: %w", err)
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	defer func() {
		if err = errors.Join(err, os.RemoveAll(tmp)); err != nil {
			err = fmt.Errorf("dataset: %s: %w", dir, err)
		}
	}()
	data := filepath.Join(tmp, "data") // of its own, for the permissions that the user's mask gives
	if err := os.Mkdir(data, 0o777); err != nil {
		return err
	}
	if err := writeFile(stopped, filepath.Join(data, arraysFile), func(w io.Writer) error { return writeArrays(w, g) }); err != nil {
		return err
	}
	if err := writeFile(stopped, filepath.Join(data, metaFile), func(w io.Writer) error { return writeMeta(w, g) }); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // empty: some systems refuse to rename over it
		return err
	}
	return os.Rename(data, dir)
}

// until is a writer to which nothing more is written once it is stopped.
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
	return f.Sync()
}

func writeMeta(w io.Writer, g *graph.Graph) error {
	n := g.N()
	m := meta{Name: g.Name, Nodes: &n, Classes: &g.Labels.Classes, ClassNames: g.Labels.Names, Sites: g.Sites, Relations: g.Typed.Names, Encoding: g.Encoding}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func writeArrays(w io.Writer, g *graph.Graph) error {
	z := zip.NewWriter(w)
	n := g.N()
	pairs, weight, err := upper(&g.Adj)
	if err != nil {
		return err
	}
	put := func(name string, shape []int, values any) {
		if err == nil {
			err = npy.Write(z, name, shape, values)
		}
	}
	if g.Typed.Count() > 0 {
		var kind []int32
		if pairs, kind, weight, err = typedEdges(g); err != nil {
			return err
		}
		put("edge_type", []int{len(kind)}, kind)
	}
	put("edge_index", []int{2, len(pairs) / 2}, pairs)
	if weight != nil {
		put("edge_weight", []int{len(weight)}, weight)
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
	if g.Labels.Kind() == target.Numbers {
		put("y", []int{n, g.Labels.Classes}, g.Labels.Values)
	} else if g.Labels.Multi() {
		y := make([]bool, len(g.Labels.Bits))
		for k, b := range g.Labels.Bits {
			y[k] = b != 0
		}
		put("y", []int{n, g.Labels.Classes}, y)
	} else {
		y := make([]int64, n)
		for i := range y {
			y[i] = -1
			if g.Labels.Class != nil {
				y[i] = int64(g.Labels.Class[i])
			}
		}
		put("y", []int{n}, y)
	}
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
	return errors.Join(err, z.Close())
}

// upper returns each undirected edge of g once: sources, then targets, source < target.
func upper(g *graph.CSR) (pairs []int32, weight []float32, err error) {
	if g.Weight != nil {
		weight = []float32{}
	}
	var dst []int32
	for i := range g.NumDst {
		col, w := g.Row(i)
		for k, j := range col {
			if int(j) <= i {
				continue
			}
			pairs, dst = append(pairs, int32(i)), append(dst, j)
			if w != nil {
				weight = append(weight, w[k])
			}
		}
	}
	if 2*len(dst) != g.NumEdges() {
		return nil, nil, fmt.Errorf("there must be both directions of every edge and no self-loops (got %d entries, %d of them rising)", g.NumEdges(), len(dst))
	}
	return append(pairs, dst...), weight, nil
}

// typedEdges returns each edge of each relation: sources, then destinations; relations; weights.
func typedEdges(g *graph.Graph) (pairs, kind []int32, weight []float32, err error) {
	n := g.N()
	var dst []int32
	if g.Typed.Adj.Weight != nil {
		weight = []float32{}
	}
	for row := range g.Typed.Adj.NumDst {
		col, w := g.Typed.Adj.Row(row)
		for range col {
			dst, kind = append(dst, int32(row%n)), append(kind, int32(row/n))
		}
		pairs, weight = append(pairs, col...), append(weight, w...)
	}
	all, err := graph.FromEdges(n, pairs, dst, nil, graph.Build{})
	if err == nil && all.NumEdges() != g.Adj.NumEdges() {
		err = fmt.Errorf("the relations join %d pairs of nodes, the graph %d", all.NumEdges(), g.Adj.NumEdges())
	}
	return append(pairs, dst...), kind, weight, err
}
