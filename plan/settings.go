package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/yamltext"
	"github.com/heddle-gnn/heddle/nn"
)

// Setting describes one setting of a Plan, as its tags declare it.
type Setting struct {
	Name    string   // in a plan file
	Flag    string   // without dashes in front
	Group   string   // section of help and reference
	Help    string   // noun phrase
	Type    string   // text, integer, number, true or false, duration, list
	Default string   // with method class-means
	Only    string   // command that takes it: train, join or empty for both
	Methods []string // that read it, as the tag when names them; nil: all
	Choices []string // accepted values; nil: not a list of texts
	Local   bool     // sites may differ in it
	Rules   []string // of a policy or roster that judge it, as admission.Refusal names them

	Experimental bool // may change in any version; no help shows it

	bounds interval
	when   []condition
	field  int    // of Plan
	to     string // field of a trainer's configuration
}

// condition holds if the value of a setting is among values or, without values, if it is not zero.
type condition struct {
	setting string
	values  []string
}

// Settings returns all settings in the order of their declaration.
func Settings() []Setting { return slices.Clone(settings()) }

var settings = sync.OnceValue(func() (all []Setting) {
	plan := reflect.TypeFor[Plan]()
	group := ""
	for i := range plan.NumField() {
		f := plan.Field(i)
		name := f.Tag.Get("yaml")
		if name == "" {
			continue // Members
		}
		if g := f.Tag.Get("group"); g != "" {
			group = g
		}
		s := Setting{Name: name, Flag: f.Tag.Get("flag"), Group: group, Help: f.Tag.Get("help"), Type: typeName(f.Type),
			Only: f.Tag.Get("only"), Choices: listOf(f.Tag.Get("choices")), Local: f.Tag.Get("local") == "true", Rules: strings.Fields(f.Tag.Get("rule")), field: i, to: f.Tag.Get("to")}
		if s.Flag == "" {
			s.Flag = strings.ReplaceAll(name, "_", "-")
		}
		s.bounds = parseInterval(f.Tag.Get("bounds"))
		for clause := range strings.FieldsSeq(f.Tag.Get("when")) {
			setting, values, _ := strings.Cut(clause, "=")
			c := condition{setting: setting}
			if values != "" {
				c.values = strings.Split(values, ",")
			}
			if setting == "method" {
				s.Methods = c.values
			}
			s.when = append(s.when, c)
		}
		s.Default = f.Tag.Get("default")
		s.Experimental = f.Tag.Get("experimental") == "true"
		if name == "model" {
			s.Choices = nn.Convolutions(nil)
		}
		all = append(all, s)
	}
	return all
})

// Lookup returns the setting of that name.
func Lookup(name string) (s Setting, ok bool) {
	for _, s := range settings() {
		if s.Name == name {
			return s, true
		}
	}
	return s, false
}

// listOf splits a list at its commas.
func listOf(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// typeName is the Type of a setting: what has no other name is given as a text.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		return "list"
	}
	return cmp.Or(yamltext.TypeName(t), "text")
}

// Parse returns an error if text is not of the type of s. Whether the plan accepts the value
// depends on its other settings: Plan.Validate.
func (s Setting) Parse(text string) error {
	var p Plan
	return p.set(s, text)
}

// set parses text as the value of s.
func (p *Plan) set(s Setting, text string) error {
	v := p.value(s)
	wrong := func(what string) error { return fmt.Errorf("%s must be %s (got %q)", s.Name, what, text) }
	switch to := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		if err := to.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%s %w", s.Name, err)
		}
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return wrong("a duration, as 30s or 5m")
		}
		*to = d
	case *string:
		*to = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return wrong("true or false")
		}
		*to = b
	case *uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return wrong("an integer of at least 0")
		}
		*to = n
	case *float32:
		x, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return wrong("a number")
		}
		*to = float32(x)
	case *float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return wrong("a number")
		}
		*to = x
	case *[]string:
		*to = listOf(text)
	case *[]int:
		var all []int
		for _, one := range listOf(text) {
			n, err := strconv.Atoi(one)
			if err != nil {
				return wrong("integers with commas between")
			}
			all = append(all, n)
		}
		*to = all
	case *[]float64:
		var all []float64
		for _, one := range listOf(text) {
			x, err := strconv.ParseFloat(one, 64)
			if err != nil {
				return wrong("numbers with commas between")
			}
			all = append(all, x)
		}
		*to = all
	default: // int, int64
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return wrong("an integer")
		}
		v.SetInt(n)
	}
	return nil
}

