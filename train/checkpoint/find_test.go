package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFind: stores are found at any depth; a directory without states, or none at all, is not one.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	save(t, &Store{Dir: filepath.Join(dir, "run", "seed-1", "peer-0")}, 1)
	save(t, &Store{Dir: filepath.Join(dir, "run", "seed-1", "peer-1")}, 3)
	if err := os.Mkdir(filepath.Join(dir, "run", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := Find(dir)
	if err != nil || len(all) != 2 || filepath.Base(all[1].Dir) != "peer-1" {
		t.Errorf("found %v, %v", all, err)
	}
	if _, err := os.Stat(all[1].Path(3)); err != nil {
		t.Error(err)
	}
	if all, err := Find(filepath.Join(dir, "none")); err != nil || len(all) != 0 {
		t.Errorf("found %v, %v where there is nothing", all, err)
	}
}
