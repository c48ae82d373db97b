package plan

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSettingsPage keeps docs/reference/settings.md equal to the tags of Plan and the comments of its fields.
// HEDDLE_WRITE=1 writes it.
func TestSettingsPage(t *testing.T) {
	generated(t, "../docs/reference/settings.md", settingsPage(comments(t)))
}

// generated keeps a file equal to its generator's output. HEDDLE_WRITE=1 writes it.
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
		t.Errorf("%s must be what the settings are: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan", path)
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
					text, _, _ := strings.Cut(f.Doc.Text(), "\n\n") // more is for readers of the code
					all[spec.Name.Name+"."+name] = strings.Join(strings.Fields(text), " ")
				}
			}
		}
		return false
	})
	return all
}

// text returns the comment of s.
func (s Setting) text(texts map[string]string) string {
	return texts[s.declared()]
}

// settingsPage is the reference of all settings: a table for the methods that share them, and below it what comments
// have after their first sentence.
func settingsPage(texts map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("# Settings\n\n<!-- generated: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan -->\n\n" +
		"A settings file is YAML. Settings of a method are in its section, the common ones outside:\n\n" +
		"```yaml\nmethod: layer-wise\nseed: 3\nlayer_wise:\n  rounds: 50\n  model: sage\n```\n\n")
	wrap(&b, "", "The flag of a setting has dashes instead of underscores, as `--local-steps 4`, and overrides the "+
		"file. A run refuses settings that it does not read. Settings in a section `experimental:` may change in any "+
		"version; `plan.Plan` describes them. Defaults are bold or behind a semicolon. *train* marks settings of "+
		"`heddle train` only, *join* of `peer join` only, and *site* what each site chooses by itself, outside a "+
		"plan with members.")
	var groups []string
	members := map[string][]sharedSetting{}
	for _, method := range Methods() {
		for _, s := range settings(method) {
			if s.Experimental {
				continue
			}
			one := sharedSetting{of: s}
			for _, other := range Methods() {
				if same, has := Lookup(other, s.Name); has && same.declared() == s.declared() {
					one.methods, one.at = append(one.methods, other), append(one.at, same)
				}
			}
			title := "All methods"
			if s.section != "" {
				title = strings.Replace(either(one.methods), " or ", " and ", 1)
			}
			if one.methods[0] == method { // each setting once
				if members[title] == nil {
					groups = append(groups, title)
				}
				members[title] = append(members[title], one)
			}
		}
	}
	for _, title := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| setting | values; default | what |\n|---|---|---|\n",
			strings.ToUpper(title[:1])+title[1:])
		for _, one := range members[title] {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", one.of.Name, one.choice(), one.meaning())
		}
		if members[title][0].of.section == "" {
			b.WriteString("| `members` | list | sites with `name`, `id`, `addresses`, as `heddle plan` writes them |\n")
		}
		b.WriteString("\n")
		for _, one := range members[title] {
			if _, more, some := strings.Cut(one.of.text(texts), ". "); some {
				wrap(&b, "- ", "`"+one.of.Name+"`: "+more)
			}
		}
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// wrap writes text in lines of at most 119 columns, the first behind mark.
func wrap(b *bytes.Buffer, mark, text string) {
	line := strings.TrimSuffix(mark, " ")
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line+word)) > 118 {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", max(0, len(mark)-1))
		}
		if line == "" && mark == "" {
			line = word
		} else {
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
}

// sharedSetting is a setting as the methods have it that share its declaration.
type sharedSetting struct {
	of      Setting
	methods []string
	at      []Setting
}

// declared is the field that declares s.
func (s Setting) declared() string {
	of := reflect.TypeFor[Plan]()
	for _, k := range s.field[:len(s.field)-1] {
		of = of.Field(k).Type
	}
	return of.Name() + "." + s.Name
}

// choice is what a setting may be, and its default: bold in a list of values.
func (one sharedSetting) choice() string {
	values, usual := one.values(), one.defaults()
	switch {
	case usual == "none" && !slices.Contains(one.of.Choices, usual):
		return values
	case values == "true or false" && usual == "`false`":
		return "true or **false**"
	case len(one.of.Choices) > 0 && strings.Count(usual, "`") == 2 && strings.Contains(values, usual):
		return strings.Replace(values, usual, "**"+usual+"**", 1)
	}
	return values + "; " + usual
}

