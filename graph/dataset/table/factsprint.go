package table

import (
	"fmt"
	"io"
	"strings"
)

// mostShown is how many columns, classes or sites are printed.
const mostShown = 40

// Print writes the facts for people; each line is indented by two blanks.
func (f *Facts) Print(w io.Writer) {
	for _, t := range f.Tables {
		text := plural(t.Rows, "row")
		if t.Encoding != "" {
			text += ", " + t.Encoding
		}
		if t.Delimiter != "" {
			text += fmt.Sprintf(", delimiter %s",
				map[string]string{"\t": "tab", ",": "comma", ";": "semicolon"}[t.Delimiter])
			if strings.HasSuffix(text, " ") {
				text += t.Delimiter
			}
		}
		if t.Skipped > 0 {
			text += "; " + plural(t.Skipped, "row") + " skipped"
		}
		fmt.Fprintf(w, "  %s: %s\n", t.File, text)
		t.PrintReasons(w)
	}
	for _, t := range f.Types {
		text := plural(t.Features, "feature")
		if t.Features == 0 {
			text = "no features: one column that is 1"
		}
		fmt.Fprintf(w, "  type %s: %s, %s\n", t.Name, plural(t.Nodes, "node"), text)
	}
	for _, r := range f.Relations {
		fmt.Fprintf(w, "  relation %s: %d listed, %d kept\n", r.Name, r.Listed, r.Kept)
	}
	printColumns(w, "column", f.Columns)
	printColumns(w, "edge column", f.EdgeColumns)
	if len(f.Classes) > 0 {
		text := nodeCounts(f.Classes)
		if f.Unlabelled > 0 {
			text += fmt.Sprintf("; %d without a label", f.Unlabelled)
		}
		fmt.Fprintf(w, "  nodes of each class: %s\n", text)
	}
	if t := f.Target; t != nil {
		fmt.Fprintf(w, "  target %s: %d numbers from %.4g to %.4g, mean %.4g, deviation %.4g; %d without one\n",
			f.Label, t.Nodes, t.Least, t.Most, t.Mean, t.Deviation, f.Unlabelled)
	}
	if len(f.Sites) > 0 {
		fmt.Fprintf(w, "  nodes of each site: %s\n", nodeCounts(f.Sites))
	}
	if f.Edges.Listed > 0 || f.Edges.Cross > 0 || f.Isolated > 0 {
		f.printEdges(w)
	}
	for _, text := range f.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", text)
	}
}

// PrintReasons writes why rows were skipped, at most the first few reasons.
func (t TableFacts) PrintReasons(w io.Writer) {
	for _, why := range t.Reasons[:min(mostShown, len(t.Reasons))] {
		fmt.Fprintf(w, "    skipped: %s\n", why)
	}
}

// printColumns writes what columns became, at most the first few columns.
func printColumns(w io.Writer, what string, list []ColumnFacts) {
	width, shown := 0, list[:min(mostShown, len(list))]
	for _, c := range shown {
		width = max(width, len([]rune(c.Name)))
	}
	for _, c := range shown {
		fmt.Fprintf(w, "  %s %-*s  %s\n", what, min(width, 30), c.Name, c.text())
	}
	if n := len(list) - mostShown; n > 0 {
		fmt.Fprintf(w, "  and %d more columns\n", n)
	}
}

// printEdges writes how many edges were listed and kept, and why the others were not.
func (f *Facts) printEdges(w io.Writer) {
	e := f.Edges
	text := fmt.Sprintf("%d listed, %d kept", e.Listed, e.Kept)
	if e.Repeated > 0 {
		how := "largest weight"
		if e.Merge != "" {
			how = e.Merge
		}
		text += fmt.Sprintf(", %d repeated (%s)", e.Repeated, how)
	}
	if e.Mutual > 0 {
		text += fmt.Sprintf(", %d in both directions", e.Mutual)
	}
	if e.Loops > 0 {
		text += ", " + plural(e.Loops, "self-loop") + " dropped"
	}
	if e.Directed != "" {
		text += map[string]string{"in": ", read from source to target", "out": ", read from target to source",
			"both": ", each direction a relation"}[e.Directed]
	}
	if e.Cross > 0 {
		text += fmt.Sprintf(", %d to nodes of other sites", e.Cross)
	}
	text += "; " + plural(f.Isolated, "isolated node")
	if f.Homophily != nil {
		text += fmt.Sprintf("; homophily %.3f", *f.Homophily)
		if f.Chance != nil { // facts of an older version lack it
			text += fmt.Sprintf(" (%.3f by chance)", *f.Chance)
		}
	}
	fmt.Fprintf(w, "  edges: %s\n", text)
}

func (c ColumnFacts) text() string {
	text := c.Kind
	switch {
	case c.Kind == Dropped && c.Why != "":
		return text + ": " + c.Why
	case c.Kind == Dropped:
		return text
	case c.Kind == "categorical":
		text += " with " + plural(c.Values, "value")
	case c.Features != 1:
		text += ", " + plural(c.Features, "feature")
	}
	if c.Why != "" {
		text += ", " + c.Why
	}
	if c.Missing > 0 {
		text += fmt.Sprintf(", %d missing", c.Missing)
	}
	return text
}

func nodeCounts(list []NodeCount) string {
	var parts []string
	for _, c := range list[:min(len(list), mostShown)] {
		parts = append(parts, fmt.Sprintf("%s %d", c.Name, c.Nodes))
	}
	if n := len(list) - mostShown; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, ", ")
}
