package graph

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"github.com/edsrzf/mmap-go"
)

// WriteSections writes the section file path: to a temporary file beside it, synced and renamed, so that path holds
// either what it held before or all of the new file. Only the owner may read it (mode 0600). It returns what
// Sections.Digest will give.
func WriteSections(path, kind string, sections []Section) (digest [32]byte, err error) {
	err = writeAtomic(path, func(f *os.File, w *bufio.Writer) error {
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
	return writeAtomic(path, func(_ *os.File, w *bufio.Writer) error { return write(w) })
}

func writeAtomic(path string, write func(*os.File, *bufio.Writer) error) error {
	if err := replace(path, write); err != nil {
		return fmt.Errorf("graph: writing %s: %w", path, err)
	}
	return nil
}

func replace(path string, write func(*os.File, *bufio.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := write(f, w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable. Windows has no such call and needs none.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

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
