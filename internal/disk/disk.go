// Package disk writes files so that a power cut or a crash leaves the old content or the new one,
// never a mixture.
package disk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrLocked reports that another process has a lock (Lock).
var ErrLocked = errors.New("in use by another process")

// FS is what durable writing needs of a file system: OS, or one that fails or forgets for a test
// (disktest).
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	CreateTemp(dir, pattern string) (File, error)
	Mkdir(dir string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(dir string) error // makes the names in dir durable
}

// File is a file of an FS; *os.File is one.
type File interface {
	io.Writer
	io.WriterAt
	io.ReaderAt
	io.Seeker
	io.Closer
	Name() string
	Chmod(fs.FileMode) error
	Truncate(size int64) error
	Sync() error
}

// OS is the file system of the machine.
type OS struct{}

// OpenFile implements FS.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not a File whose *os.File is nil
	}
	return f, nil
}

// CreateTemp implements FS.
func (OS) CreateTemp(dir, pattern string) (File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir implements FS.
func (OS) Mkdir(dir string, perm fs.FileMode) error { return os.Mkdir(dir, perm) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS. Windows has no such call and needs none.
func (OS) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReadStart reads a file, and no more of it than shows that it has more than `most` bytes.
func ReadStart(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// WriteFile makes data the content of path, as Replace does.
func WriteFile(on FS, path string, perm fs.FileMode, data []byte) error {
	return Replace(on, path, perm, func(f File) error {
		_, err := f.Write(data)
		return err
	})
}

// WriteStream makes what write writes the content of path, which only its owner may read (mode 0600), as Replace does.
// The writer is buffered.
func WriteStream(on FS, path string, write func(io.Writer) error) error {
	return Replace(on, path, 0o600, func(f File) error {
		w := bufio.NewWriterSize(f, 1<<18)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	})
}

// Replace writes the content of path by a temporary file next to it, which is synced and renamed; until then only its
// owner may read it. If it fails, path is as it was; when it returns nil, the new content survives a power cut. perm
// applies despite the umask. If path is a link, its target is replaced; a directory, a device or a pipe is not replaced
// and is an error. An error names path.
func Replace(on FS, path string, perm fs.FileMode, write func(File) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("write %s: it must be a file (got %s)", path, info.Mode().Type())
	}
	if path, err = Linked(path); err != nil {
		return fmt.Errorf("write %w", err)
	}
	dir := filepath.Dir(path)
	f, err := on.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	release := holdTemporary(f.Name())
	defer func() {
		release()
		if err != nil {
			f.Close()
			on.Remove(f.Name()) // already renamed if the last sync failed
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	// The first failure ends it: after a sync that failed nobody knows what of the file is on the
	// disk.
	for _, step := range []func() error{
		func() error { return write(f) }, func() error { return f.Chmod(perm) }, f.Sync, f.Close,
		func() error { return on.Rename(f.Name(), path) }, func() error { return on.SyncDir(dir) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Temporary reports whether name is a temporary file of Replace, for a file named to.
func Temporary(name, to string) bool {
	return strings.HasPrefix(name, "."+to+".") && strings.HasSuffix(name, ".tmp")
}

// RemoveTemporary removes a temporary file of Replace, unless a process still writes it. If the file system has no
// locks, it removes nothing.
func RemoveTemporary(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return missing(err)
	}
	free := lockFile(f)
	if err := f.Close(); err != nil || free != nil {
		return err
	}
	return missing(os.Remove(path))
}

// missing leaves out that a file is not there.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Linked returns the target of a link, or path itself if it is not a link. The file need not exist.
func Linked(path string) (string, error) {
	at := path
	for range 40 { // the limit of Linux
		to, err := os.Readlink(at)
		if err != nil {
			return at, nil // not a link, or nothing is there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return "", fmt.Errorf("%s: it must not be a link to itself", path)
}

// MkdirAll makes dir and its missing parents, durably.
func MkdirAll(on FS, dir string, perm fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(on, parent, perm); err != nil {
			return err
		}
	}
	if err := on.Mkdir(dir, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return on.SyncDir(parent)
}
