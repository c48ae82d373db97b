// Package ogb reads data sets of the Open Graph Benchmark.
package ogb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// Read reads a node classification set of the Open Graph Benchmark as it is downloaded and unpacked (ogbn_arxiv,
// ogbn_products, ogbn_mag, ogbn_papers100M, …). dir has raw/, in packed CSV or in data.npz, and split/. split is the
// folder in split/ to use ("" = the only one). A missing label or NaN means no label; labels in several columns, of 0
// and 1, are any number of classes. Features of edges (edge-feat.csv.gz, or edge_feat in data.npz) are columns of
// edges. If an edge is listed twice, the largest value of each column counts; without types both directions are the
// same edge.
//
// In a set with types the nodes of all types are nodes, by ascending name of their type, each
// called TYPE/number; each type's features have their own columns (graph.Types), as have each relation's; and the
// relations are called HEAD-RELATION-TAIL, followed by the reverse of each.
func Read(dir, split string) (*graph.Graph, error) {
	o := &set{dir: dir}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, "raw", name))
		return err == nil
	}
	var err error
	switch {
	case has("data.npz"):
		err = o.binary()
	case has("triplet-type-list.csv.gz"):
		err = o.typed()
	case has("edge.csv.gz"):
		err = o.plain()
	case has("edge_index_dict.npz"):
		return nil, fmt.Errorf("%s: a set with types must be in CSV (got binary files, raw/edge_index_dict.npz)",
			dir)
	default:
		return nil, fmt.Errorf("%s: no raw/data.npz, raw/edge.csv.gz or raw/triplet-type-list.csv.gz, "+
			"and every set of the Open Graph Benchmark has one", dir)
	}
	if err != nil {
		return nil, err
	}
	if err := o.readSplit(split); err != nil {
		return nil, err
	}
	o.g.Name = strings.ReplaceAll(filepath.Base(filepath.Clean(dir)), "_", "-")
	return &o.g, nil
}

// set is a data set that is being read.
type set struct {
	dir   string
	kinds []kind
	g     graph.Graph
}

// kind is one type of nodes: the IDs from first on.
type kind struct {
	name     string // "": there are no types
	first, n int
}

func (o *set) raw(names ...string) string {
	return filepath.Join(append([]string{o.dir, "raw"}, names...)...)
}

// plain reads one type of nodes and one relation, in CSV.
func (o *set) plain() error {
	n, err := oneCount(o.raw("num-node-list.csv.gz"))
	if err != nil {
		return err
	}
	o.kinds = []kind{{n: n}}
	src, dst, err := o.edges(o.raw("edge.csv.gz"), o.raw("num-edge-list.csv.gz"), o.kinds[0], o.kinds[0])
	if err != nil {
		return err
	}
	v, columns, err := readFeatures(o.raw("edge-feat.csv.gz"), len(src))
	if err != nil {
		return err
	}
	if err := o.adjacency(o.kinds[0].n, src, dst, nil, mat.View(len(src), columns, v)); err != nil {
		return fmt.Errorf("%s: %w", o.dir, err)
	}
	return o.finish(func(kind) string { return o.raw("node-feat.csv.gz") },
		func(kind) string { return o.raw("node-label.csv.gz") })
}

// types reads the types of nodes, and returns the place of each and how many nodes there are.
func (o *set) types() (place map[string]int, total int, err error) {
	counts, err := table.Open(o.raw("num-node-dict.csv.gz"), table.Format{})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, counts.Close()) }()
	cells, line, err := counts.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: counts of nodes: %w", counts.Path, npy.Ended(err))
	}
	place = map[string]int{}
	for k, name := range counts.Columns {
		n, err := edgelist.ParseID([]byte(cells[k]))
		if err != nil || n > math.MaxInt32 || !local(name) {
			return nil, 0, counts.Fault(line, k, "must be a number of nodes up to %d and a plain name of their type "+
				"(got %.40q of type %.40q)", math.MaxInt32, cells[k], name)
		}
		o.kinds = append(o.kinds, kind{name: name, n: int(n)})
	}
	if len(o.kinds) > math.MaxUint8 {
		return nil, 0, fmt.Errorf("%s: there must be at most %d types of nodes (got %d)", counts.Path,
			math.MaxUint8, len(o.kinds))
	}
	slices.SortFunc(o.kinds, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	for k := range o.kinds {
		o.kinds[k].first, place[o.kinds[k].name] = total, k
		if total += o.kinds[k].n; total > math.MaxInt32 {
			return nil, 0, fmt.Errorf("%s: more than %d nodes", counts.Path, math.MaxInt32)
		}
	}
	return place, total, nil
}

