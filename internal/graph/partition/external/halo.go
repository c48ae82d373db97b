package external

import (
	"errors"
	"io"
	"os"

	"github.com/heddle-gnn/heddle/graph/section"
)

// findHalo finds the sources of part p and writes their global IDs in the shard's order:
// owned, then halo by owner, each ascending.
func (r *runner) findHalo(p int) error {
	if err := r.phase("halo", 0); err != nil {
		return err
	}
	seen, cut := make([]uint64, (r.nodes+63)/64), int64(0)
	err := each(r, r.spill("adj/0/col", p), func(u int32) {
		if r.owner[u] != int32(p) {
			seen[u/64] |= 1 << (u % 64)
			cut++
		}
	})
	if err != nil {
		return err
	}
	owned, ptr := int64(0), make([]int64, r.Parts+1) // first counts, shifted by one
	for v, q := range r.owner {
		if int(q) == p {
			owned++
		} else if seen[v/64]>>(v%64)&1 == 1 {
			ptr[q+1]++
		}
	}
	ptr[0] = owned
	for q := range r.Parts {
		ptr[q+1] += ptr[q]
	}
	if err := r.sources(p, seen, ptr); err != nil {
		return err
	}
	r.halo, r.cut = append(r.halo, ptr), append(r.cut, cut)
	r.end(0)
	return nil
}

// sources writes global IDs of part p, whose halo is in seen and begins at ptr[q] for
// each peer q.
func (r *runner) sources(p int, seen []uint64, ptr []int64) (err error) {
	starts := append([]int64{0}, ptr[:r.Parts]...) // bucket 0 is of the owned, 1+q of peer q
	global, err := newBuckets[int64](r.spill("global", p), starts, bufferOf(r.Parts))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, global.close()) }()
	for v, q := range r.owner {
		bucket := 0
		if int(q) != p {
			if seen[v/64]>>(v%64)&1 == 0 {
				continue
			}
			bucket = int(q) + 1
		}
		if err := global.put(bucket, int64(v)); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with every number in a file of them.
func each[T section.Element](r *runner, path string, f func(x T)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	buf := make([]T, 1<<16)
	size := section.Size[T]()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	for left := info.Size() / size; left > 0; {
		buf = buf[:min(int64(len(buf)), left)]
		if err := section.ReadArray(file, buf); err != nil {
			return err
		}
		for _, x := range buf {
			f(x)
		}
		left -= int64(len(buf))
		if err := r.advance(0); err != nil {
			return err
		}
	}
	return nil
}

// buckets writes a file in several places at once, each from its start on.
type buckets[T section.Element] struct {
	file *os.File
	at   []int64 // byte where the buffered elements of a bucket go
	buf  [][]T
}

func newBuckets[T section.Element](path string, starts []int64, buffer int64) (*buckets[T], error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	b := &buckets[T]{file: f, buf: make([][]T, len(starts))}
	for k, s := range starts {
		b.at, b.buf[k] = append(b.at, s*section.Size[T]()), make([]T, 0, buffer/8)
	}
	return b, nil
}

func (b *buckets[T]) put(bucket int, x T) error {
	b.buf[bucket] = append(b.buf[bucket], x)
	if len(b.buf[bucket]) == cap(b.buf[bucket]) {
		return b.flush(bucket)
	}
	return nil
}

func (b *buckets[T]) flush(bucket int) error {
	err := section.WriteArray(io.NewOffsetWriter(b.file, b.at[bucket]), b.buf[bucket])
	b.at[bucket] += int64(len(b.buf[bucket])) * section.Size[T]()
	b.buf[bucket] = b.buf[bucket][:0]
	return err
}

func (b *buckets[T]) close() (err error) {
	for k := range b.buf {
		err = errors.Join(err, b.flush(k))
	}
	return errors.Join(err, b.file.Close())
}
