package chain

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// What package admission tests of its log is not tested again here.

type line struct {
	Seq  uint64 `json:"seq"`
	Prev string `json:"prev"`
}

func parse(b []byte) (uint64, string, error) {
	var l line
	err := json.Unmarshal(b, &l)
	return l.Seq, l.Prev, err
}

func next(after Head) ([]byte, error) { return json.Marshal(line{after.Seq + 1, after.Hash}) }

// A file takes no more once the disk has failed; a line that its writer refuses, or that is too long, is no
// such failure.
func TestAppendAfterFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain")
	f, torn, err := Open(disk.OS{}, path, parse)
	if err != nil || len(torn) > 0 {
		t.Fatal(torn, err)
	}
	defer f.Close()
	refused := errors.New("no")
	if err := f.Append(func(Head) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("%v, want %v", err, refused)
	}
	if err := f.Append(func(Head) ([]byte, error) { return make([]byte, MaxLine+1), nil }); err == nil ||
		!strings.Contains(err.Error(), "at most 8192 bytes") {
		t.Errorf("a line that is too long: %v", err)
	}
	if err := f.Append(next); err != nil {
		t.Fatal(err)
	}
	f.file.Close() // as if the disk were gone
	for range 2 {
		if f.Append(next) == nil {
			t.Error("what could not be written is no error")
		}
	}
	if head, err := Verify(path, parse, nil); err != nil || head != f.Head() || head.Seq != 1 {
		t.Errorf("%v (%v), want one line", head, err)
	}
}

// A head, which a person types or another system keeps, is accepted only as this program writes it.
func FuzzHead(f *testing.F) {
	for _, s := range []string{Head{0, None}.String(), Head{17, strings.Repeat("a7", 32)}.String(), "17:", ":",
		"+1:" + None, "01:" + None, "1:" + strings.Repeat("A7", 32)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if h, err := ParseHead(s); err == nil && (h.String() != s || len(h.Hash) != 64 || len(h.encode()) != headSize) {
			t.Errorf("%q is read as %+v", s, h)
		}
	})
}
