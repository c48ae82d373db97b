package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// Line is one row of figures, and where they are from.
type Line struct {
	Table   string `json:"table"`
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
	Date    string `json:"date"`
	Row     Row    `json:"row"`
}

// Row has its cells in the order of the columns.
type Row []Cell

// Cell is a text, a number, a mean with a spread, or a figure of every seed.
type Cell struct {
	Column string
	Figure json.RawMessage
}

// Read returns the lines of a file, none if it is not there.
func Read(file string) (lines []Line, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	at := 0
	for one := range bytes.Lines(text) {
		at++
		d := json.NewDecoder(bytes.NewReader(one))
		d.DisallowUnknownFields()
		var l Line
		if err := d.Decode(&l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, at, err)
		}
		for name, value := range map[string]string{"table": l.Table, "command": l.Command, "commit": l.Commit,
			"machine": l.Machine, "date": l.Date} {
			if value == "" {
				return nil, fmt.Errorf("%s:%d: %s must not be empty", file, at, name)
			}
		}
		for _, c := range l.Row {
			if _, err := c.text(); err != nil {
				return nil, fmt.Errorf("%s:%d: %s: %w", file, at, c.Column, err)
			}
		}
		lines = append(lines, l)
	}
	return lines, err
}

func (l Line) append(to *bytes.Buffer) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		panic(err) // a line that was read or printed is sound
	}
}

func writeFile(file string, text []byte) error { return os.WriteFile(file, text, 0o666) }

// MarshalJSON keeps the order of the columns.
func (r Row) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, c := range r {
		name, err := json.Marshal(c.Column)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%c%s:%s", "{,"[min(i, 1)], name, c.Figure)
	}
	return append(out.Bytes(), '}'), nil
}

// UnmarshalJSON keeps the order of the columns.
func (r *Row) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("row must be an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		c := Cell{Column: name.(string)} // the decoder takes no other key
		if _, there := r.Text(c.Column); there {
			return fmt.Errorf("column %q must occur once", c.Column)
		}
		if err := d.Decode(&c.Figure); err != nil {
			return err
		}
		*r = append(*r, c)
	}
	return nil
}

// Text returns what a table shows of a column.
func (r Row) Text(column string) (text string, there bool) {
	for _, c := range r {
		if c.Column == column {
			text, _ = c.text() // Read has tried it
			return text, true
		}
	}
	return "", false
}

// Number returns the number of a column, and its spread.
func (r Row) Number(column string) (mean, spread float64, err error) {
	text, _ := r.Text(column)
	first, second, ok := strings.Cut(text, "±")
	if mean, err = strconv.ParseFloat(first, 64); err == nil && ok {
		spread, err = strconv.ParseFloat(second, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s must be a number (got %q)", column, text)
	}
	return mean, spread, nil
}

// text is what a table shows of a figure.
func (c Cell) text() (string, error) {
	var text string
	var several struct {
		Mean, Spread json.Number
		Seeds        []json.Number
	}
	switch c.Figure[0] {
	case '"':
		err := json.Unmarshal(c.Figure, &text)
		return text, err
	case '{':
		if err := json.Unmarshal(c.Figure, &several); err != nil {
			return "", err
		}
	default:
		if _, err := strconv.ParseFloat(string(c.Figure), 64); err != nil {
			return "", fmt.Errorf("figure must be a text, a number or an object (got %s)", c.Figure)
		}
		return string(c.Figure), nil
	}
	if several.Seeds == nil {
		return fmt.Sprintf("%s±%s", several.Mean, several.Spread), nil
	}
	digits, sum, squares, n := 0, 0., 0., float64(len(several.Seeds))
	for _, s := range several.Seeds {
		v, err := s.Float64()
		if err != nil {
			return "", err
		}
		_, fraction, _ := strings.Cut(string(s), ".")
		digits, sum, squares = max(digits, len(fraction)), sum+v, squares+v*v
	}
	spread := math.Sqrt(max(0, squares-sum*sum/n) / max(1, n-1))
	return fmt.Sprintf("%.*f±%.*f", digits, sum/n, digits, spread), nil
}
