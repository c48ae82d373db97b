package graph

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/edsrzf/mmap-go"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// WriteSections writes the section file path: to a temporary file beside it, synced and renamed, so that path holds
// either what it held before or all of the new file. Only the owner may read it (mode 0600). It returns what
// Sections.Digest will give.
func WriteSections(path, kind string, sections []Section) (digest [32]byte, err error) {
	return writeSections(disk.OS{}, path, kind, sections)
}

func writeSections(on disk.FS, path, kind string, sections []Section) (digest [32]byte, err error) {
	err = writeAtomic(on, path, func(f disk.File, w *bufio.Writer) error {
		b, offset, err := layout(kind, sections, make([]uint32, len(sections)))
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		sum, err := payloads(w, sections, offset, int64(len(b)))
		if err != nil {
			return err
		}
		// The head has the checksums in it, which are known only now.
		if b, _, err = layout(kind, sections, sum); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		digest = sha256.Sum256(b)
		_, err = f.WriteAt(b, 0)
		return err
	})
	return digest, err
}

// WriteAtomic writes the file path as write fills it: to a temporary file beside it, synced and renamed.
func WriteAtomic(path string, write func(io.Writer) error) error {
	return writeAtomic(disk.OS{}, path, func(_ disk.File, w *bufio.Writer) error { return write(w) })
}

func writeAtomic(on disk.FS, path string, write func(disk.File, *bufio.Writer) error) error {
	err := disk.Replace(on, path, 0o600, func(f disk.File) error {
		w := bufio.NewWriterSize(f, 1<<18)
		if err := write(f, w); err != nil {
			return err
		}
		return w.Flush()
	})
	if err != nil {
		return fmt.Errorf("graph: writing %s: %w", path, err)
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error { return disk.OS{}.SyncDir(dir) }

// OpenSections maps the section file path of the given kind into memory and checks all of it (DecodeSections). Close
// unmaps it: no array that came from it may be used after that. The arrays are read only; a write to one faults.
func OpenSections(path, kind string) (*Sections, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < headerSize || info.Size() > math.MaxInt {
		return nil, fmt.Errorf("graph: %s: not a section file: want a header of %d bytes", path, headerSize)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("graph: mapping %s: %w", path, err)
	}
	s, err := DecodeSections(path, kind, m)
	if err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	s.unmap = m.Unmap
	return s, nil
}

// Close unmaps the file. It may be called more than once.
func (f *Sections) Close() error {
	unmap := f.unmap
	f.unmap, f.list, f.index = nil, nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}
