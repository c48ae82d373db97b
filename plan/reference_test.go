package plan

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/nn"
)

// TestSettingsPage keeps docs/reference/settings.md what the tags of Plan and the comments of its fields say.
// HEDDLE_WRITE=1 writes it.
func TestSettingsPage(t *testing.T) {
	generated(t, "../docs/reference/settings.md", settingsPage(comments(t)))
}

// generated keeps a file what its generator writes. HEDDLE_WRITE=1 writes it.
func generated(t *testing.T, path string, page []byte) {
	t.Helper()
	if os.Getenv("HEDDLE_WRITE") != "" {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(held, page) {
		t.Errorf("%s is not what the settings say: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan", path)
	}
}

// comments returns the comment of each field of Plan by its setting's name.
func comments(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "plan.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Plan" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Tag != nil {
				_, name, _ := strings.Cut(f.Tag.Value, `yaml:"`)
				name, _, _ = strings.Cut(name, `"`)
				all[name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
		return false
	})
	return all
}

// settingsPage is the reference of all settings.
func settingsPage(texts map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString(`# Settings

This page is generated from the tags of ` + "`plan.Plan`" + `: ` + "`HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan`" + ` writes it.

A settings file is YAML with a line for each setting, as ` + "`rounds: 50`" + `. The flag of a setting has dashes instead of underscores, as
` + "`--local-steps 4`" + `, and overrides the file. A setting that is not given has its default, which can depend on method and model. A setting
that the run does not read is refused, unless it has its default. Experimental settings stand in a section ` + "`experimental:`" + ` of the file.
They may change in any version and are not listed here; the comments of ` + "`plan.Plan`" + ` describe them.
`)
	group := ""
	for _, s := range settings() {
		if s.Experimental {
			continue
		}
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(group[:1])+group[1:])
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n", s.Name, texts[s.Name])
		value := s.Type
		if len(s.Choices) > 0 {
			value = "`" + strings.Join(s.Choices, "`, `") + "`"
		} else if bounds := s.allowed(); bounds != "" {
			value += ", " + bounds
		}
		fmt.Fprintf(&b, "- value: %s\n- default: %s\n", value, defaultsOf(s))
		if applies := s.applies(); applies != "" {
			fmt.Fprintf(&b, "- applies %s\n", applies)
		}
		if s.Only != "" {
			fmt.Fprintf(&b, "- only in `%s %s`\n", map[string]string{"train": "heddle", "join": "peer"}[s.Only], s.Only)
		}
		if s.Local {
			b.WriteString("- set at each site, not in a plan with members\n")
		}
	}
	b.WriteString("\n## Members\n\n### `members`\n\nThe sites of a run on several machines, in order: the first holds part 0. " +
		"`heddle plan` writes them.\n\n- value: list of `name`, `id` (as `heddle init` prints it) and `addresses` (multiaddresses at which it listens)\n")
	return b.Bytes()
}

// defaultsOf returns the default of s and what it is instead by method and model.
func defaultsOf(s Setting) string {
	code := func(text string) string {
		if text == "" {
			return "none"
		}
		return "`" + text + "`"
	}
	if s.decides() {
		return code(s.Default)
	}
	var values []string
	by := map[string][]string{} // what has a value
	add := func(p Plan, who string) {
		value := code(p.Get(s))
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
		by[value] = append(by[value], who)
	}
	for _, method := range []string{ClassMeans, LayerWise, FullBatch, MiniBatch} {
		p := Defaults(Plan{Method: method})
		if slices.ContainsFunc(s.when, func(c condition) bool { return c.setting == "method" && !c.holds(&p) }) {
			continue
		}
		add(p, method)
		for _, model := range nn.Convolutions(func(c nn.Convolution) bool { return method == FullBatch || method == LayerWise && c.LayerWise }) {
			if q := Defaults(Plan{Method: method, Model: model}); q.Get(s) != p.Get(s) {
				add(q, method+" of "+model)
			}
		}
	}
	for k, value := range values {
		who, with := by[value], " with "
		if k == 0 { // whatever has no other
			with = ", also with "
			who = slices.DeleteFunc(who, func(one string) bool { return !strings.Contains(one, " of ") })
		}
		if len(who) > 0 {
			values[k] += with + either(who)
		}
	}
	return strings.Join(values, ", ")
}

// allowed is what a value must be, as "at least 1"; empty without bounds.
func (s Setting) allowed() string {
	if s.bounds == parseInterval("") {
		return ""
	}
	return s.bounds.String()
}

// applies says where a setting is read, as "to method full-batch"; empty: everywhere.
func (s Setting) applies() string {
	var all []string
	for _, c := range s.when {
		all = append(all, c.need())
	}
	text := strings.Join(all, ", ")
	if s.Name == "task" {
		text = "to every method; links " + text
	}
	return text
}
