package dataset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// The files of a data set's directory.
const (
	arraysFile = "graph.npz"
	metaFile   = "meta.json"
)

// maskNames are the arrays of the splits.
var maskNames = [...]string{graph.Train: "train_mask", graph.Val: "val_mask", graph.Test: "test_mask"}

// Bounds on C and F, so that a damaged number cannot request a giant layer.
const (
	MaxClasses = 1 << 20
	maxColumns = 1 << 24
)

// meta has the fields of meta.json; others are ignored. The file may be absent.
type meta struct {
	Name       string          `json:"name,omitempty"`
	Nodes      *int            `json:"nodes,omitempty"`
	Classes    *int            `json:"classes,omitempty"`
	ClassNames []string        `json:"class_names,omitempty"`
	Sites      []string        `json:"client_names,omitempty"`
	Relations  []string        `json:"relation_names,omitempty"`
	Types      []string        `json:"node_type_names,omitempty"`
	Directed   bool            `json:"directed,omitempty"` // edge_index has all edges; no reverse is added
	Encoding   json.RawMessage `json:"encoding,omitempty"`
	Draw       *drawn          `json:"draw,omitempty"`
}

// drawn is a random split for arrays without masks. With folds, part fold of each class's labelled nodes is for
// testing, and train and val are fractions of the rest.
type drawn struct {
	Train, Val  float64
	Seed        uint64
	Fold, Folds int
}

// of sets the random split of the labelled nodes.
func (d *drawn) of(g *graph.Graph) error {
	folded := d.Folds == 0 || d.Folds > 1 && d.Fold >= 0 && d.Fold < d.Folds
	if d.Train <= 0 || d.Val < 0 || d.Train+d.Val > 1 || !folded {
		return fmt.Errorf("draw: train and val must be fractions whose sum is at most 1, folds 2 or more, fold one of "+
			"them from 0 (got %v, %v, %d, %d)", d.Train, d.Val, d.Folds, d.Fold)
	}
	for i := range g.Split {
		if g.Labels.Has(i) {
			g.Split[i] = graph.Train
		}
	}
	for _, nodes := range shuffled(g, d.Seed) {
		n := len(nodes) // training and validation, with folds
		if d.Folds > 0 {
			a, b := n*d.Fold/d.Folds, n*(d.Fold+1)/d.Folds
			nodes = slices.Concat(nodes[:a], nodes[b:], nodes[a:b])
			n -= b - a
		}
		train := min(n, max(1, int(math.Round(d.Train*float64(n)))))
		val := min(n, int(math.Round((d.Train+d.Val)*float64(n))))
		for k, i := range nodes {
			switch {
			case k >= train && k < val:
				g.Split[i] = graph.Val
			case k >= train:
				g.Split[i] = graph.Test
			}
		}
	}
	return nil
}

// Read opens a data set: a directory with graph.npz and perhaps meta.json, or the .npz
// file itself. split is the column of the masks to use, 0 if there is one split only. The package
// comment lists the arrays.
//
// The graph is made symmetric unless it is directed in meta.json; its self-loops and repeated
// entries are dropped. In a multi-relation set (edge_type) an edge of any relation is an edge;
// Graph.Typed has the relations, with the reverse of each unless the set has all of them
// or is directed. The features are as stored, not normalised.
//
// An error names the file, the array and perhaps the entry, and what was expected.
func Read(path string, split int) (*graph.Graph, error) { return As{}.Read(path, split) }