func (p *Plan) value(s Setting) reflect.Value { return reflect.ValueOf(p).Elem().Field(s.field) }

// Get returns the value of s as text, as Read takes it.
func (p *Plan) Get(s Setting) string {
	v := p.value(s)
	switch x := v.Interface().(type) {
	case []string:
		return strings.Join(x, ",")
	case []int:
		var all []string
		for _, one := range x {
			all = append(all, strconv.Itoa(one))
		}
		return strings.Join(all, ",")
	case []float64:
		var all []string
		for _, one := range x {
			all = append(all, strconv.FormatFloat(one, 'g', -1, 64))
		}
		return strings.Join(all, ",")
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// facts returns what a condition on a setting is compared with.
func (p *Plan) facts(name string) []string {
	switch name {
	case "model":
		return traitsOf(p.Model)
	case "method":
		return p.kindsOfMethod()
	case "encoder":
		if p.Encoder.Classes {
			return []string{p.Encoder.Kind, "pca:K+classes"}
		}
		return []string{p.Encoder.Kind}
	case "task":
		return []string{p.Task.Kind}
	}
	s, _ := Lookup(name)
	return []string{p.Get(s)}
}

func (c condition) holds(p *Plan) bool {
	if c.values == nil {
		s, _ := Lookup(c.setting)
		return !p.value(s).IsZero()
	}
	return slices.ContainsFunc(p.facts(c.setting), func(fact string) bool { return slices.Contains(c.values, fact) })
}

// need says for what values of other settings c holds.
func (c condition) need() string {
	switch {
	case c.values == nil:
		return "with " + c.setting
	case c.setting == "model":
		return "to model " + either(nn.Convolutions(func(conv nn.Convolution) bool { return c.holds(&Plan{Model: conv.Name}) }))
	case c.setting == "method":
		return "to method " + MethodNames(c.values)
	case c.setting == "encoder" && c.values[0] == "classes":
		return "to method class-means or encoder " + either(c.values[1:])
	case c.setting == "solver" || c.setting == "encoder":
		return "to " + c.setting + " " + either(c.values)
	}
	return "with " + c.setting + " " + either(c.values)
}

// either lists alternatives: a, b or c.
func either(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// reads reports whether a run by p reads s.
func (p *Plan) reads(s Setting) bool {
	return s.Name == "task" && (p.Task.Kind == tasks[1] || p.Task.Kind == tasks[2]) ||
		!slices.ContainsFunc(s.when, func(c condition) bool { return !c.holds(p) })
}

// Shown returns the settings that a run by p reads on several machines, in the order of their declaration.
func (p Plan) Shown() (all []Setting) {
	for _, s := range settings() {
		if p.reads(s) && s.Only != "train" {
			all = append(all, s)
		}
	}
	return all
}

// Only returns an error for each setting of p that only the other command, of train and join,
// takes.
func (p Plan) Only(command string) error {
	var errs faults
	for _, s := range settings() {
		if given := p.Get(s); s.Only != "" && s.Only != command && given != s.Default {
			errs.add("%s applies only to peer %s (got %s)", s.Name, s.Only, given)
		}
	}
	if command == "train" && len(p.Members) > 0 {
		errs.add("members applies only to heddle join (got %d members)", len(p.Members))
	}
	return errors.Join(errs...)
}

// Validate returns all faults of p that can be found without data.
func (p Plan) Validate() error {
	if usual := Defaults(p); slices.ContainsFunc(settings(), func(s Setting) bool { return s.decides() && p.fault(s, usual.Get(s)) != nil }) {
		_, errs := p.sound() // what must fit such a setting cannot be judged
		return errors.Join(errs...)
	}
	kind := graph.Single
	if p.metric(task{}).OfNumbers() {
		kind = graph.Numbers
	}
	if p.Task.Links() {
		kind = graph.Links
	}
	any := task{Kind: kind, Features: 1000, Classes: 2, Relations: graph.MaxRelations, Links: []string{""}}
	for _, one := range p.ClassWeights { // those of the data, as far as is known
		if name, _, ok := cutWeight(one); ok && !slices.Contains(any.Names, name) {
			any.Names = append(any.Names, name)
		}
	}
	if p.Positive != "" && !slices.Contains(any.Names, p.Positive) {
		any.Names = append(any.Names, p.Positive)
	}
	any.Classes = max(any.Classes, len(any.Names))
	_, err := p.identify(any)
	return errors.Join(err, p.CheckMembers(), p.CheckRuns())
}

// CheckRuns returns what stands against several runs of p.
func (p Plan) CheckRuns() error {
	var errs faults
	if p.Runs > 1 && p.Epsilon > 0 {
		errs.add("runs must be 1 with epsilon (got %d): each run would spend as much", p.Runs)
	}
	return errors.Join(errs...)
}

// Repeats returns the plan of each run of p, by seed. Each of them still says how many there are.
func (p Plan) Repeats() (all []Plan) {
	for k := range max(1, p.Runs) {
		one := p
		one.Seed += uint64(k)
		all = append(all, one)
	}
	return all
}

// faults collects errors, to report all at once.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// sound returns p with the default in place of each setting that is at fault by itself, and these
// faults.
func (p Plan) sound() (Plan, faults) {
	usual := Defaults(p)
	var errs faults
	q := p
	for _, s := range settings() {
		if err := p.fault(s, usual.Get(s)); err != nil {
			errs = append(errs, err)
			if s.decides() { // usual has what was asked for
				must(q.set(s, s.Default))
			} else {
				q.value(s).Set(usual.value(s))
			}
		}
	}
	return q, errs
}

// must panics where a default in the tags is not of its setting's type: a fault of this package.
func must(err error) {
	if err != nil {
		panic("plan: the default of a setting: " + err.Error())
	}
}

// ofOneSite reports whether a site decides on s by itself, so that no plan with members has it. A plan may name relays.
func (s Setting) ofOneSite() bool { return s.Local && s.Name != "relays" }

// decides reports whether s is one of those that the defaults of others depend on.
func (s Setting) decides() bool {
	return slices.Contains([]string{"method", "task", "model", "decoder", "epsilon", "phones"}, s.Name)
}

// fault returns what is wrong with a setting by itself. Its default is always accepted.
func (p *Plan) fault(s Setting, usual string) error {
	given := p.Get(s)
	if s.decides() { // usual has what was asked for
		usual = s.Default
	}
	if given == usual {
		return nil
	}
	for _, c := range s.when {
		by, _ := Lookup(c.setting)
		value := p.Get(by)
		if !c.holds(p) && !p.reads(s) && (len(by.Choices) == 0 || value == by.Default ||
			slices.Contains(by.Choices, value)) {
			return fmt.Errorf("%s applies only %s (got %s %s)", strings.Replace(s.Name, "task", "task: links", 1),
				c.need(), by.Name, cmp.Or(value, "none"))
		}
	}
	choices := s.Choices
	if s.Name == "model" {
		choices = nn.Convolutions(nil) // with those that were registered since
	}
	if len(choices) > 0 && !slices.Contains(choices, given) {
		return fmt.Errorf("%s must be %s (got %q)", s.Name, either(choices), given)
	}
	if s.Name == "init" {
		if b, err := hex.DecodeString(given); err != nil || len(b) != sha256.Size {
			return fmt.Errorf("init must be the SHA-256 of a model file, %d hexadecimal digits (got %q)", 2*sha256.Size, given)
		}
	}
	v := p.value(s)
	within := func(x float64) error {
		if !s.bounds.Has(x) {
			return fmt.Errorf("%s must be %s (got %s)", s.Name, s.bounds, given)
		}
		return nil
	}
	switch x := v.Interface().(type) {
	case float32:
		return within(float64(x))
	case float64:
		return within(x)
	case []int:
		var errs []error
		for _, one := range x {
			errs = append(errs, within(float64(one)))
		}
		return errors.Join(errs...)
	case []float64:
		var errs []error
		for _, one := range x {
			errs = append(errs, within(one))
		}
		return errors.Join(errs...)
	}
	if v.CanInt() {
		return within(float64(v.Int()))
	}
	return nil
}
