package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// Lock makes a directory of states, and refuses one that another process uses, until release or the end of the process.
// It removes temporary files, which a killed process left there. If the file system has no locks, it refuses nothing
// and removes nothing. An empty dir needs no lock.
func Lock(dir string) (release func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	release, err = disk.Lock(filepath.Join(dir, ".lock"), false)
	if errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("checkpoint: %s must be the directory of one peer alone (got one %w)", dir, err)
	}
	if err != nil {
		return func() {}, nil
	}
	if err := (&Store{Dir: dir}).removeLeftovers(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