// Read is the function Read with knowledge about the labels.
func (as As) Read(path string, split int) (*graph.Graph, error) {
	if strings.HasSuffix(path, ".graph") {
		if split != 0 {
			return nil, fmt.Errorf("split must be 0 (got %d): %s has one", split, path)
		}
		return graph.Read(path)
	}
	a, m, err := openData(path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.graph(m, split, as)
}

// openData opens the arrays of a data set and reads meta.json.
func openData(path string) (arrays, meta, error) {
	file, dir := filepath.Join(path, arraysFile), path
	if strings.HasSuffix(path, ".npz") {
		file, dir = path, filepath.Dir(path)
	} else if info, err := os.Stat(path); err != nil {
		return arrays{}, meta{}, err
	} else if ext := filepath.Ext(path); !info.IsDir() && slices.Contains([]string{".csv", ".tsv", ".parquet", ".gz",
		".zst"}, ext) {
		return arrays{}, meta{}, fmt.Errorf("%s is a table: make a data set of it first, by heddle import", path)
	} else if _, err := os.Stat(file); !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
		return arrays{}, meta{}, fmt.Errorf("%s must be a directory with %s in it, or an .npz file", path,
			arraysFile)
	}
	m, err := readMeta(filepath.Join(dir, metaFile))
	if err != nil {
		return arrays{}, meta{}, err
	}
	if m.Name == "" {
		m.Name = strings.TrimSuffix(filepath.Base(path), ".npz")
	}
	a, err := npy.Open(file)
	return arrays{a}, m, err
}

// Splits returns how many splits Read offers for the data set at path: the columns of its masks, or 1. It reads only
// the header of each mask.
func Splits(path string) (int, error) {
	a, _, err := openData(path)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	n := 1
	for _, name := range maskNames {
		if name == "" || !a.Has(name) {
			continue
		}
		h, err := a.Header(name)
		if err != nil {
			return 0, err
		}
		if len(h.Shape) == 2 {
			n = max(n, h.Shape[1])
		}
	}
	return n, nil
}

// readMeta reads a meta.json, or returns the zero meta if there is no such file.
func readMeta(path string) (meta, error) {
	var m meta
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	return parseMeta(path, text)
}

