package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Format is how a file writes its cells. The zero value detects it. Parquet files describe themselves: they use only
// Watch and Faults.
type Format struct {
	Delimiter    string   // between cells: one character or "tab"; "" = the one of , ; tab | in the first line
	Charset      string   // utf-8, latin1, windows-1252 or utf-16; "" or "auto": detected
	DecimalComma bool     // 1.234,5 is a number, and 1,234.5 is not
	Missing      []string // further texts, besides Missing's, that mean that there is no value, in any case
	NoHeader     bool     // the first line of a text is a row; columns are numbered from 1
	Edges        bool     // edges of a file with nodes and edges

	Watch  func(bytes int64) error // called after each mebibyte; an error ends the reading
	Faults *Faults                 // collects the rows at fault (nil = the first one ends the reading)
}

// Validate reports every field that is out of its bounds, or nil.
func (f Format) Validate() error {
	_, err := f.comma(',')
	if f.Charset != "" && f.Charset != "auto" && charsets[f.Charset] == nil {
		err = errors.Join(err,
			fmt.Errorf("encoding must be auto, utf-8, latin1, windows-1252 or utf-16 (got %q)", f.Charset))
	}
	return err
}

// comma returns the delimiter, or usual if the format has none.
func (f Format) comma(usual rune) (rune, error) {
	switch f.Delimiter {
	case "":
		return usual, nil
	case "tab", `\t`:
		return '\t', nil
	}
	r, n := utf8.DecodeRuneInString(f.Delimiter)
	if n != len(f.Delimiter) || r == utf8.RuneError || strings.ContainsRune("\"\r\n", r) {
		return 0, fmt.Errorf("delimiter must be one character or tab, and no quote (got %q)", f.Delimiter)
	}
	return r, nil
}

var charsets = map[string]encoding.Encoding{
	"utf-8": unicode.UTF8BOM, "latin1": charmap.ISO8859_1, "windows-1252": charmap.Windows1252,
	"utf-16":   unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"utf-16be": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
}

// evidence is what the bytes of a text reveal about its character set.
type evidence struct {
	head          []byte // the first three bytes
	size          int
	zeros         [2]int // at even and odd offsets
	whole, broken int    // characters of several bytes in UTF-8, and bytes that are not UTF-8
	control       bool   // bytes from 80 to 9F: control characters in Latin-1, but not in Windows-1252
}

// charset names the character set. Text that is not UTF-8 is Latin-1, or Windows-1252 if it has bytes that only this
// uses. If it has more UTF-8 characters than invalid bytes, it is damaged UTF-8, which the reader of its lines reports.
func (e *evidence) charset() string {
	switch {
	case bytes.HasPrefix(e.head, []byte("\xff\xfe")), bytes.HasPrefix(e.head, []byte("\xfe\xff")):
		return "utf-16"
	case bytes.HasPrefix(e.head, []byte("\xef\xbb\xbf")):
		return "utf-8"
	}
	// In UTF-16 digits, delimiters and ends of lines have a zero before or after them, in any language.
	switch few, zeros := e.size/32, e.zeros; {
	case e.size >= 4 && zeros[1] > few && zeros[0] < zeros[1]/8+1:
		return "utf-16"
	case e.size >= 4 && zeros[0] > few && zeros[1] < zeros[0]/8+1:
		return "utf-16be"
	case e.broken == 0 || e.whole > e.broken:
		return "utf-8"
	case e.control:
		return "windows-1252"
	}
	return "latin1"
}

// detect reads a text to its end and names its character set.
func detect(r io.Reader) (string, error) {
	var e evidence
	b := make([]byte, 1<<16)
	have := 0
	for {
		n, err := r.Read(b[have:])
		e.head = append(e.head, b[have:have+min(n, 3-len(e.head))]...)
		for k, c := range b[have : have+n] {
			if c == 0 {
				e.zeros[(e.size+k)%2]++
			}
		}
		e.size += n
		have += n
		have = copy(b, e.look(b[:have], err != nil))
		if err == io.EOF {
			return e.charset(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// look counts the characters in b and returns the incomplete character at its end.
func (e *evidence) look(b []byte, last bool) (rest []byte) {
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
			continue
		}
		if !last && !utf8.FullRune(b) {
			return b
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			e.broken++
			e.control = e.control || b[0] < 0xa0
		} else {
			e.whole++
		}
		b = b[n:]
	}
	return nil
}

// decode converts t's bytes to UTF-8.
func (t *Table) decode() error {
	name := t.format.Charset
	if name == "" || name == "auto" {
		again, err := Unpack(t.Path)
		if err != nil {
			return err
		}
		name, err = detect(&counted{r: again, watch: t.format.Watch})
		if err = errors.Join(err, again.Close()); err != nil {
			return err
		}
	}
	t.Charset = strings.TrimSuffix(name, "be")
	t.Reader = &counted{r: t.Reader, watch: t.format.Watch}
	if name != "utf-8" {
		t.Reader = charsets[name].NewDecoder().Reader(t.Reader)
	}
	return nil
}

// delimiter returns the usual delimiter that occurs in the first line.
func (t *Table) delimiter(b *bufio.Reader, usual rune) (rune, error) {
	comma, err := t.format.comma(usual)
	if err != nil || t.format.Delimiter != "" || usual != ',' {
		return comma, err
	}
	head, _ := b.Peek(b.Size()) // the end of a short file is no fault
	count, quoted := map[rune]int{}, false
	for _, r := range string(head) {
		if r == '"' {
			quoted = !quoted
		}
		if r == '\n' && !quoted {
			break
		}
		if !quoted {
			count[r]++
		}
	}
	for _, r := range ";\t|" {
		if count[','] == 0 && count[r] > count[comma] {
			comma = r
		}
	}
	return comma, nil
}

// counted calls watch after each mebibyte.
type counted struct {
	r     io.Reader
	watch func(bytes int64) error
	have  int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.have += int64(n)
	if c.watch != nil && c.have >= 1<<20 {
		if stop := c.watch(c.have); stop != nil {
			return n, stop
		}
		c.have = 0
	}
	return n, err
}
