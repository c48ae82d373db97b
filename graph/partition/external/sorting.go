package external

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// sorting is what of an ingest is done: a journal beside its files, from which the same ingest goes
// on. The list is read once again to know that it is the same. Files are not synced but have
// checksums, as those of a job.
type sorting struct {
	Format  int    // 1
	List    uint64 // digest of the edges, in any order, and of what becomes of them
	Buckets []bucket
	Dealt   bool // whether all edges are in their buckets
}

// bucket is the edges into some nodes: a file of pairs, or, once they are sorted, of rows and one
// of the rows' lengths.
type bucket struct {
	Pairs        uint32 // checksum
	Sorted       bool
	Edges        int64 // of all rows
	Rows, Degree uint32
}

func (g *ingest) part(name string, k int) string {
	return filepath.Join(g.dir, fmt.Sprintf("part-%s-%d", name, k))
}

func (g *ingest) journal() string { return filepath.Join(g.dir, "part-journal") }

// resume reads the journal of the same ingest, or begins anew.
func (g *ingest) resume() error {
	b, err := os.ReadFile(g.journal())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh := sorting{Format: 1, List: g.digest, Buckets: make([]bucket, len(g.bounds)-1)}
	if err == nil && json.Unmarshal(b, &g.done) == nil && g.done.Format == 1 && g.done.List == fresh.List &&
		g.done.Dealt && len(g.done.Buckets) == len(fresh.Buckets) && !slices.ContainsFunc(g.done.Buckets,
		func(b bucket) bool { return b.Edges < 0 }) {
		return nil
	}
	if err := shard.Discard(g.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(g.dir, 0o777); err != nil {
		return err
	}
	g.done = fresh
	return nil
}

func (g *ingest) save() error { return writeJournal(g.journal(), g.done) }

// summed is a file that is written, and its checksum.
type summed struct {
	*bufio.Writer
	f   *os.File
	sum uint32
}

func createSummed(path string) (*summed, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	s := &summed{f: f}
	s.Writer = bufio.NewWriterSize(writerFunc(func(b []byte) (int, error) {
		s.sum = crc32.Update(s.sum, castagnoli, b)
		return f.Write(b)
	}), 1<<16)
	return s, nil
}

// Close flushes and closes the file.
func (s *summed) Close() error { return errors.Join(s.Flush(), s.f.Close()) }

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// readBack calls f with a file that createSummed wrote, of which f must read all.
func readBack(path string, sum uint32, f func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h := crc32.New(castagnoli)
	if err := f(io.TeeReader(file, h)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if h.Sum32() != sum {
		return fmt.Errorf("%s is not as it was written: remove %s, and begin anew", path, filepath.Dir(path))
	}
	return nil
}

// scatter writes the edges into the files of their buckets: source, then destination.
func (g *ingest) scatter() (err error) {
	if g.done.Dealt {
		return nil
	}
	var to []*summed
	defer func() {
		for _, f := range to {
			err = errors.Join(err, f.Close())
		}
		if err == nil {
			for k, f := range to {
				g.done.Buckets[k].Pairs = f.sum
			}
			g.done.Dealt = true
			err = g.save()
		}
	}()
	var of [1 << 16]uint8 // bucket of the first node with those leading bits
	shift := 0
	for g.n>>shift > len(of) {
		shift++
	}
	for k := range g.done.Buckets {
		f, err := createSummed(g.part("pairs", k))
		if err != nil {
			return err
		}
		to = append(to, f)
	}
	k := 0
	for at := range of {
		for k+2 < len(g.bounds) && int(g.bounds[k+1]) <= at<<shift {
			k++
		}
		of[at] = uint8(k)
	}
	pair := make([]int32, 2)
	return g.each(func(u, v int32) error {
		k := int(of[v>>shift])
		for v >= g.bounds[k+1] {
			k++
		}
		pair[0], pair[1] = u, v
		return section.WriteArray(to[k], pair)
	})
}

// gather sorts each bucket into rows without repetitions, and leaves the degrees that these have.
func (g *ingest) gather() error {
	var pairs, col []int32
	for k := range g.done.Buckets {
		degree := g.degree[g.bounds[k]:g.bounds[k+1]]
		if b := &g.done.Buckets[k]; b.Sorted {
			if err := readBack(g.part("degree", k), b.Degree,
				func(r io.Reader) error { return section.ReadArray(r, degree) }); err != nil {
				return err
			}
		} else if err := g.sort(k, &pairs, &col); err != nil {
			return err
		}
		g.stored += g.done.Buckets[k].Edges
	}
	return nil
}

// keep writes bucket k's rows and their lengths, and notes that it is sorted.
func (g *ingest) keep(k int, rows, degree []int32) error {
	b := &g.done.Buckets[k]
	for name, part := range map[string]struct {
		values []int32
		sum    *uint32
	}{"rows": {rows, &b.Rows}, "degree": {degree, &b.Degree}} {
		f, err := createSummed(g.part(name, k))
		if err != nil {
			return err
		}
		if err := errors.Join(section.WriteArray(f, part.values), f.Close()); err != nil {
			return err
		}
		*part.sum = f.sum
	}
	b.Sorted, b.Edges = true, int64(len(rows))
	if err := g.save(); err != nil {
		return err
	}
	return os.Remove(g.part("pairs", k))
}

// columns writes the rows of all buckets.
func (g *ingest) columns(w io.Writer) error {
	for k, b := range g.done.Buckets {
		err := readBack(g.part("rows", k), b.Rows, func(r io.Reader) error {
			_, err := io.CopyN(w, r, 4*b.Edges)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
