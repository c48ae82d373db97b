package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// spelled returns tables of 40 nodes, the cells of which write returns for the value of a column and the node.
func spelled(t *testing.T, write func(column, value string, k int) string) ImportConfig {
	t.Helper()
	nodes, edges := "id,ward,site,class,x\n", "source,target,kind,w\n"
	for k := range 40 {
		nodes += strings.Join([]string{write("id", fmt.Sprint(k+1), k), write("ward", []string{"äa", "b", "c"}[k%3], k),
			write("site", []string{"north", "south"}[k%2], k), write("class", []string{"ill", "well"}[k/2%2], k),
			fmt.Sprint(k)}, ",") + "\n"
		edges += strings.Join([]string{write("source", fmt.Sprint(k+1), k), write("target", fmt.Sprint((k+1)%40+1), k),
			write("kind", []string{"knows", "likes"}[k%2], k), "1"}, ",") + "\n"
	}
	dir := tables(t, map[string]string{"n.csv": nodes, "e.csv": edges})
	return ImportConfig{Nodes: dir + "/n.csv", Edges: dir + "/e.csv", Label: "class", Site: "site",
		EdgeColumns: []string{"kind"}}
}

func asIs(_, value string, _ int) string { return value }

// TestSpellings: texts that differ by case, blanks, Unicode form, width or quotes are one value, so that the graph is
// as if all were written alike. Warnings list what is seen to differ, and a model's tables may be written otherwise,
// too.
func TestSpellings(t *testing.T) {
	want, err := Import(spelled(t, asIs))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		write func(column, value string, k int) string
		warn  []string
	}{
		"blanks and Unicode form": {func(_, value string, k int) string {
			other := strings.ReplaceAll(value, "ä", "a\u0308")
			return []string{value, " " + value, value + "\u00a0", "\u200b" + other + "\t"}[k%4]
		}, nil},
		"case": {func(column, value string, k int) string {
			if k%5 == 0 && column != "id" {
				return strings.ToUpper(value)
			}
			return value
		}, []string{`column class: one value is written in several ways: "ill" (16), "ILL" (4)`,
			`column ward: one value is written in several ways: "äa" (11), "ÄA" (3)`, `column site: one`,
			`column kind: one`}},
		"width and quotes": {func(column, value string, k int) string {
			switch {
			case k%5 == 0 && column == "class":
				return "'" + value + "'"
			case k%5 == 0 && column == "ward":
				return strings.ReplaceAll(value, "b", "ｂ")
			case k%5 == 0 && column == "target":
				return value + ".0"
			}
			return value
		}, []string{`"ill" (16), "'ill'" (4)`, `"b" (11), "ｂ" (2)`}},
	} {
		config := spelled(t, c.write)
		g, f, err := config.Read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(g.Labels.Names, want.Labels.Names) || !slices.Equal(g.Labels.Class, want.Labels.Class) ||
			!slices.Equal(g.IDs, want.IDs) || !slices.Equal(g.Sites, want.Sites) ||
			!slices.Equal(g.Adj.Col, want.Adj.Col) ||
			!slices.Equal(g.X.Dense.Data, want.X.Dense.Data) || !slices.Equal(g.EdgeX.Data, want.EdgeX.Data) {
			t.Errorf("%s: another graph than if all were written alike: classes %q, sites %q", name,
				g.Labels.Names, g.Sites)
		}
		for _, text := range c.warn {
			if !strings.Contains(strings.Join(f.Warnings, "\n"), text) {
				t.Errorf("%s: warnings are %q, must have %q", name, f.Warnings, text)
			}
		}
		if c.warn == nil && strings.Contains(strings.Join(f.Warnings, "\n"), "several ways") {
			t.Errorf("%s: warnings are %q", name, f.Warnings)
		}
		again, f, err := Encode(want.Encoding, []string{config.Nodes}, []string{config.Edges}, nil, config.Format)
		if err != nil || !slices.Equal(again.Labels.Class, want.Labels.Class) ||
			!slices.Equal(again.X.Dense.Data, want.X.Dense.Data) || f.Columns[0].Unknown > 0 {
			t.Errorf("%s: read as a model's tables: %v", name, err)
		}
	}
}

