// Package external stores graphs in files, also from lists of edges that exceed the memory, and partitions a stored
// graph as a stream.
package external

import (
	"errors"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/mat"
)

// Stored is a graph in a file of kind graph.GraphKind that is read as a stream: never more than a
// few runs of nodes are in memory.
type Stored struct {
	file  *section.Ranges
	nodes int
	edges int64
	// What the file has besides.
	weighted, sparse bool
	xcols            int // of features
	classes          int
	sites            int // number of natural owners
}

// OpenGraph opens a graph file. Its table and shapes are checked here, what is in the arrays when
// they are read.
func OpenGraph(path string) (*Stored, error) {
	f, err := section.OpenRanges(path, graph.GraphKind)
	if err != nil {
		return nil, err
	}
	s := &Stored{file: f}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// typed are the sections that are not streamed.
var typed = []struct{ section, text string }{{"relations/ptr", "edges have types"}, {"types/of", "nodes have types"},
	{"edge/dense", "edges have columns"}}

// Typed reports whether a stored graph has types of nodes or edges, or columns of edges, so that only graph.Read reads
// it. It is false of a file that cannot be read.
func Typed(path string) bool {
	f, err := section.OpenRanges(path, graph.GraphKind)
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(typed, func(one struct{ section, text string }) bool { return f.Has(one.section) })
}

func (s *Stored) open() error {
	// extents returns a section's shape, of rank 2 if there is space for columns, and checks its
	// rows; −1 is any.
	extents := func(name string, t section.Type, rank int, rows int64) ([]int, bool, error) {
		shape, err := s.file.Shape(name, t)
		if err != nil || shape == nil {
			return nil, false, err
		}
		if len(shape) != rank || rows >= 0 && int64(shape[0]) != rows {
			return nil, false, s.file.Errorf(name, "must have %d extents and %d rows (got shape %v)", rank, rows, shape)
		}
		return shape, true, nil
	}
	for _, what := range typed {
		if s.file.Has(what.section) {
			return s.file.Errorf(what.section, "%s, which are not streamed: partition it in memory",
				what.text)
		}
	}
	shape, ok, err := extents("split", section.U8, 1, -1)
	if err != nil {
		return err
	}
	if !ok || int64(shape[0]) > math.MaxInt32 {
		return s.file.Errorf("split", "missing, or of more than %d nodes", math.MaxInt32)
	}
	s.nodes = shape[0]
	n := int64(s.nodes)
	if shape, ok, err = extents("adj/0/col", section.I32, 1, -1); err != nil || !ok {
		return errors.Join(err, s.missing("adj/0/col", ok))
	}
	s.edges = int64(shape[0])
	if _, ok, err = extents("adj/0/row_ptr", section.I64, 1, n+1); err != nil || !ok {
		return errors.Join(err, s.missing("adj/0/row_ptr", ok))
	}
	if _, s.weighted, err = extents("adj/0/weight", section.F32, 1, s.edges); err != nil {
		return err
	}
	if shape, ok, err = extents("x/dense", section.F32, 2, n); err != nil {
		return err
	} else if ok {
		s.xcols = shape[1]
	}
	if _, s.sparse, err = extents("x/row_ptr", section.I64, 1, n+1); err != nil {
		return err
	}
	if s.sparse {
		if s.xcols, err = s.number("x/shape", 1); err != nil {
			return err
		}
	}
	if s.classes, err = s.number("y/classes", 0); err != nil {
		return err
	}
	if _, ok, err = extents("site", section.I32, 1, n); err != nil {
		return err
	} else if ok {
		if shape, ok, err = extents("sites/ptr", section.I64, 1, -1); err != nil || !ok {
			return errors.Join(err, s.missing("sites/ptr", ok))
		}
		s.sites = shape[0] - 1
	}
	return nil
}

// number returns number at of a section of them.
func (s *Stored) number(name string, at int64) (int, error) {
	var n [1]int64
	if err := section.ReadRange(s.file, name, at, n[:]); err != nil {
		return 0, err
	}
	if n[0] < 0 || n[0] > math.MaxInt32 {
		return 0, s.file.Errorf(name, "must be 0 to %d (got %d)", math.MaxInt32, n[0])
	}
	return int(n[0]), nil
}

// has reports whether there is a section of that type; one of another type is refused when it is read.
func (s *Stored) has(name string, t section.Type) bool {
	shape, _ := s.file.Shape(name, t)
	return shape != nil
}

func (s *Stored) missing(name string, ok bool) error {
	if ok {
		return nil
	}
	return s.file.Errorf(name, "missing")
}

// Close closes the file.
func (s *Stored) Close() error { return s.file.Close() }

// Size implements partition.Source.
func (s *Stored) Size() partition.Load {
	return partition.Load{Vertices: int64(s.nodes), Edges: s.edges}
}

// Typing implements partition.Source: a graph with typed edges is not opened.
func (s *Stored) Typing() (relations, types []string) { return nil, nil }

const (
	runNodes = 1 << 16 // at most in a run
	runEdges = 1 << 20 // at most in a run, except that a node is never split
	ahead    = 4       // runs that are read while one is worked on

	readAhead = ahead * (runEdges*4 + runNodes*24) // bytes of those
)

// Runs implements partition.Source: a few goroutines read ahead, the runs come in order.
func (s *Stored) Runs(edges bool, f func(*partition.Run) error) error {
	type loading struct {
		*partition.Run
		err  error
		done chan struct{}
	}
	queue, free, stop := make(chan *loading, ahead), make(chan *partition.Run, ahead+2), make(chan struct{})
	for range cap(free) {
		free <- new(partition.Run)
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(queue)
		for at := 0; at < s.nodes; {
			var l *loading
			select {
			case <-stop:
				return
			case r := <-free:
				l = &loading{Run: r, done: make(chan struct{})}
			}
			placed := s.place(l.Run, at)
			if placed != nil {
				l.err = placed
				close(l.done)
			} else {
				at += l.N()
				readers.Go(func() {
					l.err = s.load(l.Run, edges)
					close(l.done)
				})
			}
			select {
			case <-stop:
				return
			case queue <- l:
			}
			if placed != nil {
				return
			}
		}
	})
	defer readers.Wait()
	defer close(stop)
	for l := range queue {
		<-l.done
		if l.err != nil {
			return l.err
		}
		if err := f(l.Run); err != nil {
			return err
		}
		free <- l.Run
	}
	return nil
}

