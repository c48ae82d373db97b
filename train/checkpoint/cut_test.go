package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/disk/disktest"
)

// Power is cut after every single call of the file system: the store then gives the last state that
// Save had returned for, or the one that it was writing, whole; and it goes on from there.
func TestPowerCutAtAnyCall(t *testing.T) {
	r := disktest.NewRecorder(t.TempDir())
	s := &Store{Dir: filepath.Join(r.Root(), "run", "peer-0"), on: r}
	var done []int
	for seq := uint64(1); seq <= 4; seq++ {
		save(t, s, int(seq))
		done = append(done, r.Calls())
	}
	r.EachCut(t, func(t *testing.T, root string, calls int) {
		least := uint64(0)
		for k, at := range done {
			if calls >= at {
				least = uint64(k + 1)
			}
		}
		// which does not wait for a disk
		back := &Store{Dir: filepath.Join(root, "run", "peer-0"), on: disktest.NewRecorder(root)}
		st, damaged, err := latest(back)
		if st == nil && err == nil && least == 0 {
			return
		}
		if err != nil || st == nil || st.Seq < least || st.Seq > least+1 || damaged > 0 {
			t.Errorf("%+v, %v, want state %d or the next", st, err, least)
			return
		}
		checkState(t, st, int(st.Seq))
		if calls%5 == 0 {
			save(t, back, int(st.Seq)+1)
			st, _, err = latest(back)
			if err != nil {
				t.Error(err)
				return
			}
			checkState(t, st, int(st.Seq))
		}
	})
}

// Whatever call fails (a full disk, a sync that fails), Save returns an error that names the file, and the states
// before are unchanged. With space again, or on the next try, the store goes on.
func TestAnyCallFails(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 0; ; at++ {
			s := &Store{Dir: t.TempDir()}
			save(t, s, 1)
			save(t, s, 2)
			d := &disktest.Failing{FS: disk.OS{}, At: at, Err: fault, Lasts: fault == syscall.ENOSPC}
			s.on = d
			err := s.Save(3, stateOf(3))
			if !d.Reached() {
				if err != nil || at < 4 {
					t.Fatalf("%d calls, %v: want more than that, and no error where none of them failed", at, err)
				}
				break
			}
			var path *fs.PathError
			if !errors.Is(err, fault) || errors.As(err, &path) {
				t.Fatalf("call %d: %v, want %v with the name of the state", at, err, fault)
			}
			s.on = nil
			st, damaged, err := latest(s)
			if err != nil || st == nil || st.Seq < 2 || damaged > 0 {
				t.Fatalf("after call %d failed: %+v, %v", at, st, err)
			}
			checkState(t, st, int(st.Seq))
			save(t, s, 3)
			checkList(t, s, 3, 2)
			if left, err := os.ReadDir(s.Dir); err != nil || len(left) != 2 {
				t.Fatalf("%d files are left, %v", len(left), err)
			}
		}
	}
}
