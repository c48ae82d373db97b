package section

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk/disktest"
)

// Power is cut after every single call of the file system: a section file is then the old one or
// the new one, whole.
func TestWriteAndPowerCut(t *testing.T) {
	r := disktest.NewRecorder(t.TempDir())
	name := filepath.Join(r.Root(), "part-0")
	values := func(k int) []int64 {
		x := make([]int64, 300*k)
		for i := range x {
			x[i] = int64(k)
		}
		return x
	}
	var done []int
	for k := 1; k <= 3; k++ {
		if _, err := writeOn(r, name, "shard",
			[]Section{Array("a", values(k)), Array("b", []byte{byte(k)})}); err != nil {
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
		f, err := Open(filepath.Join(root, "part-0"), "shard")
		if errors.Is(err, fs.ErrNotExist) && least == 0 {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		a, err := Values[int64](f, "a")
		if k := len(a) / 300; err != nil || k < max(least, 1) || k > least+1 || a[0] != int64(k) {
			t.Errorf("%d values, %v, want those of file %d or the next", len(a), err, least)
		}
	})
}