// place makes r the run that begins at node first: its row pointers are read, for the others there is space.
func (s *Stored) place(r *partition.Run, first int) error {
	n := min(runNodes, s.nodes-first)
	r.First = int32(first)
	r.Ptr = room(r.Ptr, n+1)
	if err := section.ReadRange(s.file, "adj/0/row_ptr", int64(first), r.Ptr); err != nil {
		return err
	}
	if r.Ptr[0] < 0 || first == 0 && r.Ptr[0] != 0 || r.Ptr[0] > s.edges {
		return s.file.Errorf("adj/0/row_ptr", "node %d begins at edge %d of %d", first, r.Ptr[0], s.edges)
	}
	for i := range n {
		if r.Ptr[i+1] < r.Ptr[i] || r.Ptr[i+1] > s.edges || first+i+1 == s.nodes && r.Ptr[i+1] != s.edges {
			return s.file.Errorf("adj/0/row_ptr", "node %d ends at edge %d, before its start %d or not "+
				"within the %d edges", first+i, r.Ptr[i+1], r.Ptr[i], s.edges)
		}
		if i > 0 && r.Ptr[i+1]-r.Ptr[0] > runEdges {
			n = i
			break
		}
	}
	r.Ptr = r.Ptr[:n+1]
	r.Split = room(r.Split, n)
	return nil
}

// room returns n elements, in b's memory if that is large enough.
func room[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}

