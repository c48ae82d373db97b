// Package page prints a measurement as Markdown while it is made, keeps its rows as data, and renders the pages of
// docs/measurements from them.
//
// bench/results/NAME.jsonl has what subcommand NAME, or a command named there, has measured: one JSON object a line,
// one line a row of a table.
//
//	table    name of the table in this file
//	command  what was run; if several programs were compared, the one that ran ours
//	commit   of this repository: the program, or what recorded the row if the program was rebased since
//	machine  processor, or what is known of it
//	date     when it ran, YYYY-MM-DD
//	row      the columns: a text, a number with its digits, {"mean": M, "spread": S} or {"seeds": [...]}
//
// The spread is a standard deviation, or the standard error if the page names it; the number of runs is a column.
// Subcommands of bench write their rows with -write, rows of other commands are written by hand.
//
// bench/results/PAGE.tmpl is the text of a page, in which {{table "NAME" "TABLE" "column" ...}} is a table. A column
// "a=x|y" shows only rows whose column a is x or y; "a: b" makes a column for each value of a, which has b.
package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// About names a subcommand and describes what it measures.
type About struct{ Name, Title, Text string }

// Page is one measurement: the command, the machine and the date, then texts and tables.
type Page struct {
	command string
	to      io.Writer
	begun   bool
	heads   []string // of the columns of the last table, and their formats
	formats []string
	rows    []Row
}

// New returns a page that is printed to w. args are those of the program.
func New(w io.Writer, args []string) *Page { return &Page{command: command(args), to: w} }

// Text adds a paragraph.
func (p *Page) Text(format string, args ...any) {
	p.begin()
	fmt.Fprintf(p.to, "\n"+format+"\n", args...)
}

// Table begins a table. A column is its heading and a format, as "edges cut %d" or "ms %.1f".
func (p *Page) Table(columns ...string) {
	p.begin()
	p.heads, p.formats = nil, nil
	rules := make([]string, len(columns))
	for i, c := range columns {
		at := strings.LastIndex(c, " %")
		p.heads, p.formats = append(p.heads, c[:at]), append(p.formats, c[at+1:])
		if rules[i] = "---:"; strings.HasSuffix(c, "%s") {
			rules[i] = "---"
		}
	}
	fmt.Fprintf(p.to, "\n| %s |\n|%s|\n", strings.Join(p.heads, " | "), strings.Join(rules, "|"))
}

// Row adds a row to the last table, a value for each of its columns.
func (p *Page) Row(values ...any) {
	cells, row := make([]string, len(values)), make(Row, len(values))
	for i, v := range values {
		cells[i] = fmt.Sprintf(p.formats[i], v)
		row[i] = Cell{p.heads[i], figure(cells[i])}
	}
	p.rows = append(p.rows, row)
	fmt.Fprintf(p.to, "| %s |\n", strings.Join(cells, " | "))
}

// number is a figure as tables print it.
var number = regexp.MustCompile(`^\+?(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)(?: ± ((?:0|[1-9][0-9]*)(?:\.[0-9]+)?))?$`)

// figure is a printed cell as data.
func figure(cell string) json.RawMessage {
	switch m := number.FindStringSubmatch(cell); {
	case m == nil:
		text, _ := json.Marshal(cell) // a string cannot fail
		return text
	case m[2] == "":
		return json.RawMessage(m[1])
	default:
		return fmt.Appendf(nil, `{"mean":%s,"spread":%s}`, m[1], m[2])
	}
}

// begin prints what every measurement begins with, once.
func (p *Page) begin() {
	if !p.begun {
		p.begun = true
		fmt.Fprintf(p.to, "| | |\n|---|---|\n| command | `%s` |\n| machine | %s |\n| date, version | %s, %s |\n",
			p.command, machine(), time.Now().Format(time.DateOnly), Version())
	}
}

// Write appends the rows to a file of lines, under the name of a table. Older rows of the same command there go.
func (p *Page) Write(file, table string) error {
	if len(p.rows) == 0 {
		return fmt.Errorf("%s: nothing was measured", p.command)
	}
	if strings.Contains(Version(), " ") {
		return fmt.Errorf("commit what was run before its figures are kept (got %s)", Version())
	}
	lines, err := Read(file)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, l := range lines {
		if l.Table != table || l.Command != p.command {
			l.append(&out)
		}
	}
	for _, r := range p.rows {
		Line{table, p.command, Version(), machine(), time.Now().Format(time.DateOnly), r}.append(&out)
	}
	return writeFile(file, out.Bytes())
}

// command is the command line that repeats a measurement. It does not include paths of this machine, nor whether a page
// was written.
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