// values is what a setting may be.
func (one sharedSetting) values() string {
	code := func(all []string) string { return "`" + strings.Join(all, "`, `") + "`" }
	number := strings.TrimPrefix(one.of.Type+" ", "integer ") // bounds of integers need no word
	switch b := one.of.bounds; {
	case len(one.of.Choices) > 0:
		common := slices.DeleteFunc(slices.Clone(one.of.Choices), func(choice string) bool {
			return slices.ContainsFunc(one.at, func(s Setting) bool { return !slices.Contains(s.Choices, choice) })
		})
		text := code(common)
		for k, s := range one.at {
			more := slices.DeleteFunc(slices.Clone(s.Choices), func(choice string) bool {
				return slices.Contains(common, choice)
			})
			if len(more) > 0 {
				text += "; " + one.methods[k] + " also " + code(more)
			}
		}
		return text
	case b == parseInterval(""):
		return one.of.Type
	case b.text[1] == "":
		return number + map[bool]string{true: "> ", false: "≥ "}[b.openLow] + b.text[0]
	case b.openLow || b.openHigh:
		return fmt.Sprintf("%sin %c%s, %s%c", number, "[("[bit(b.openLow)], b.text[0], b.text[1],
			"])"[bit(b.openHigh)])
	default:
		return fmt.Sprintf("%s%s to %s", number, b.text[0], b.text[1])
	}
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// meaning is the help of a setting, with what it applies to and who takes it.
func (one sharedSetting) meaning() string {
	text := strings.ReplaceAll(one.of.Help, "|", `\|`)
	for k, c := range one.of.when {
		need := ""
		for i, s := range one.at { // the longest
			if k < len(s.when) && len(s.when[k].need(one.methods[i])) > len(need) {
				need = c.need(one.methods[i])
			}
		}
		need = strings.NewReplacer("to task links", "with `task: links`", "to ", "with ").Replace(need)
		text += "; " + need
	}
	if one.of.Only != "" {
		text += "; *" + one.of.Only + "*"
	}
	if one.of.Local {
		text += "; *site*"
	}
	return text
}

// defaults is the default of a setting, and what it is instead with some methods or models.
func (one sharedSetting) defaults() string {
	if one.of.decides() {
		return defaultText(one.of.Default)
	}
	if one.of.section == "" {
		usual := defaultText(one.plan(0, "").Get(one.of))
		var values, with []string
		for k, method := range one.methods {
			if value := defaultText(one.plan(k, "").Get(one.of)); value != usual {
				values, with = append(values, value), append(with, method)
			}
		}
		if len(slices.Compact(values)) == 0 {
			return usual
		}
		return usual + ", " + values[0] + " with " + either(with)
	}
	// methods that agree on all models of both are one
	type alike struct {
		methods, models []string
		at              map[string]string // by model (empty = of most)
	}
	var all []*alike
	for k, method := range one.methods {
		at := map[string]string{"": defaultText(one.plan(k, "").Get(one.at[k]))}
		for _, model := range models(method) {
			if method != ClassMeans {
				at[model] = defaultText(one.plan(k, model).Get(one.at[k]))
			}
		}
		i := slices.IndexFunc(all, func(other *alike) bool {
			for model, value := range at {
				if had, has := other.at[model]; has && had != value {
					return false
				}
			}
			return true
		})
		if i < 0 {
			all = append(all, &alike{at: map[string]string{}})
			i = len(all) - 1
		}
		all[i].methods = append(all[i].methods, method)
		for _, model := range models(method) {
			if value, has := at[model]; has && all[i].at[model] == "" {
				all[i].models, all[i].at[model] = append(all[i].models, model), value
			}
		}
		all[i].at[""] = at[""]
	}
	var texts []string
	for _, a := range all {
		text, by := a.at[""], map[string][]string{}
		var values []string
		for _, model := range a.models {
			if value := a.at[model]; value != a.at[""] {
				if by[value] == nil {
					values = append(values, value)
				}
				by[value] = append(by[value], model)
			}
		}
		for _, value := range values {
			text += ", " + value + " with " + either(by[value])
		}
		if len(all) > 1 {
			text = strings.Replace(either(a.methods), " or ", " and ", 1) + " " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// plan has the defaults of the k-th method and a model.
func (one sharedSetting) plan(k int, model string) *Plan {
	p := Defaults(one.methods[k], model)
	return &p
}

func defaultText(text string) string {
	if text == "" {
		return "none"
	}
	return "`" + text + "`"
}
