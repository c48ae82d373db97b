package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLockOfAForkedProcess: a lock is free once it is released, even while a process that is being started has a copy
// of the descriptor, as between fork and exec.
func TestLockOfAForkedProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(path, false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("SKIPPED: no list of descriptors: %v", err)
	}
	copied := false
	for _, one := range all {
		if to, err := os.Readlink("/proc/self/fd/" + one.Name()); err == nil && to == path {
			var fd int
			fmt.Sscan(one.Name(), &fd)
			twin, err := syscall.Dup(fd)
			if err != nil {
				t.Fatal(err)
			}
			defer syscall.Close(twin)
			copied = true
		}
	}
	if !copied {
		t.Fatal("the descriptor of the lock is not listed")
	}
	release()
	again, err := Lock(path, false)
	if err != nil {
		t.Fatalf("the lock must be free after its release (got %v)", err)
	}
	again()
}
