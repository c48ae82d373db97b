package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLock: a directory of states belongs to only one peer, until its run ends.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil ||
		!strings.Contains(err.Error(), "must be the directory of only one peer (got one in use by another process)") {
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

// TestLockRemovesLeftovers: what a killed run left in the directory goes with the next lock, not while a live run has
// it.
func TestLockRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, ".run.yaml.123.tmp")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil {
		t.Skip("SKIPPED: the file system has no locks")
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a file of the live run: %v", err)
	}
	release()
	if release, err = Lock(dir); err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the killed run: %v", err)
	}
}
