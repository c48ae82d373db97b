package admission

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heddle-gnn/heddle/internal/chain"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// written makes a log of n records and returns its path and head.
func written(t *testing.T, n int) (string, chain.Head) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log", "audit.jsonl")
	l := open(t, path)
	for i := range n {
		add(t, l, Record{Event: Left, Door: "halo", Bytes: int64(i), Rows: 3, Stage: "layer 1", Round: i})
	}
	defer l.Close()
	return path, l.lines.Head()
}

// headLine is the content of the head file of a log that ends with h.
func headLine(h chain.Head) []byte { return fmt.Appendf(nil, "%020d %s\n", h.Seq, h.Hash) }

func hashLine(line []byte) string { return fmt.Sprintf("%x", sha256.Sum256(line)) }

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, l *Log, r Record) {
	t.Helper()
	if err := l.Append(r); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLogGoesOn(t *testing.T) {
	path, first := written(t, 2)
	l := open(t, path)
	add(t, l, Record{Event: Refused, Peer: stranger.id, Rule: "roster.unknown", Text: "a \"word\"\n<\x00\xff>"})
	second := l.lines.Head()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var events []string
	head, err := VerifyLog(path, func(r Record) error {
		events = append(events, fmt.Sprintf("%d %s %d %s", r.Seq, r.Event, r.Bytes, r.Rule))
		return nil
	}, first, second)
	if err != nil || head != second {
		t.Errorf("head %v (%v), want %v", head, err, second)
	}
	if got, want := strings.Join(events, "; "), "1 left 0 ; 2 left 1 ; 3 refused 0 roster.unknown"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if again, err := chain.ParseHead(second.String()); err != nil || again != second {
		t.Errorf("head %v reads as %v (%v)", second, again, err)
	}
	for _, bad := range []string{"", "3", ":", "03" + second.String()[1:], second.String() + "0", "-1:" + chain.None} {
		if _, err := chain.ParseHead(bad); err == nil {
			t.Errorf("%q is taken for a head", bad)
		}
	}
	stop := errors.New("enough")
	if _, err := VerifyLog(path, func(Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
}

func TestEmptyLog(t *testing.T) {
	path, head := written(t, 0)
	if got, err := VerifyLog(path, nil, head); err != nil || got != (chain.Head{Seq: 0, Hash: chain.None}) {
		t.Errorf("%v (%v), want no record", got, err)
	}
}

// TestLogChanged: no byte of the log or of its head can be changed, added or taken away unnoticed.
func TestLogChanged(t *testing.T) {
	path, head := written(t, 4)
	for _, file := range []string{path, chain.HeadFile(path)} {
		whole := content(t, file)
		noticed := func(what string, b []byte) {
			t.Helper()
			put(t, file, b)
			if got, err := VerifyLog(path, nil); err == nil {
				t.Errorf("%s: %s is not noticed; head %v", filepath.Base(file), what, got)
			}
		}
		for i := range whole {
			b := bytes.Clone(whole)
			b[i] ^= 1
			noticed(fmt.Sprintf("byte %d changed", i), b)
			noticed(fmt.Sprintf("all from byte %d on cut off", i), whole[:i])
		}
		noticed("the whole file twice", append(bytes.Clone(whole), whole...))
		put(t, file, whole)
	}
	lines := bytes.SplitAfter(content(t, path), []byte("\n"))
	for what, b := range map[string][][]byte{
		"first line removed":  lines[1:],
		"middle line removed": {lines[0], lines[2], lines[3]},
		"lines exchanged":     {lines[0], lines[2], lines[1], lines[3]},
		"a line twice":        {lines[0], lines[0], lines[1], lines[2], lines[3]},
	} {
		put(t, path, bytes.Join(b, nil))
		if _, err := VerifyLog(path, nil); err == nil {
			t.Errorf("%s: not noticed", what)
		}
	}
	// A head that was kept elsewhere exposes a change of both log and head.
	forged, _ := written(t, 5)
	if _, err := VerifyLog(forged, nil, head); err == nil ||
		!strings.Contains(err.Error(), "record 4 is not the one that was known") {
		t.Errorf("another log: %v", err)
	}
	put(t, path, bytes.Join(lines[:2], nil))
	put(t, chain.HeadFile(path), headLine(chain.Head{Seq: 2, Hash: hashLine(bytes.TrimSuffix(lines[1], []byte("\n")))}))
	if _, err := VerifyLog(path, nil); err != nil {
		t.Error(err)
	}
	if _, err := VerifyLog(path, nil, head); err == nil || !strings.Contains(err.Error(), "the end was cut off") {
		t.Errorf("end and head cut off alike: %v", err)
	}
}

// TestLogAfterCrash: what a crash can leave is repaired; what it cannot is refused.
func TestLogAfterCrash(t *testing.T) {
	for _, c := range []struct {
		what   string
		spoil  func(path string, lines [][]byte)
		repair bool
		want   string
	}{
		{"half a line", func(path string, l [][]byte) { put(t, path, append(bytes.Join(l, nil), `{"seq":4,"ti`...)) },
			true, ""},
		{"the head one behind", func(path string, l [][]byte) {
			put(t, chain.HeadFile(path),
				headLine(chain.Head{Seq: 2, Hash: hashLine(bytes.TrimSuffix(l[1], []byte("\n")))}))
		}, false, ""},
		{"the head two behind", func(path string, l [][]byte) {
			put(t, chain.HeadFile(path),
				headLine(chain.Head{Seq: 1, Hash: hashLine(bytes.TrimSuffix(l[0], []byte("\n")))}))
		}, false, "ends with record 3"},
		{"the last line cut off", func(path string, l [][]byte) { put(t, path, bytes.Join(l[:2], nil)) }, false,
			"ends with record 2"},
		{"a part of it cut off", func(path string, l [][]byte) {
			put(t, path, append(bytes.Join(l[:2], nil), l[2][:9]...))
		}, false, "ends with record 2"},
		{"emptied", func(path string, l [][]byte) { put(t, path, nil) }, false, "ends with record 0"},
		{"garbage at the end", func(path string, l [][]byte) { put(t, path, append(bytes.Join(l, nil), "x\n"...)) },
			false, "its last line"},
		{"much garbage at the end", func(path string, l [][]byte) {
			put(t, path, append(bytes.Join(l, nil), make([]byte, 3*chain.MaxLine)...))
		}, false, "are not a record"},
		{"the log gone", func(path string, l [][]byte) { os.Remove(path) }, false, "knows of 3 records"},
		{"the head gone", func(path string, l [][]byte) { os.Remove(chain.HeadFile(path)) }, false, "is gone"},
		{"the head empty", func(path string, l [][]byte) { put(t, chain.HeadFile(path), nil) }, false, "was changed"},
	} {
		path, _ := written(t, 3)
		c.spoil(path, bytes.SplitAfter(content(t, path), []byte("\n")))
		l, err := OpenLog(path)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, must contain %q", c.what, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		add(t, l, Record{Event: Ended})
		l.Close()
		found := false
		if _, err := VerifyLog(path,
			func(r Record) error { found = found || r.Event == repaired; return nil }); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if found != c.repair {
			t.Errorf("%s: the log names the repair: %v, must be %v", c.what, found, c.repair)
		}
	}
}

func TestLogHasOneWriter(t *testing.T) {
	path, _ := written(t, 1)
	l := open(t, path)
	if _, err := OpenLog(path); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("the error of a second writer must be %v (got %v)", disk.ErrLocked, err)
	}
	// Readers need not wait.
	add(t, l, Record{Event: Ended})
	if _, err := VerifyLog(path, nil); err != nil {
		t.Error(err)
	}
	l.Close()
	open(t, path).Close()
}

func TestLogBounds(t *testing.T) {
	path, _ := written(t, 0)
	l := open(t, path)
	defer l.Close()
	add(t, l, Record{Event: Lost, Text: strings.Repeat("ü\xff", 1<<20)})
	if err := l.Append(Record{Event: Lost, Name: strings.Repeat("x", chain.MaxLine)}); err == nil {
		t.Error("a record longer than a line is taken")
	}
	if err := l.Append(Record{}); err == nil {
		t.Error("a record without event is taken")
	}
	add(t, l, Record{Event: Ended})
	if _, err := VerifyLog(path, func(r Record) error {
		if len(r.Text) > maxText || !utf8.ValidString(r.Text) {
			t.Errorf("text of %d bytes: %q…", len(r.Text), r.Text[:20])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	put(t, path, bytes.Repeat([]byte("x"), 1<<20))
	if _, err := VerifyLog(path, nil); err == nil || !strings.Contains(err.Error(), "longer than 8192 bytes") {
		t.Errorf("%v, want the line's length", err)
	}
}

func FuzzLog(f *testing.F) {
	path := filepath.Join(f.TempDir(), "audit.jsonl")
	l, err := OpenLog(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range []Record{{Event: Began, Plan: plan, Roster: 2}, {Event: Connected, Peer: north.id},
		{Event: Ended, Text: "a\u2028b"}} {
		if err := l.Append(r); err != nil {
			f.Fatal(err)
		}
	}
	l.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, log []byte) {
		var again []byte
		last, err := chain.Walk(bytes.NewReader(log), placeOf, func(line []byte, _ chain.Head) error {
			r, err := parseRecord(line)
			if err != nil {
				return err
			}
			again = append(append(again, plain(r, false)...), '\n')
			return nil
		})
		if !bytes.HasPrefix(log, again) || err == nil && len(again) != len(log) {
			t.Errorf("%q reads as %q (%v)", log, again, err)
		}
		if n := bytes.Count(again, []byte("\n")); uint64(n) != last.Seq {
			t.Errorf("%d records, head %v", n, last)
		}
	})
}
