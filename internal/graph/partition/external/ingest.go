package external

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// WriteGraph writes g, which must be valid, as a file of kind graph.GraphKind.
func WriteGraph(path string, g *graph.Graph) error {
	if err := g.Valid(); err != nil {
		return err
	}
	_, err := section.Write(path, graph.GraphKind, append(g.Sections(), siteSections(g)...))
	return err
}

// EdgeReader is a list of edges that is read in batches, the same ones at each call. A format whose reader is one can
// be stored in bounded memory. yield's error ends it and is returned. The batches are the callee's until yield returns.
type EdgeReader func(yield func(src, dst []int32) error) error

// WriteNodes stores a graph of n nodes in the file path as WriteGraph would what graph.FromEdges makes of the edges:
// both directions unless b is directed, no edge twice. The nodes have the name, labels, splits and sites of the
// graph and these features, sections that are written as they are read. It takes 8 bytes of memory a node and buffers
// of about memory bytes in all (0 = 256 MiB). Next to the file it needs space for the edges, twice, in path.incomplete
// while it works; on an error nothing is left.
func WriteNodes(path string, of *graph.Graph, features []section.Section, n int, edges EdgeReader, b graph.Build,
	memory int64) (err error) {
	if of.Split != nil && len(of.Split) != n || of.IDs != nil || of.Site != nil && len(of.Site) != n {
		return fmt.Errorf("%d splits and %d owners for %d nodes, whose names are their numbers",
			len(of.Split), len(of.Site), n)
	}
	if err := of.Labels.Valid(n); err != nil && (of.Labels.Class != nil || of.Labels.Bits != nil ||
		of.Labels.Values != nil) {
		return err
	}
	if n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("number of nodes must be 1 to %d (got %d)", math.MaxInt32, n)
	}
	if memory == 0 {
		memory = 1 << 28
	}
	g := &ingest{n: n, dir: shard.Incomplete(path), Build: b, edges: edges}
	if err := g.count(memory); err != nil {
		return err
	}
	if err := errors.Join(shard.Discard(g.dir), os.MkdirAll(g.dir, 0o777)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shard.Discard(g.dir)) }()
	if err := g.scatter(); err != nil {
		return err
	}
	if err := g.gather(); err != nil {
		return err
	}
	split := of.Split
	if split == nil { // no node is in any
		split = make([]graph.Split, n)
	}
	list := []section.Section{
		section.Array("name", []byte(of.Name)),
		section.Array("split", split),
		section.Array("encoding", of.Encoding),
		section.Stream("adj/0/row_ptr", section.I64, []int{n + 1},
			func(w io.Writer) error { return section.WritePointers(w, g.degree) }),
		section.Stream("adj/0/col", section.I32, []int{int(g.stored)}, g.columns),
	}
	list = append(append(list, features...), of.Labels.Sections()...)
	_, err = section.Write(path, graph.GraphKind, append(list, siteSections(of)...))
	return err
}

func siteSections(g *graph.Graph) []section.Section {
	if g.Site == nil {
		return nil
	}
	return append([]section.Section{section.Array("site", g.Site)}, section.Strings("sites", g.Sites)...)
}

// ingest is a list on its way into rows: edges are dealt to buckets of destinations, which fit into
// memory one by one.
type ingest struct {
	graph.Build
	n      int
	dir    string
	edges  EdgeReader
	degree []int32 // [n] of destinations, at most
	bounds []int32 // [B+1] bucket k has the destinations [bounds[k], bounds[k+1])
	stored int64   // edges without repetitions
}

// each calls f for each stored edge, some of them more than once.
func (g *ingest) each(f func(src, dst int32) error) error {
	at := 0
	return g.edges(func(src, dst []int32) error {
		if len(src) != len(dst) {
			return fmt.Errorf("%d sources and %d destinations of edges", len(src), len(dst))
		}
		for k, u := range src {
			v := dst[k]
			if uint32(u) >= uint32(g.n) || uint32(v) >= uint32(g.n) {
				return fmt.Errorf("edge %d goes from node %d to node %d, out of [0, %d)", at+k, u, v, g.n)
			}
			if u == v && !g.KeepLoops {
				continue
			}
			if err := f(u, v); err != nil {
				return err
			}
			if !g.Directed && u != v {
				if err := f(v, u); err != nil {
					return err
				}
			}
		}
		at += len(src)
		return nil
	})
}

