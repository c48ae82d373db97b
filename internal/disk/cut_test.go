package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/disk/disktest"
)

// A file that is replaced has, after a power cut at any point, its old or its new content, and once Replace has
// returned the new one.
func TestReplaceAndPowerCut(t *testing.T) {
	r := disktest.NewRecorder(t.TempDir())
	text := func(k int) string { return fmt.Sprintf("%0*d", 600*k, k) }
	var done []int
	for k := 1; k <= 3; k++ {
		dir := filepath.Join(r.Root(), "new", "dir")
		if err := disk.MkdirAll(r, dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := disk.Replace(r, filepath.Join(dir, "f"), 0o600, func(f disk.File) error {
			_, err := f.Write([]byte(text(k)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, r.Calls())
	}
	r.EachCut(t, func(t *testing.T, root string, calls int) {
		least := 0
		for k, at := range done {
			if calls >= at {
				least = k + 1
			}
		}
		b, err := os.ReadFile(filepath.Join(root, "new", "dir", "f"))
		if errors.Is(err, os.ErrNotExist) && least == 0 {
			return
		}
		if got := string(b); err != nil || got != text(max(least, 1)) && got != text(least+1) {
			t.Errorf("%.20q… of %d bytes, %v, want text %d or the next", b, len(b), err, least)
		}
	})
}

// A writer that forgets to sync fails: the test disks can detect it.
func TestWithoutSync(t *testing.T) {
	r := disktest.NewRecorder(t.TempDir())
	name := filepath.Join(r.Root(), "f")
	f, err := r.CreateTemp(r.Root(), "tmp")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(make([]byte, 5000))
	if err := errors.Join(err, f.Close(), r.Rename(f.Name(), name), r.SyncDir(r.Root())); err != nil {
		t.Fatal(err)
	}
	sizes := map[int64]bool{}
	for draw := range uint64(20) {
		dir := t.TempDir()
		if err := r.Cut(dir, r.Calls(), draw); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		sizes[info.Size()] = true
	}
	if !sizes[0] || !sizes[5000] || len(sizes) < 3 {
		t.Errorf("sizes %v, want none, all and some of the 5000 bytes that were not synced", sizes)
	}
}
