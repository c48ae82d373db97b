package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	put := func(text string, fail error) error {
		return disk.Replace(disk.OS{}, path, 0o640, func(f disk.File) error {
			_, err := f.Write([]byte(text))
			info, fault := os.Stat(f.Name())
			if runtime.GOOS != "windows" && (fault != nil || info.Mode().Perm() != 0o600) {
				t.Errorf("until it is whole others may read it: %v, %v", info.Mode(), fault)
			}
			if now, readErr := os.ReadFile(path); readErr == nil && string(now) == text {
				t.Error("the new text is seen before it is whole")
			}
			return errors.Join(err, fail)
		})
	}
	if err := put("old", nil); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := put("new", broken); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("after a failed write: %q, %v", b, err)
	}
	if err := put("newer", nil); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "newer" {
		t.Errorf("after a write: %q, %v", b, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// TestRemoveTemporary: of two runs with one directory neither removes what the other one writes; what a killed one left
// is removed.
func TestRemoveTemporary(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	left := filepath.Join(dir, ".f.1.tmp")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := disk.Replace(disk.OS{}, path, 0o600, func(f disk.File) error {
		if !disk.Temporary(filepath.Base(f.Name()), "f") {
			t.Errorf("%s must be known as a temporary file", f.Name())
		}
		if err := errors.Join(disk.RemoveTemporary(left), disk.RemoveTemporary(left)); err != nil {
			return err
		}
		if err := disk.RemoveTemporary(f.Name()); err != nil && runtime.GOOS != "windows" {
			return err
		}
		_, err := f.Write([]byte("whole"))
		return err
	})
	if b, readErr := os.ReadFile(path); err != nil || readErr != nil || string(b) != "whole" {
		t.Errorf("%q, %v, %v", b, err, readErr)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, must be one (%v)", len(files), err)
	}
}
