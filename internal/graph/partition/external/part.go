package external

import (
	"bufio"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// part writes the file of part p from what was dealt to it, in the order of Shard.sections, and notes its line of the
// manifest.
func (r *runner) part(p int) error {
	if err := r.phase("write", 0); err != nil {
		return err
	}
	if r.to == nil {
		r.to = make([]int32, r.nodes)
	}
	ptr := r.halo[p]
	owned, sources := int(ptr[0]), int(ptr[r.Parts])
	d := shard.Part{Owned: owned, Cut: int(r.cut[p]), Halo: make([]int, r.Parts)}
	k := int32(0)
	if err := each(r, r.spill("global", p), func(v int64) { r.to[v] = k; k++ }); err != nil {
		return err
	}
	name, err := r.all("name")
	if err != nil {
		return err
	}
	encoding, err := r.all("encoding")
	if err != nil {
		return err
	}
	list := []section.Section{
		section.Array("shard", []int64{int64(p), int64(r.Parts), int64(owned), int64(sources), int64(r.nodes)}),
		section.Array("fingerprint", r.print[:]),
		section.Array("name", name),
	}
	if len(encoding) > 0 {
		list = append(list, section.Array("encoding", encoding))
	}
	boundary := make([]int64, r.Parts+1)
	for q := range r.Parts {
		d.Halo[q] = int(ptr[q+1] - ptr[q])
		boundary[q+1] = boundary[q] + r.halo[q][p+1] - r.halo[q][p]
	}
	list = append(list, r.stream("global", section.I64, p, sources),
		section.Array("halo_ptr", ptr), section.Array("boundary/ptr", boundary),
		section.Stream("boundary/node", section.I32, []int{int(boundary[r.Parts])},
			func(w io.Writer) error { return r.boundary(p, w) }),
		r.stream("split", section.U8, p, owned),
		r.stream("adj/0/row_ptr", section.I64, p, owned+1))
	edges, err := r.length("adj/0/col", p, 4)
	if err != nil {
		return err
	}
	d.Edges = edges
	list = append(list, section.Stream("adj/0/col", section.I32, []int{edges}, func(w io.Writer) error {
		return r.relabel(p, func(b *rows) error { return section.WriteArray(w, b.col) })
	}))
	if r.weighted {
		list = append(list, section.Stream("adj/0/weight", section.F32, []int{edges}, func(w io.Writer) error {
			return r.relabel(p, func(b *rows) error { return section.WriteArray(w, b.weight) })
		}))
	}
	tables, bytes, err := r.tables(p, owned)
	if err != nil {
		return err
	}
	d.Bytes = bytes
	if err := each(r, r.spill("split", p), d.CountSplit); err != nil {
		return err
	}
	if d.Digest, err = shard.WritePart(r.dir, p, append(list, tables...)); err != nil {
		return err
	}
	r.parts = append(r.parts, d)
	for _, one := range r.dealt { // the disk need not have space for both
		os.Remove(r.spill(one.name, p))
		os.Remove(r.spill(one.ptr, p))
	}
	r.end(0)
	return nil
}

// tables returns features, labels and names of part p's nodes, and the size of the features.
func (r *runner) tables(p, owned int) (list []section.Section, bytes int64, err error) {
	switch {
	case r.xcols > 0 && !r.sparse:
		bytes = 4 * int64(owned) * int64(r.xcols)
		list = append(list, r.stream("x/dense", section.F32, p, owned, r.xcols))
	case r.xcols > 0:
		n, err := r.length("x/col", p, 4)
		if err != nil {
			return nil, 0, err
		}
		bytes = 8 * int64(n)
		list = append(list, section.Array("x/shape", []int64{int64(owned), int64(r.xcols)}),
			r.stream("x/row_ptr", section.I64, p, owned+1), r.stream("x/col", section.I32, p, n),
			r.stream("x/val", section.F32, p, n))
	}
	list = append(list, section.Array("y/classes", []int64{int64(r.classes)}))
	if r.has("y/class", section.I32) {
		list = append(list, r.stream("y/class", section.I32, p, owned))
	}
	if r.has("y/bits", section.U8) {
		list = append(list, r.stream("y/bits", section.U8, p, owned*r.classes))
	}
	if r.has("y/values", section.F32) {
		list = append(list, r.stream("y/values", section.F32, p, owned*r.classes))
	}
	for _, s := range r.file.Sections() {
		if s.Name == "y/names/ptr" || s.Name == "y/names/text" {
			list = append(list, s)
		}
	}
	if r.has("ids/ptr", section.I64) {
		list = append(list, r.stream("ids/ptr", section.I64, p, owned+1))
		n, err := r.length("ids/text", p, 1)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, r.stream("ids/text", section.U8, p, n))
	}
	return list, bytes, nil
}

