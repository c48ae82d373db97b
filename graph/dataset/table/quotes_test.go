package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestUnclosedQuote: a quote that does not close in its row takes no rows along, whether rows at fault are
// skipped or not.
func TestUnclosedQuote(t *testing.T) {
	lines := func(change map[int]string) string {
		list := []string{"id,age,ward,note"}
		for k := 2; k <= 90; k++ {
			text, ok := change[k]
			if !ok {
				text = fmt.Sprintf("p%d,%d,w,n", k, k)
			}
			list = append(list, text)
		}
		return strings.Join(list, "\n") + "\n"
	}
	read := func(path string, f Format) (n int, err error) {
		table, err := Open(path, f)
		if err != nil {
			return 0, err
		}
		defer table.Close()
		err = table.Each(func([]string, int) error { n++; return nil })
		return n, errors.Join(err, f.Faults.Err())
	}
	for name, c := range map[string]struct {
		change map[int]string
		line   int
	}{
		"to the end":            {map[int]string{13: `p13,"13,w,n`}, 13},
		"at the beginning":      {map[int]string{13: `"p13,13,w,n`}, 13},
		"to a quoted row":       {map[int]string{13: `p13,13,w,"n`, 20: `"p20","20","w","n"`}, 13},
		"to a stray quote":      {map[int]string{13: `p13,"13,w,n`, 20: `p20,20",w,n`}, 13},
		"to one in another":     {map[int]string{13: `p13,"13,w,n`, 20: `p20,20,w",n`}, 13},
		"at the end to an end":  {map[int]string{13: `p13,13,w,"n`, 20: `p20,20,w,n"`}, 13},
		"behind a text of two":  {map[int]string{13: "\"p\n13\",13,w,\"n"}, 14},
		"to the very next row":  {map[int]string{13: `p13,"13,w,n`, 14: `"p14",14,w,n`}, 13},
		"and a bare one behind": {map[int]string{13: `p13,"13,w,n`, 20: `p20,20",w,n"n`}, 13},
	} {
		for _, skip := range []bool{false, true} {
			text := lines(c.change)
			want := fmt.Sprintf("quote that opens on line %d must", c.line)
			n, err := read(written(t, "a.csv", []byte(text)), Format{Faults: &Faults{Skip: skip}})
			if err == nil {
				t.Errorf("%s, skip %v: %d rows and no error", name, skip, n)
				continue
			}
			graphtest.Refused(t, err, "a.csv", want)
			dir := folderOf(t, map[string]string{"a.csv": lines(nil), "b.csv": text})
			_, err = read(dir, Format{Faults: &Faults{Skip: skip}})
			graphtest.Refused(t, err, dir, "b.csv", want)
		}
	}
	for name, change := range map[string]string{
		"prose":         "p13,13,w,\"Dear all,\nfever, cough, rash, and more\nyours, K.\"",
		"lines":         "p13,13,w,\"one\ntwo\r\nthree\"",
		"last cell":     "p13,\"13\n\",w,\"n\"",
		"doubled":       `p13,13,w,"say ""n"", or"`,
		"blank at ends": "p13,13,w,\"\n\n\"",
	} {
		if n, err := read(written(t, "a.csv", []byte(lines(map[int]string{13: change}))), Format{}); n != 89 ||
			err != nil {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
	// Without skip it is one of all faults.
	faults := &Faults{}
	_, err := read(written(t, "a.csv", []byte(lines(map[int]string{6: "x", 13: `p13,"13,w,n`}))),
		Format{Faults: faults})
	graphtest.Refused(t, err, "line 6: there must be 4 cells",
		"quote that opens on line 13 must")
	// One row alone is at fault.
	for name, change := range map[string]string{"too few": "p13,\"a\nb\",w",
		"unclosed in the row": `p13,"13"x,w,n`, "bare": `p13,1"3,w,n`} {
		faults := &Faults{Skip: true}
		if n, err := read(written(t, "a.csv", []byte(lines(map[int]string{13: change}))),
			Format{Faults: faults}); n != 88 || faults.Count("") != 1 || err != nil {
			t.Errorf("%s: %d rows, %d faults, %v", name, n, faults.Count(""), err)
		}
	}
}
