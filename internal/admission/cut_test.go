package admission

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/disk/disktest"
)

// Power is cut after every single call of the file system: the log then opens, has every record for which Append had
// returned, and goes on. A log that nobody changed is never taken for a forgery.
func TestLogAndPowerCut(t *testing.T) {
	r := disktest.NewRecorder(t.TempDir())
	var done []int
	for life := range 2 {
		l, err := openLog(r, filepath.Join(r.Root(), "audit", "log"))
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			// a record of two sectors or three
			if err := l.Append(Record{Event: Lost, Text: fmt.Sprintf("%0700d", 10*life+k)}); err != nil {
				t.Fatal(err)
			}
			done = append(done, r.Calls())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.EachCut(t, func(t *testing.T, root string, calls int) {
		least := 0
		for k, at := range done {
			if calls >= at {
				least = k + 1
			}
		}
		path := filepath.Join(root, "audit", "log")
		l, err := openLog(disktest.NewRecorder(root), path) // which does not wait for a disk
		if err != nil {
			t.Error(err)
			return
		}
		if err := l.Append(Record{Event: Ended}); err != nil {
			t.Error(err)
		}
		l.Close()
		var texts []string
		if _, err := VerifyLog(path, func(r Record) error {
			if r.Event == Lost {
				texts = append(texts, r.Text)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if len(texts) < least || len(texts) > least+1 {
			t.Errorf("%d records are left of the %d that were on disk", len(texts), least)
		}
		for k, text := range texts {
			if want := fmt.Sprintf("%0700d", 10*(k/3)+k%3); text != want {
				t.Errorf("record %d is %q", k, text)
			}
		}
	})
}

// A log on a disk that is full, or whose sync fails, takes no more, and opens again when there is
// room.
func TestLogOnAFullDisk(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 0; ; at++ {
			path := filepath.Join(t.TempDir(), "log")
			d := &disktest.Failing{FS: disk.OS{}, At: at, Err: fault, Lasts: fault == syscall.ENOSPC}
			written := 0
			l, err := openLog(d, path)
			if err == nil {
				for err == nil && written < 2 {
					if err = l.Append(Record{Event: Began}); err == nil {
						written++
					}
				}
				if again := l.Append(Record{Event: Ended}); err != nil && again == nil {
					t.Errorf("call %d failed, and a later record was taken", at)
				}
				l.Close()
			}
			if !d.Reached() {
				break
			}
			l, err = OpenLog(path)
			if err != nil {
				t.Fatalf("after call %d failed: %v", at, err)
			}
			if l.lines.Head().Seq < uint64(written) {
				t.Fatalf("call %d: %d records of %d", at, l.lines.Head().Seq, written)
			}
			l.Close()
		}
	}
}