// count finds the degrees, and buckets that each fit into the memory.
func (g *ingest) count(memory int64) error {
	g.degree = make([]int32, g.n)
	err := g.each(func(_, v int32) error {
		if g.degree[v] == math.MaxInt32 {
			return fmt.Errorf("node %d has more than %d edges", v, math.MaxInt32)
		}
		g.degree[v]++
		return nil
	})
	if err != nil {
		return err
	}
	most, sum := max(memory/16, 1<<16), int64(0) // a bucket is 12 bytes an edge
	g.bounds = []int32{0}
	for v, d := range g.degree {
		if sum += int64(d); sum > most && int32(v) > g.bounds[len(g.bounds)-1] {
			g.bounds, sum = append(g.bounds, int32(v)), int64(d)
		}
	}
	g.bounds = append(g.bounds, int32(g.n))
	if len(g.bounds) > filesAtOnce {
		return fmt.Errorf("the edges need %d buckets of %d MiB, of at most %d: allow more memory",
			len(g.bounds)-1, memory>>20, filesAtOnce)
	}
	return nil
}

// part returns a file of bucket k: pairs are its edges, rows their sources in order and without repetitions.
func (g *ingest) part(name string, k int) string {
	return filepath.Join(g.dir, fmt.Sprintf("part-%s-%d", name, k))
}

// scatter writes the edges into the files of their buckets: source, then destination.
func (g *ingest) scatter() error {
	var paths []string
	for k := range len(g.bounds) - 1 {
		paths = append(paths, g.part("pairs", k))
	}
	out, err := createOutputs(paths, 1<<16)
	if err != nil {
		return err
	}
	var of [1 << 16]uint8 // bucket of the first node with those leading bits
	shift := 0
	for g.n>>shift > len(of) {
		shift++
	}
	k := 0
	for at := range of {
		for k+2 < len(g.bounds) && int(g.bounds[k+1]) <= at<<shift {
			k++
		}
		of[at] = uint8(k)
	}
	pair := make([]int32, 2)
	err = g.each(func(u, v int32) error {
		k := int(of[v>>shift])
		for v >= g.bounds[k+1] {
			k++
		}
		pair[0], pair[1] = u, v
		return section.WriteArray(out.to[k], pair)
	})
	return errors.Join(err, out.close())
}

// gather sorts each bucket into rows without repetitions, and leaves the degrees that these have.
func (g *ingest) gather() error {
	var pairs, col []int32
	for k := range len(g.bounds) - 1 {
		if err := g.sort(k, &pairs, &col); err != nil {
			return err
		}
	}
	return nil
}

// sort makes rows without repetitions of bucket k, with buffers that are used again.
func (g *ingest) sort(k int, pairs, buf *[]int32) error {
	lo, hi := int(g.bounds[k]), int(g.bounds[k+1])
	ptr := make([]int64, hi-lo+1)
	for v := lo; v < hi; v++ {
		ptr[v-lo+1] = ptr[v-lo] + int64(g.degree[v])
	}
	col := room(*buf, int(ptr[hi-lo]))
	*buf = col
	if err := g.place(k, slices.Clone(ptr), pairs, col); err != nil {
		return err
	}
	var wait sync.WaitGroup
	threads := runtime.GOMAXPROCS(0)
	for t := range threads {
		wait.Go(func() {
			for v := lo + (hi-lo)*t/threads; v < lo+(hi-lo)*(t+1)/threads; v++ {
				row := col[ptr[v-lo]:ptr[v-lo+1]]
				slices.Sort(row)
				g.degree[v] = int32(len(slices.Compact(row)))
			}
		})
	}
	wait.Wait()
	end := 0
	for v := lo; v < hi; v++ {
		at := ptr[v-lo]
		end += copy(col[end:], col[at:at+int64(g.degree[v])])
	}
	g.stored += int64(end)
	rows, err := os.Create(g.part("rows", k))
	if err != nil {
		return err
	}
	return errors.Join(section.WriteArray(rows, col[:end]), rows.Close(), os.Remove(g.part("pairs", k)))
}

// place reads bucket k and puts each source into its destination's row, which begins at next.
func (g *ingest) place(k int, next []int64, pairs *[]int32, col []int32) error {
	f, err := os.Open(g.part("pairs", k))
	if err != nil {
		return err
	}
	defer f.Close()
	lo := g.bounds[k]
	for left := 2 * len(col); left > 0; {
		p := room(*pairs, min(left, 1<<18))
		*pairs = p
		if err := section.ReadArray(f, p); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		for e := 0; e < len(p); e += 2 {
			v := p[e+1] - lo
			if uint(v) >= uint(len(next)-1) || next[v] >= int64(len(col)) {
				return fmt.Errorf("%s is not as it was written: is the disk damaged?", f.Name())
			}
			col[next[v]] = p[e]
			next[v]++
		}
		left -= len(p)
	}
	return nil
}

// columns writes the rows of all buckets.
func (g *ingest) columns(w io.Writer) error {
	for k := range len(g.bounds) - 1 {
		f, err := os.Open(g.part("rows", k))
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