// parseMeta reads the text of a meta.json; path is for its errors.
func parseMeta(path string, text []byte) (m meta, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// arrays are the arrays of a data set.
type arrays struct{ *npy.Archive }

// graph makes a graph of the arrays.
func (a arrays) graph(m meta, split int, as As) (*graph.Graph, error) {
	if a.typed() {
		return a.joined(m, split, as)
	}
	g := &graph.Graph{Name: m.Name}
	err := a.extents(m)
	if err != nil {
		return nil, err
	}
	n, err := a.targets(g, m, split, as)
	if err != nil {
		return nil, err
	}
	if m.Draw != nil {
		if err := m.Draw.of(g); err != nil {
			return nil, err
		}
	}
	if g.X, err = a.features(n); err != nil {
		return nil, err
	}
	if err := a.types(g, n, m.Types); err != nil {
		return nil, err
	}
	if err := a.edges(g, n, m); err != nil {
		return nil, err
	}
	if a.Has("client") {
		if err := a.sites(g, n, m.Sites); err != nil {
			return nil, err
		}
	}
	if a.Has("ids") {
		if g.IDs, err = a.ids(n); err != nil {
			return nil, err
		}
	}
	if m.Encoding != nil {
		var text bytes.Buffer
		if err := json.Compact(&text, m.Encoding); err != nil {
			return nil, fmt.Errorf("%s: encoding: %w", metaFile, err)
		}
		g.Encoding = text.Bytes()
	}
	return g, nil
}

// targets reads labels and splits of g, and returns the number of nodes.
func (a arrays) targets(g *graph.Graph, m meta, split int, as As) (n int, err error) {
	if g.Labels, err = a.labels(m, as); err != nil {
		return 0, err
	}
	n = len(g.Labels.Class)
	if g.Labels.Class == nil {
		n = (len(g.Labels.Bits) + len(g.Labels.Values)) / g.Labels.Classes
	}
	texts, err := a.Header("y") // some texts may mean missing
	if err != nil {
		return 0, err
	}
	g.Split, err = a.split(g.Labels, n, split, as.Classes != 0 || texts.Texts())
	return n, err
}

// extents refuses arrays without a row for each node, before any is decompressed: few bytes can become gigabytes.
func (a arrays) extents(m meta) error {
	h, err := a.Header("y")
	if err != nil {
		return err
	}
	if len(h.Shape) == 0 {
		return a.Fault("y", fmt.Errorf("must have a row for each node (got shape %s)", npy.ShapeText(h.Shape)))
	}
	n := h.Shape[0]
	if m.Nodes != nil && *m.Nodes != n {
		return a.Fault("y", fmt.Errorf("must have %d nodes, as %s (got %d)", *m.Nodes, metaFile, n))
	}
	for _, name := range maskNames[1:] {
		if !a.Has(name) {
			continue
		}
		h, err := a.Header(name)
		switch {
		case err != nil:
		case len(h.Shape) == 2:
			err = a.Check(name, n, -1)
		default:
			err = a.Check(name, n)
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(a.Check("x", n, -1), a.Check("x_indptr", n+1), a.Check("node_type", n), a.Check("client", n),
		a.Check("ids_indptr", n+1), a.Check("edge_index", 2, -1))
}

// split reads column s of the masks. An absent mask is empty; a present one marks at least one node. If unknown is set,
// a node may have a label that is none of the classes, and then is in no split.
func (a arrays) split(l graph.Labels, n, s int, unknown bool) ([]graph.Split, error) {
	out := make([]graph.Split, n)
	for kind := graph.Train; kind <= graph.Test; kind++ {
		name := maskNames[kind]
		if !a.Has(name) {
			continue
		}
		h, err := a.Header(name)
		if err != nil {
			return nil, err
		}
		columns, want := 1, []int{n}
		if len(h.Shape) == 2 {
			columns, want = h.Shape[1], []int{n, -1}
		}
		mask, _, err := npy.Read[uint8](a.Archive, name, want...)
		if err != nil {
			return nil, err
		}
		if s < 0 || s >= columns {
			return nil, a.Fault(name, fmt.Errorf("split must be 0 to %d (got %d)", columns-1, s))
		}
		empty := true
		for i := range n {
			switch v := mask[i*columns+s]; {
			case v == 0:
				continue
			case v > 1:
				return nil, a.Fault(name, fmt.Errorf("node %d must have 0 or 1 (got %d)", i, v))
			case out[i] != graph.None:
				return nil, a.Fault(name, fmt.Errorf("node %d is in %s too", i, maskNames[out[i]]))
			case !l.Has(i) && unknown:
				empty = false
				continue
			case !l.Has(i):
				return nil, a.Fault(name, fmt.Errorf("node %d has no label", i))
			}
			out[i], empty = kind, false
		}
		if empty {
			return nil, a.Fault(name, fmt.Errorf("split %d must mark at least one node", s))
		}
	}
	return out, nil
}

// features reads the features of n nodes, dense or sparse.
func (a arrays) features(n int) (graph.Features, error) {
	switch {
	case a.Has("x") && a.Has("x_indptr"):
		return graph.Features{}, a.Fault("x", errors.New("features must be dense or sparse (got both: x_indptr)"))
	case a.Has("x"):
		x, err := npy.Matrix(a.Archive, "x", n)
		return graph.Features{Dense: x}, err
	case a.Has("x_indptr"):
		x, err := a.sparse(n)
		return graph.Features{Sparse: x}, err
	}
	for _, name := range []string{"x_indices", "x_data", "x_shape"} {
		if a.Has(name) {
			return graph.Features{}, a.Fault("x_indptr", fmt.Errorf("missing, though %s is there", name))
		}
	}
	return graph.Features{}, nil
}

// sparse reads sparse features of n nodes, and checks pointers, columns and values.
func (a arrays) sparse(n int) (*mat.Sparse, error) {
	dims, _, err := npy.Read[int64](a.Archive, "x_shape", 2)
	if err != nil {
		return nil, err
	}
	if dims[0] != int64(n) || dims[1] < 0 || dims[1] > maxColumns {
		return nil, a.Fault("x_shape", fmt.Errorf("must be [%d, 0 to %d] (got %v)", n, maxColumns, dims))
	}
	x := &mat.Sparse{Rows: n, Cols: int(dims[1])}
	if x.RowPtr, _, err = npy.Read[int64](a.Archive, "x_indptr", n+1); err != nil {
		return nil, err
	}
	if x.Col, _, err = npy.Read[int32](a.Archive, "x_indices", -1); err != nil {
		return nil, err
	}
	if x.Val, _, err = npy.Read[float32](a.Archive, "x_data", len(x.Col)); err != nil {
		return nil, err
	}
	if err := x.Valid(); err != nil {
		return nil, a.Fault("x_indptr, x_indices", err)
	}
	for i := range n {
		col, val := x.Row(i)
		for k, v := range val {
			if !finite(v) {
				return nil,
					a.Fault("x_data", fmt.Errorf("row %d, column %d must be a finite number (got %v)", i, col[k], v))
			}
		}
	}
	return x, nil
}

// types reads the types of the nodes, which meta.json may name.
func (a arrays) types(g *graph.Graph, n int, names []string) error {
	if !a.Has("node_type") {
		if a.Has("x_types") {
			return a.Fault("x_types", errors.New("columns of node types need an array node_type (got none)"))
		}
		return nil
	}
	kind, _, err := npy.Read[int32](a.Archive, "node_type", n)
	if err != nil {
		return err
	}
	t := &g.Types
	t.Names, t.Of = slices.Clone(names), make([]uint8, n)
	for i, k := range kind {
		if k < 0 || k > math.MaxUint8 || len(names) > 0 && int(k) >= len(names) {
			return a.Fault("node_type",
				fmt.Errorf("type of node %d must be one of %d (got %d)", i, cmp.Or(len(names), math.MaxUint8+1), k))
		}
		for len(t.Names) <= int(k) {
			t.Names = append(t.Names, strconv.Itoa(len(t.Names)))
		}
		t.Of[i] = uint8(k)
	}
	if a.Has("x_types") {
		if t.Ptr, _, err = npy.Read[int64](a.Archive, "x_types", len(t.Names)+1); err != nil {
			return err
		}
	}
	if err := t.Valid(n, g.X); err != nil {
		return a.Fault("node_type", err)
	}
	return nil
}

// sites reads the owner of every node, and checks it against the names of the sites.
func (a arrays) sites(g *graph.Graph, n int, names []string) error {
	var err error
	g.Sites = names
	if g.Site, _, err = npy.Read[int32](a.Archive, "client", n); err != nil {
		return err
	}
	top := len(g.Sites)
	if top == 0 {
		top = n // every site owns a node
	}
	for i, s := range g.Site {
		if s < 0 || int(s) >= top {
			return a.Fault("client", fmt.Errorf("site of node %d must be 0 to %d (got %d)", i, top-1, s))
		}
		for len(g.Sites) <= int(s) {
			g.Sites = append(g.Sites, strconv.Itoa(len(g.Sites)))
		}
	}
	return nil
}

// ids reads the nodes' names: node i's is the bytes ids[ids_indptr[i]:ids_indptr[i+1]].
func (a arrays) ids(n int) ([]string, error) {
	ptr, _, err := npy.Read[int64](a.Archive, "ids_indptr", n+1)
	if err != nil {
		return nil, err
	}
	text, _, err := npy.Read[uint8](a.Archive, "ids", -1)
	if err != nil {
		return nil, err
	}
	all, out := string(text), make([]string, n)
	if ptr[0] != 0 || ptr[n] != int64(len(text)) {
		return nil, a.Fault("ids_indptr", fmt.Errorf("must go from 0 to %d (got %d to %d)", len(text), ptr[0], ptr[n]))
	}
	for i := range n {
		if ptr[i] > ptr[i+1] || ptr[i+1] > int64(len(text)) {
			return nil, a.Fault("ids_indptr", fmt.Errorf("entries must ascend up to %d (got %d as entry %d)", len(text),
				ptr[i+1], i+1))
		}
		out[i] = all[ptr[i]:ptr[i+1]]
	}
	return out, nil
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