// stream returns a section that is what part p was dealt.
func (r *runner) stream(name string, t section.Type, p int, shape ...int) section.Section {
	return section.Stream(name, t, shape, func(w io.Writer) error {
		f, err := os.Open(r.spill(name, p))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return errors.Join(err, r.advance(0))
	})
}

// length returns how many elements part p was dealt.
func (r *runner) length(file string, p int, size int64) (int, error) {
	info, err := os.Stat(r.spill(file, p))
	if err != nil {
		return 0, err
	}
	return int(info.Size() / size), nil
}

// boundary writes the owned nodes of p that each peer has as halo, in the peer's order.
func (r *runner) boundary(p int, w io.Writer) error {
	buf := make([]int64, 1<<13)
	local := make([]int32, len(buf))
	for q, ptr := range r.halo {
		f, err := os.Open(r.spill("global", q))
		if err != nil {
			return err
		}
		in := io.NewSectionReader(f, 8*ptr[p], 8*(ptr[p+1]-ptr[p]))
		for left := ptr[p+1] - ptr[p]; left > 0 && err == nil; left -= int64(len(buf)) {
			buf = buf[:min(int64(cap(buf)), left)]
			if err = section.ReadArray(in, buf); err == nil {
				for k, v := range buf {
					local[k] = r.to[v]
				}
				err = section.WriteArray(w, local[:len(buf)])
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// rows is a run of a part's rows in its own numbering.
type rows struct {
	ptr    []int64 // [n+1] ends of the rows in the part
	col    []int32
	weight []float32
}

// relabel calls f with the adjacency of part p in the part's numbering, run after run.
func (r *runner) relabel(p int, f func(*rows) error) error {
	var in [3]*bufio.Reader
	for k, name := range []string{"adj/0/row_ptr", "adj/0/col", "adj/0/weight"} {
		if k == 2 && !r.weighted {
			break
		}
		file, err := os.Open(r.spill(name, p))
		if err != nil {
			return err
		}
		defer file.Close()
		in[k] = bufio.NewReaderSize(file, 1<<18)
	}
	b, threads := &rows{ptr: make([]int64, 1)}, runtime.GOMAXPROCS(0)
	if err := section.ReadArray(in[0], b.ptr); err != nil {
		return err
	}
	for left := int(r.halo[p][0]); left > 0; {
		start := b.ptr[len(b.ptr)-1]
		b.ptr = append(b.ptr[:0], start)
		for n := 0; n < left && n < runNodes && b.ptr[n]-start < runEdges; n++ {
			b.ptr = append(b.ptr, 0)
			if err := section.ReadArray(in[0], b.ptr[n+1:]); err != nil {
				return err
			}
		}
		n := len(b.ptr) - 1
		left -= n
		b.col = room(b.col, int(b.ptr[n]-start))
		if err := section.ReadArray(in[1], b.col); err != nil {
			return err
		}
		if r.weighted {
			b.weight = room(b.weight, len(b.col))
			if err := section.ReadArray(in[2], b.weight); err != nil {
				return err
			}
		}
		var wait sync.WaitGroup
		for t := range threads {
			wait.Go(func() { b.rename(r.to, n*t/threads, n*(t+1)/threads) })
		}
		wait.Wait()
		if err := errors.Join(f(b), r.advance(0)); err != nil {
			return err
		}
	}
	return nil
}

// rename gives the sources of rows [lo, hi) their numbers in the part, ascending in each row.
func (b *rows) rename(to []int32, lo, hi int) {
	var key []uint64 // number, then place in the row: sorting keys sorts the weights with them
	var weight []float32
	for i := lo; i < hi; i++ {
		first, end := b.ptr[i]-b.ptr[0], b.ptr[i+1]-b.ptr[0]
		col := b.col[first:end]
		if b.weight == nil {
			for k, u := range col {
				col[k] = to[u]
			}
			slices.Sort(col)
			continue
		}
		key, weight = key[:0], append(weight[:0], b.weight[first:end]...)
		for k, u := range col {
			key = append(key, uint64(to[u])<<32|uint64(k))
		}
		slices.Sort(key)
		for k, x := range key {
			col[k], b.weight[int(first)+k] = int32(x>>32), weight[uint32(x)]
		}
	}
}

// manifest writes and returns the manifest of the parts.
func (r *runner) manifest() (*shard.Manifest, error) {
	name, err := r.all("name")
	if err != nil {
		return nil, err
	}
	m := &shard.Manifest{Name: string(name), Nodes: int64(r.nodes), Edges: r.edges,
		Fingerprint: hex.EncodeToString(r.print[:]), Meta: r.Meta, Parts: r.parts}
	return m, m.Write(r.dir)
}