// TestSpelledNumbers: numbers that are classes are one value however they are written; an order of classes keeps apart
// what it lists apart.
func TestSpelledNumbers(t *testing.T) {
	write := func(column, value string, k int) string {
		if column == "class" {
			return [2][4]string{{"1", "1.0", "01", "1"}, {"2", "2,0", "2.000e+00", "2"}}[k/2%2][k%4]
		}
		return value
	}
	config := spelled(t, func(column, value string, k int) string { return `"` + write(column, value, k) + `"` })
	g, err := Import(config)
	if err != nil || !slices.Equal(g.Labels.Names, []string{"1", "2"}) {
		t.Errorf("classes are %q (%v), must be 1 and 2", g.Labels.Names, err)
	}
	config = spelled(t, func(column, value string, k int) string {
		if column == "class" {
			return []string{"10.0", "2.0"}[k/2%2]
		}
		return value
	})
	if g, err = Import(config); err != nil || !slices.Equal(g.Labels.Names, []string{"2.0", "10.0"}) {
		t.Errorf("classes are %q (%v), must be in the order of numbers", g.Labels.Names, err)
	}
	config = spelled(t, func(column, value string, k int) string {
		if column == "class" && k%4 == 0 {
			return strings.ToUpper(value)
		}
		return value
	})
	config.ClassOrder = []string{"well", "ill", "ILL"}
	if g, err = Import(config); err != nil || !slices.Equal(g.Labels.Count(), []float64{20, 10, 10}) {
		t.Errorf("nodes of each class are %v (%v)", g.Labels.Count(), err)
	}
}

// TestSpelledNames: nodes whose names differ only by spelling are refused, and an edge that writes one otherwise than
// its table; both errors give the cause.
func TestSpelledNames(t *testing.T) {
	for _, c := range []struct{ column, as, want string }{
		{"id", "01", `n.csv: line 41, column id: node must be written "1", with the same zeros, as on ` +
			`line 2, or have `},
		{"id", "1.0", `node must be written "1", with the same format of numbers, as on line 2`},
		{"id", `"'1'"`, `node must be written "1", with the same quotes, as on line 2`},
		{"id", " 1", `node "1" occurs on line 2 already`},
		{"id", "1.582218195625939e+18", "column id: node must not be a rounded number: write names as texts"},
		{"target", "007", `e.csv: line 41, column target: node must be a name in`},
		{"target", "007", `n.csv, written "7", with the same zeros (got "007")`},
		{"target", "1e+01", `written "10", with the same format of numbers (got "1e+01")`},
		{"target", "'7'", `written "7", with the same quotes`},
		{"target", "1.58e+18", `n.csv, not a rounded number: write names as texts (got "1.58e+18")`},
		{"target", "", `n.csv, not empty (got "")`}, {"target", "none", `n.csv (got "none")`},
	} {
		_, err := Import(spelled(t, func(column, value string, k int) string {
			if k == 39 && column == c.column {
				return c.as
			}
			return value
		}))
		graphtest.Refused(t, err, c.want)
	}
	names := func(column, value string, k int) string {
		if column == "id" || column == "source" || column == "target" && k != 7 {
			return "P" + value
		} else if column == "target" {
			return "p" + value
		}
		return value
	}
	_, err := Import(spelled(t, names))
	graphtest.Refused(t, err, `n.csv, written "P9", with the same case (got "p9")`)
	config := spelled(t, asIs)
	config.Label = "Class"
	_, err = Import(config)
	graphtest.Refused(t, err, `no column "Class" (the labels, option label-column): it must be written "class", with `+
		`the same case;`)
	config = spelled(t, func(column, value string, k int) string {
		if column == "kind" && k == 4 {
			return "Knows"
		}
		return value
	})
	config.EdgeColumns, config.Relation = nil, "kind"
	_, err = Import(config)
	graphtest.Refused(t, err, `column kind: a relation must be written in one way (got "Knows" and "knows")`)
}
