package table

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// packed writes the texts with gzip, repeated.
func packed(t *testing.T, name, head, part string, times int, tail string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	parts := []io.Reader{strings.NewReader(head)}
	for range times {
		parts = append(parts, strings.NewReader(part))
	}
	if _, err := io.Copy(z, io.MultiReader(append(parts, strings.NewReader(tail))...)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBomb: a cell that unpacks to a lot is refused in a fraction of its memory.
func TestBomb(t *testing.T) {
	mebi := strings.Repeat("a", 1<<20)
	for want, path := range map[string]string{
		"after line 2: a row must have at most 16 MiB": packed(t, "n.csv.gz", "id,x\n1,2\n2,", mebi, 64, "\n"),
		"a quote that does not close": packed(t, "q.csv.gz",
			"id,x\n1,2\n2,\"", mebi+"\n", 64, "\n"),
		"names of columns must have at most 1048576 bytes":   packed(t, "h.csv.gz", "id,", mebi, 2, "\n1,2\n"),
		"after line 1: a row must have at most 16 MiB; a":    packed(t, "e.txt.gz", "1 2\n1 ", mebi, 32, "\n"),
		"line 2, column x: a cell must have at most 1048576": packed(t, "c.csv.gz", "id,x\n1,", mebi, 2, "\n2,3\n"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tab, err := Open(path, Format{Edges: strings.Contains(path, ".txt")})
		if err == nil {
			err = tab.Each(func([]string, int) error { return nil })
			tab.Close()
		}
		runtime.ReadMemStats(&after)
		if strings.Contains(path, "e.txt") {
			want = "a row must have at most 16 MiB"
		}
		graphtest.Refused(t, err, want)
		if got := after.TotalAlloc - before.TotalAlloc; got > 160<<20 {
			t.Errorf("%s: %d MiB allocated, want at most 160", filepath.Base(path), got>>20)
		}
	}
	faults := &Faults{Skip: true}
	tab, err := Open(packed(t, "s.csv.gz", "id,x\n1,", mebi, 2, "\n2,3\n"), Format{Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	rows := 0
	if err := tab.Each(func([]string, int) error { rows++; return nil }); err != nil || rows != 1 ||
		len(faults.cells[0][1]) > maxCell>>4 {
		t.Errorf("%d rows (%v), want the one that is a row", rows, err)
	}
}

// A character set is found wherever the text shows it.
func TestCharsetAtAnyLength(t *testing.T) {
	line := "1,abcdefgh\n"
	long := strings.Repeat(line, 3<<20/len(line))
	cyrillic := utf16.Encode([]rune("имя,город\n" + strings.Repeat("иван,новосибирск\nпётр,санкт-петербург\n", 400)))
	var little, big bytes.Buffer
	for _, u := range cyrillic {
		little.Write([]byte{byte(u), byte(u >> 8)})
		big.Write([]byte{byte(u >> 8), byte(u)})
	}
	for name, c := range map[string]struct{ text, charset, last string }{
		"latin":   {"id,x\n" + long + "2,M\xfcller\n", "latin1", "Müller"},
		"windows": {"id,x\n" + long + "2,5 \x80\n", "windows-1252", "5 €"},
		"utf8":    {"id,x\n" + long + "2,Müller\n", "utf-8", "Müller"},
		"little":  {little.String(), "utf-16", "санкт-петербург"},
		"big":     {big.String(), "utf-16", "санкт-петербург"},
	} {
		path := filepath.Join(t.TempDir(), name+".csv")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		tab, err := Open(path, Format{})
		if err != nil {
			t.Fatal(name, err)
		}
		last := ""
		err = tab.Each(func(cells []string, _ int) error { last = strings.Clone(cells[1]); return nil })
		if err != nil || last != c.last || tab.Charset != c.charset {
			t.Errorf("%s: last cell %q in %s (%v), want %q in %s", name, last, tab.Charset, err, c.last, c.charset)
		}
		tab.Close()
	}
}

// A list may name its columns in its first line; a pipe cannot be read twice.
func TestListWithNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "links.txt")
	if err := os.WriteFile(path, []byte("protein1 protein2 combined_score\nP1 P2 150\nP2 P3 900\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	tab, err := Open(path, Format{Edges: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var got []string
	at, err := tab.Column("combined_score", "weights")
	if err != nil {
		t.Fatal(err)
	}
	err = tab.Each(func(cells []string, line int) error {
		got = append(got, cells[at])
		return nil
	})
	if err != nil || strings.Join(got, " ") != "150 900" {
		t.Errorf("weights %q (%v), want those of the rows", got, err)
	}
}

func TestDressed(t *testing.T) {
	for cell, want := range map[string]bool{
		"51,234": true, "1,234.5": true, "1.234,5": true, "3.4 %": true, "3,4%": true, "$ 2,345.60": true,
		"1 234": true, "-€5": true, "5 €": true, "1'234.5": true, "12": false, "3.5": false, "3,5": false, "1e5": false,
		"A 12":       false,
		"2024-01-31": false, "31.03.2024": false, "1,2,3": false, "%": false, "": false,
	} {
		if Dressed(cell) != want {
			t.Errorf("%q: dressed %v, want %v", cell, !want, want)
		}
	}
}