// typed reads several types and relations.
func (o *set) typed() (err error) {
	place, total, err := o.types()
	if err != nil {
		return err
	}
	var src, dst []int32
	of := []int32{}
	var names []string
	var x []graph.Features
	triplets, err := table.OpenLines(o.raw("triplet-type-list.csv.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, triplets.Close()) }()
	for {
		line, err := triplets.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		t := strings.Split(strings.TrimSpace(string(line)), ",")
		if len(t) == 3 && local(t[1]) {
			head, ok := place[t[0]]
			if tail, also := place[t[2]]; ok && also {
				folder := o.raw("relations", strings.Join(t, "___"))
				s, d, err := o.edges(filepath.Join(folder, "edge.csv.gz"),
					filepath.Join(folder, "num-edge-list.csv.gz"), o.kinds[head], o.kinds[tail])
				if err != nil {
					return err
				}
				v, columns, err := readFeatures(filepath.Join(folder, "edge-feat.csv.gz"), len(s))
				if err != nil {
					return err
				}
				x = append(x, graph.Features{Dense: mat.View(len(s), columns, v)})
				src, dst = append(src, s...), append(dst, d...)
				of = append(of, slices.Repeat([]int32{int32(len(names))}, len(s))...)
				names = append(names, strings.Join(t, "-"))
				continue
			}
		}
		return triplets.Fault("must be a type of nodes, a relation, a type of nodes (got %.80q)", line)
	}
	if len(names) == 0 || int64(len(names))*2*int64(total) > math.MaxInt32 {
		return fmt.Errorf("%s: there must be a relation, and relations and their reverses times nodes at most "+
			"%d (got %d relations, %d nodes)", o.dir, math.MaxInt32, len(names), total)
	}
	o.g.Typed.Names = names
	if err := o.adjacency(total, src, dst, of, graph.Diagonal(x).Dense()); err != nil {
		return fmt.Errorf("%s: %w", o.dir, err)
	}
	return o.finish(func(k kind) string { return o.raw("node-feat", k.name, "node-feat.csv.gz") },
		func(k kind) string { return o.raw("node-label", k.name, "node-label.csv.gz") })
}

// local reports whether a name from a file may be one in a path.
func local(name string) bool {
	return name != "" && filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`)
}

// edges reads one relation, with the IDs that its types have among all.
func (o *set) edges(path, count string, head, tail kind) (src, dst []int32, err error) {
	want, err := oneCount(count)
	if err != nil {
		return nil, nil, err
	}
	list, err := edgelist.Config{Path: path, Format: "text"}.Open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for e, err := range list.All() {
		if err == nil && (e.Source >= int64(head.n) || e.Target >= int64(tail.n)) {
			err = list.Fault(e, "an edge must join nodes below %d and %d (got %d to %d)", head.n, tail.n, e.Source,
				e.Target)
		}
		if err != nil {
			return nil, nil, err
		}
		src, dst = append(src, int32(head.first)+int32(e.Source)), append(dst, int32(tail.first)+int32(e.Target))
	}
	if len(src) != want {
		return nil, nil, fmt.Errorf("%s: there must be %d edges, as in %s (got %d)", path, want, count, len(src))
	}
	return src, dst, nil
}

// adjacency builds the graph of n nodes with edges of relation of (nil = they have no types) and columns x.
func (o *set) adjacency(n int, src, dst, of []int32, x mat.Dense) error {
	if n > max(edgelist.FreeNodes, edgelist.NodesByEdge*len(src)) {
		return fmt.Errorf("there must be at most %d nodes per edge (got %d nodes, %d edges)", edgelist.NodesByEdge, n,
			len(src))
	}
	var rows []int32
	if x.Cols > 0 {
		edgelist.MergeColumns("max", src, dst, of, x)
		rows = mat.EveryRow(len(src))
	}
	return dataset.SetEdges(&o.g, n, src, dst, nil, of, o.g.Typed.Names, x, graph.Build{Edge: rows})
}

// finish reads what the nodes have.
func (o *set) finish(features, labels func(kind) string) (err error) {
	last := o.kinds[len(o.kinds)-1]
	n := last.first + last.n
	if len(o.kinds) > 1 {
		for at, k := range o.kinds {
			o.g.Types.Names = append(o.g.Types.Names, k.name)
			o.g.Types.Of = append(o.g.Types.Of, slices.Repeat([]uint8{uint8(at)}, k.n)...)
			for i := range k.n {
				o.g.IDs = append(o.g.IDs, k.name+"/"+strconv.Itoa(i))
			}
		}
	}
	if err := o.features(n, features); err != nil {
		return err
	}
	return o.labels(n, labels)
}

func (o *set) features(n int, path func(kind) string) error {
	var x []graph.Features
	ptr := []int64{0}
	for at, k := range o.kinds {
		v, columns, err := readFeatures(path(k), k.n)
		if err != nil {
			return err
		}
		if len(o.kinds) == 1 {
			if columns > 0 {
				o.g.X.Dense = mat.View(n, columns, v)
			}
			return nil
		}
		x = append(x, graph.Features{Dense: mat.View(k.n, columns, v)})
		ptr = append(ptr, ptr[at]+int64(columns))
	}
	if ptr[len(ptr)-1] > 0 {
		o.g.X.Sparse, o.g.Types.Ptr = graph.Diagonal(x), ptr
	}
	return nil
}

// readFeatures reads a row of features for each node or edge; none if the file is missing.
func readFeatures(path string, rows int) ([]float32, int, error) {
	v, columns, err := readFloats(path, rows)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if at := slices.IndexFunc(v, func(f float32) bool { return f-f != 0 }); at >= 0 { // infinite, or no number
		return nil, 0, fmt.Errorf("%s: row %d, column %d must be a finite number (got %v)", path, at/columns,
			at%columns, v[at])
	}
	return v, columns, nil
}

func (o *set) labels(n int, path func(kind) string) error {
	found := ""
	for _, k := range o.kinds {
		v, columns, err := readFloats(path(k), k.n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if found != "" {
			return fmt.Errorf("%s: labels of a second type of nodes, after %s", path(k), found)
		}
		found = path(k)
		if err := o.label(v, columns, n, k.first); err != nil {
			return fmt.Errorf("%s: %w", path(k), err)
		}
	}
	if found == "" {
		return fmt.Errorf("%s: no labels", path(o.kinds[0]))
	}
	return nil
}

// label sets the labels of the nodes from first on, of n in all.
func (o *set) label(v []float32, columns, n, first int) error {
	l := &o.g.Labels
	if columns != 1 {
		if len(o.kinds) > 1 {
			return fmt.Errorf("a set with types must have one class a node (got %d columns)", columns)
		}
		l.Classes, l.Bits = columns, make([]uint8, len(v))
		for k, b := range v {
			if b != 0 && b != 1 {
				return fmt.Errorf("row %d, column %d must be 0 or 1 (got %v)", k/columns, k%columns, b)
			}
			l.Bits[k] = uint8(b)
		}
		return nil
	}
	l.Class = slices.Repeat([]int32{-1}, n)
	for i, c := range v {
		if c != c || c == -1 {
			continue
		}
		if c < 0 || c >= dataset.MaxClasses || c != float32(int32(c)) {
			return fmt.Errorf("row %d must be a class from 0 to %d, or none (got %v)", i, dataset.MaxClasses-1, c)
		}
		l.Class[first+i] = int32(c)
		l.Classes = max(l.Classes, int(c)+1)
	}
	return nil
}

// binary reads data.npz and node-label.npz.
func (o *set) binary() error {
	a, err := npy.Open(o.raw("data.npz"))
	if err != nil {
		return err
	}
	defer a.Close()
	count, _, err := npy.Read[int32](a, "num_nodes_list", 1)
	if err != nil {
		return err
	}
	n := int(count[0])
	edges, _, err := npy.Read[int32](a, "num_edges_list", 1)
	if err != nil {
		return err
	}
	pairs, shape, err := npy.Read[int32](a, "edge_index", 2, int(edges[0]))
	if err != nil {
		return err
	}
	if n < 0 {
		return a.Fault("num_nodes_list", fmt.Errorf("nodes must be 0 or more (got %d)", n))
	}
	o.kinds = []kind{{n: n}}
	x, err := binaryFeatures(a, "edge_feat", shape[1])
	if err != nil {
		return err
	}
	if err := o.adjacency(n, pairs[:shape[1]], pairs[shape[1]:], nil, x); err != nil {
		return a.Fault("edge_index", err)
	}
	if o.g.X.Dense, err = binaryFeatures(a, "node_feat", n); err != nil {
		return err
	}
	return o.binaryLabels(n)
}

// binaryFeatures reads a row of features for each node or edge, 0×0 if the archive lacks that array.
func binaryFeatures(a *npy.Archive, name string, rows int) (mat.Dense, error) {
	if !a.Has(name) {
		return mat.Dense{}, nil
	}
	return npy.Matrix(a, name, rows)
}

func (o *set) binaryLabels(n int) error {
	a, err := npy.Open(o.raw("node-label.npz"))
	if err != nil {
		return err
	}
	defer a.Close()
	h, err := a.Header("node_label")
	if err != nil {
		return err
	}
	v, shape, err := npy.Read[float32](a, "node_label", []int{n, -1}[:min(2, max(1, len(h.Shape)))]...)
	if err != nil {
		return err
	}
	columns := 1
	if len(shape) == 2 {
		columns = shape[1]
	}
	if err := o.label(v, columns, n, 0); err != nil {
		return a.Fault("node_label", err)
	}
	return nil
}

// maxColumns bounds the features, so that a damaged file cannot ask for a giant layer.
const maxColumns = 1 << 24
