package checkpoint

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLock: a directory of states is one peer's alone, until its run ends.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "must be the directory of one peer alone (got one in use by another process)") {
		t.Errorf("locked twice: %v", err)
	}
	s := &Store{Dir: dir}
	if err := s.removeLeftovers(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil {
		t.Error("the lock went with what was left over")
	}
	release()
	release, err = Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := Lock(""); err != nil {
		t.Error(err)
	}
}
