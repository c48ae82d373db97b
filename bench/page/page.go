// Package page prints a measurement as Markdown while it is made, and keeps it in the pages of
// docs/measurements.
package page

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// Page is one measurement: the command, the machine and the date, then texts and tables.
type Page struct {
	command string
	to      io.Writer
	begun   bool
	body    bytes.Buffer
	formats []string // of the columns of the last table
}

// New returns a page that is printed to w. args are those of the program.
func New(w io.Writer, args []string) *Page {
	p := &Page{command: command(args)}
	p.to = io.MultiWriter(w, &p.body)
	return p
}

// Text adds a paragraph.
func (p *Page) Text(format string, args ...any) {
	p.begin()
	fmt.Fprintf(p.to, "\n"+format+"\n", args...)
}

// Table begins a table. A column is its heading and a format, as "edges cut %d" or "ms %.1f".
func (p *Page) Table(columns ...string) {
	p.begin()
	p.formats = nil
	var heads, rules []string
	for _, c := range columns {
		at := strings.LastIndex(c, " %")
		heads, p.formats = append(heads, c[:at]), append(p.formats, c[at+1:])
		if rule := "---:"; strings.HasSuffix(c, "%s") {
			rules = append(rules, "---")
		} else {
			rules = append(rules, rule)
		}
	}
	fmt.Fprintf(p.to, "\n| %s |\n|%s|\n", strings.Join(heads, " | "), strings.Join(rules, "|"))
}

// Row adds a row to the last table, a value for each of its columns.
func (p *Page) Row(values ...any) {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = fmt.Sprintf(p.formats[i], v)
	}
	fmt.Fprintf(p.to, "| %s |\n", strings.Join(cells, " | "))
}

// begin prints what every measurement begins with, once.
func (p *Page) begin() {
	if !p.begun {
		p.begun = true
		fmt.Fprintf(p.to, "| | |\n|---|---|\n| command | `%s` |\n| machine | %s |\n| date, version | %s, %s |\n",
			p.command, machine(), time.Now().Format(time.DateOnly), Version())
	}
}

// command is the command line that repeats a measurement. It does not tell where things are on this
// machine, nor whether a page was written.
func command(args []string) string {
	words := []string{"go", "run", "./bench"}
	heading := false
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		switch flag := strings.TrimLeft(name, "-"); {
		case heading:
			heading = false
			continue
		case name != flag && flag == "write":
			continue
		case name != flag && flag == "heading":
			heading = !ok
			continue
		case ok && filepath.IsAbs(value):
			a = name + "=" + filepath.Base(value)
		case filepath.IsAbs(a):
			program, rest, _ := strings.Cut(a, " ")
			a = strings.TrimSpace(filepath.Base(program) + " " + rest)
		}
		if a == "" || strings.ContainsAny(a, " ;<>|&*$\"") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