// load reads and checks what belongs to the run.
func (s *Stored) load(r *partition.Run, edges bool) error {
	n := r.N()
	if err := section.ReadRange(s.file, "split", int64(r.First), r.Split); err != nil {
		return err
	}
	for i, x := range r.Split {
		if err := x.Valid(); err != nil {
			return s.file.Errorf("split", "node %d: %w", int(r.First)+i, err)
		}
	}
	r.XCols = s.xcols
	if s.sparse {
		r.XPtr = room(r.XPtr, n+1)
		if err := section.ReadRange(s.file, "x/row_ptr", int64(r.First), r.XPtr); err != nil {
			return err
		}
	}
	if !edges {
		return nil
	}
	r.Col = room(r.Col, int(r.Ptr[n]-r.Ptr[0]))
	if err := section.ReadRange(s.file, "adj/0/col", r.Ptr[0], r.Col); err != nil {
		return err
	}
	for i := range n {
		last := int32(-1)
		for _, u := range r.Sources(i) {
			if u <= last || int(u) >= s.nodes {
				return s.file.Errorf("adj/0/col", "node %d: source %d is not ascending, or out of [0, %d)",
					int(r.First)+i, u, s.nodes)
			}
			last = u
		}
	}
	return nil
}

// digest writes to w what graph.Graph.Digest hashes of the graph in memory. It reads all of the
// file, and refuses what does not match its checksum.
func (s *Stored) digest(w io.Writer) error {
	var list []section.Section
	for _, section := range s.file.Sections() {
		if section.Name != "site" && section.Name != "sites/ptr" && section.Name != "sites/text" {
			list = append(list, section)
		}
	}
	return section.Encode(w, graph.GraphKind, list)
}

// hollow returns a graph in memory that has the nodes, and no edges: enough for policies that look
// at nothing else.
func (s *Stored) hollow() (*graph.Graph, error) {
	g := &graph.Graph{Adj: graph.CSR{NumDst: s.nodes, NumSrc: s.nodes}}
	if s.sites > 0 {
		g.Site, g.Sites = make([]int32, s.nodes), make([]string, s.sites)
		if err := section.ReadRange(s.file, "site", 0, g.Site); err != nil {
			return nil, err
		}
		for i, p := range g.Site {
			if p < 0 || int(p) >= s.sites {
				return nil, s.file.Errorf("site", "site of node %d is %d, out of [0, %d)", i, p, s.sites)
			}
		}
	}
	return g, nil
}

// fill gives a hollow graph its edges, which src reads, for policies that need all of them at once.
func (s *Stored) fill(g *graph.Graph, src partition.Source) error {
	g.Adj.RowPtr, g.Adj.Col = make([]int64, 1, s.nodes+1), make([]int32, 0, s.edges)
	if g.X.Dense.Cols = s.xcols; s.sparse { // only for the sizes of the features
		g.X.Sparse = &mat.Sparse{RowPtr: make([]int64, s.nodes+1)}
		if err := section.ReadRange(s.file, "x/row_ptr", 0, g.X.Sparse.RowPtr); err != nil {
			return err
		}
	}
	return src.Runs(true, func(r *partition.Run) error {
		g.Adj.RowPtr = append(g.Adj.RowPtr, r.Ptr[1:]...)
		g.Adj.Col = append(g.Adj.Col, r.Col...)
		g.Split = append(g.Split, r.Split...)
		return nil
	})
}

// Sites returns the names of the natural owners, nil if there are none.
func (s *Stored) Sites() ([]string, error) {
	text, err := s.all("sites/text")
	if err != nil || !s.has("sites/ptr", section.I64) {
		return nil, err
	}
	ptr := make([]int64, s.sites+1)
	if err := section.ReadRange(s.file, "sites/ptr", 0, ptr); err != nil {
		return nil, err
	}
	if ptr[0] != 0 || !slices.IsSorted(ptr) || ptr[s.sites] > int64(len(text)) {
		return nil, s.file.Errorf("sites/ptr", "pointers must ascend from 0 to at most %d (got %d to %d)", len(text),
			ptr[0], ptr[s.sites])
	}
	list := make([]string, s.sites)
	for k := range list {
		list[k] = string(text[ptr[k]:ptr[k+1]])
	}
	return list, nil
}

const small = 1 << 24 // bytes of what belongs to the graph as a whole: names, encoding

// all returns a small section of bytes, nil if there is none.
func (s *Stored) all(name string) ([]byte, error) {
	shape, err := s.file.Shape(name, section.U8)
	if err != nil || shape == nil {
		return nil, err
	}
	if len(shape) != 1 || shape[0] > small {
		return nil, s.file.Errorf(name, "must have at most %d bytes (got shape %v)", small, shape)
	}
	b := make([]byte, shape[0])
	return b, section.ReadRange(s.file, name, 0, b)
}
