package page

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// MaxRows is how many rows of a table a reader takes in.
const MaxRows = 12

// Render returns the pages that the templates of a folder make of its lines, by the name of the page.
func Render(folder string) (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.tmpl"))
	if err != nil {
		return nil, err
	}
	table := func(name, table string, columns ...string) (string, error) {
		lines, err := Read(filepath.Join(folder, name+".jsonl"))
		if err != nil {
			return "", err
		}
		text, err := render(name, lines, table, columns)
		if err != nil {
			return "", fmt.Errorf("%s, %s: %w", name, table, err)
		}
		return text, nil
	}
	pages := map[string][]byte{}
	for _, file := range files {
		t, err := template.New(filepath.Base(file)).Funcs(template.FuncMap{"table": table}).ParseFiles(file)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, nil); err != nil {
			return nil, err
		}
		pages[strings.TrimSuffix(t.Name(), ".tmpl")+".md"] = out.Bytes()
	}
	return pages, nil
}

// WritePages writes the pages into a folder.
func WritePages(from, to string) error {
	pages, err := Render(from)
	for name, text := range pages {
		if err == nil {
			err = writeFile(filepath.Join(to, name), text)
		}
	}
	return err
}

// render returns a table of the lines of a file, and below it a link to what was run, on what, and when.
func render(name string, lines []Line, table string, columns []string) (string, error) {
	var plain, heads, machines, dates []string
	var rows [][]string
	for _, c := range columns {
		if !strings.ContainsAny(c, "=:") {
			plain, heads = append(plain, c), append(heads, c)
		}
	}
	// pivots are columns "a: b": each value of a has a column.
	pivots := slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return !strings.Contains(c, ": ") })
	for _, l := range lines {
		if l.Table != table || !l.chosen(columns) {
			continue
		}
		key := make([]string, len(plain))
		for i, c := range plain {
			key[i], _ = l.Row.Text(c)
		}
		at := slices.IndexFunc(rows, func(r []string) bool { return slices.Equal(r[:len(plain)], key) })
		if at < 0 || len(pivots) == 0 {
			at, rows = len(rows), append(rows, key)
		}
		for _, pivot := range pivots {
			by, value, _ := strings.Cut(pivot, ": ")
			head, _ := l.Row.Text(by)
			cell, there := l.Row.Text(value)
			if !there {
				continue
			}
			if len(pivots) > 1 {
				head += ", " + value
			}
			if !slices.Contains(heads, head) {
				heads = append(heads, head)
			}
			column := slices.Index(heads, head)
			for len(rows[at]) <= column {
				rows[at] = append(rows[at], "")
			}
			rows[at][column] = cell
		}
		machine, _, _ := strings.Cut(l.Machine, ",")
		if !slices.Contains(machines, machine) {
			machines = append(machines, machine)
		}
		dates = append(dates, l.Date)
	}
	if len(rows) == 0 || len(rows) > MaxRows {
		return "", fmt.Errorf("a table must have 1 to %d rows (got %d)", MaxRows, len(rows))
	}
	for i, head := range heads {
		if !slices.ContainsFunc(rows, func(r []string) bool { return i < len(r) && r[i] != "" }) {
			return "", fmt.Errorf("column %q is empty", head)
		}
	}
	rules := make([]string, len(heads))
	for i := range heads {
		rules[i] = "---:"
		for _, r := range rows {
			if i < len(r) && strings.Trim(r[i], "+-−±0123456789., –") != "" {
				rules[i] = "---"
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "| %s |\n|%s|\n", strings.Join(heads, " | "), strings.Join(rules, "|"))
	for _, r := range rows {
		r = append(r, make([]string, len(heads)-len(r))...)
		fmt.Fprintf(&out, "| %s |\n", strings.Join(r, " | "))
	}
	slices.Sort(dates)
	if when := dates[0]; when != dates[len(dates)-1] {
		dates[0] = when + " to " + dates[len(dates)-1]
	}
	fmt.Fprintf(&out, "\n[Commands](../../bench/results/%s.jsonl), %s, %s.",
		name, strings.Join(machines, " and "), dates[0])
	return out.String(), nil
}

// chosen reports whether the line has the values that "a=x|y" names.
func (l Line) chosen(columns []string) bool {
	for _, c := range columns {
		name, values, filter := strings.Cut(c, "=")
		if text, _ := l.Row.Text(name); filter && !slices.Contains(strings.Split(values, "|"), text) {
			return false
		}
	}
	return true
}
