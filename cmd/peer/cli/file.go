package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// WriteFile replaces path by what fill writes, or leaves it as it was.
func WriteFile(path string, fill func(io.Writer) error) error {
	return disk.Replace(disk.OS{}, path, 0o644, func(f disk.File) error {
		w := bufio.NewWriter(f)
		return errors.Join(fill(w), w.Flush())
	})
}

// Writable checks before a run that the file path can be written at its end, and makes missing
// directories. An empty path is always writable: no file is written.
func Writable(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Invalidf("cannot write %s: it is a directory", path)
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
