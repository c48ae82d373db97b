package cli

import (
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// WriteFile replaces path by what fill writes, or leaves it as it was. Only the owner may read the
// file: what a run writes is about a site's own nodes.
func WriteFile(path string, fill func(io.Writer) error) error {
	return disk.WriteStream(disk.OS{}, path, fill)
}

// Writable checks before a run that the file path can be written at its end, and makes missing
// directories. An empty path is always writable: no file is written.
func Writable(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Invalidf("cannot write %s: it is a directory", path)
	} else if err == nil && !info.Mode().IsRegular() { // a new file would take its place
		return Invalidf("cannot write %s: it must be a regular file (got %s)", path, info.Mode().Type())
	}
	return WritableDir(filepath.Dir(path))
}

// WritableDir checks that files can be made in dir, which it makes if necessary.
func WritableDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Invalidf("cannot write: %w", err)
	}
	f, err := os.CreateTemp(dir, ".heddle-*")
	if err != nil {
		return Invalidf("cannot write to %s: %w", dir, err)
	}
	f.Close()
	return os.Remove(f.Name())
}
