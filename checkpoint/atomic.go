package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/graph"
)

// replaceFile makes path hold what write writes, or leaves it as it was: a reader, or a machine that loses power, sees
// the old file or the new one whole. perm holds whatever the umask.
func replaceFile(path string, perm os.FileMode, write func(*os.File) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("checkpoint: write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name()) // already renamed where the last sync failed
			err = fmt.Errorf("checkpoint: write %s: %w", path, err)
		}
	}()
	if err := errors.Join(f.Chmod(perm), write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return graph.SyncDir(dir)
}
