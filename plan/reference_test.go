package plan

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
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

// comments returns the comment of each setting by struct and name, as "Gradient.rounds".
func comments(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "plan.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range of.Fields.List {
				if f.Tag != nil {
					_, name, _ := strings.Cut(f.Tag.Value, `yaml:"`)
					name, _, _ = strings.Cut(name, `"`)
					all[spec.Name.Name+"."+name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return all
}

// text returns the comment of s.
func (s Setting) text(texts map[string]string) string {
	of := reflect.TypeFor[Plan]()
	for _, k := range s.field[:len(s.field)-1] {
		of = of.Field(k).Type
	}
	return texts[of.Name()+"."+s.Name]
}

// settingsPage is the reference of all settings: a table of the common ones, and one for each method.
func settingsPage(texts map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString(`# Settings

This page is generated from the tags of ` + "`plan.Plan`" + `: ` +
		"`HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan`" + ` writes it.

A settings file is YAML. Settings of a method are in its section, the common ones outside:

` + "```yaml\nmethod: layer-wise\nseed: 3\nlayer_wise:\n  rounds: 50\n  model: sage\n```" + `

The flag of a setting is ` + "`--rounds 50`" +
		` with any method, with dashes instead of underscores, and overrides the file. A setting that
is not given has its default. A setting of another method is refused, and so is one that the run does not read, unless it has its
default. Experimental settings are in a section ` + "`experimental:`" +
		` of their section. They may change in any version and are not listed
here; the comments of ` + "`plan.Plan`" + ` describe them.
`)
	table := func(title, section string, method string) {
		fmt.Fprintf(&b, "\n## %s\n\n| setting | value | default | meaning |\n|---|---|---|---|\n", title)
		for _, s := range settings(method) {
			if s.section == section && !s.Experimental {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, valueOf(s), defaultsOf(s, method),
					meaning(s, method, texts))
			}
		}
	}
	table("All methods", "", ClassMeans)
	b.WriteString("| `members` | list | none | The sites of a run on several machines, in order, as `heddle plan` " +
		"writes them: the first holds part 0. Each has a `name`, an `id` (as `heddle init` prints it) and " +
		"`addresses` (multiaddresses at which it listens). |\n")
	for _, method := range Methods() {
		own := sectionOf(method)
		table("Method "+method+": `"+own+":`", own, method)
	}
	return b.Bytes()
}

// valueOf is what a setting may be.
func valueOf(s Setting) string {
	switch {
	case len(s.Choices) > 0:
		return "`" + strings.Join(s.Choices, "`, `") + "`"
	case s.bounds != parseInterval(""):
		return s.Type + ", " + s.bounds.String()
	}
	return s.Type
}

// meaning is the comment of s and where the setting applies.
func meaning(s Setting, method string, texts map[string]string) string {
	text := strings.ReplaceAll(s.text(texts), "|", `\|`)
	for _, c := range s.when {
		text += " Applies " + strings.Replace(c.need(method), "task links", "`task: links`", 1) + "."
	}
	if s.Only != "" {
		text += fmt.Sprintf(" Only in `%s %s`.", map[string]string{"train": "heddle", "join": "peer"}[s.Only], s.Only)
	}
	if s.Local {
		text += " Set at each site, not in a plan with members."
	}
	return text
}

// defaultsOf returns the default of s with a method, or with all, and what it is instead with some models.
func defaultsOf(s Setting, method string) string {
	code := func(text string) string {
		if text == "" {
			return "none"
		}
		return "`" + text + "`"
	}
	if s.decides() {
		return code(s.Default)
	}
	at := Defaults(method, "")
	usual := code(at.Get(s))
	var values []string
	by := map[string][]string{} // who has a value
	add := func(p Plan, who string) {
		if value := code(p.Get(s)); value != usual {
			if by[value] == nil {
				values = append(values, value)
			}
			by[value] = append(by[value], who)
		}
	}
	if s.section == "" {
		for _, other := range Methods() {
			add(Defaults(other, ""), other)
		}
	} else {
		for _, model := range models(method) {
			add(Defaults(method, model), model)
		}
	}
	for k, value := range values {
		values[k] = value + " with " + either(by[value])
	}
	return strings.Join(append([]string{usual}, values...), ", ")
}
