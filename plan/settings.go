package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/yamltext"
	"github.com/heddle-gnn/heddle/minibatch"
	"github.com/heddle-gnn/heddle/nn"
)

// Setting describes one setting of a method's plan, as the tags of Plan declare it.
type Setting struct {
	Name    string   // in a plan file
	Flag    string   // without dashes in front
	Help    string   // noun phrase
	Type    string   // text, integer, number, true or false, duration, list
	Default string   // as the tag has it; Defaults adapts it to method and model
	Only    string   // command that takes it: train, join or empty for both
	Choices []string // accepted values (nil = not a list of texts)
	Local   bool     // sites may differ in it
	Rules   []string // of a policy or roster that judge it, as admission.Refusal names them

	Experimental bool // may change in any version; no help shows it

	section string // of the plan file (empty = common to all methods)
	bounds  interval
	when    []condition
	field   []int  // of Plan
	to      string // field of a trainer's configuration
}

// condition is true if the value of a setting is among values or, without values, if it is not zero.
type condition struct {
	setting string
	values  []string
}

// Settings returns the settings of a plan of that method in the order of their declaration. Without a method it returns
// the settings of all methods, each name once, as the first method with it declares it.
func Settings(method string) []Setting { return slices.Clone(settings(method)) }

func settings(method string) []Setting { return allSettings()[method] }

var allSettings = sync.OnceValue(func() map[string][]Setting {
	lists := map[string][]Setting{}
	for _, method := range Methods() {
		d := declaration{method: method}
		d.read(reflect.TypeFor[Plan](), Setting{})
		lists[method] = d.all
		for k, s := range d.all { // what a method lacks sets no condition
			d.all[k].when = slices.DeleteFunc(s.when, func(c condition) bool { return named(d.all, c.setting) < 0 })
			if named(lists[""], s.Name) < 0 {
				lists[""] = append(lists[""], d.all[k])
			}
		}
	}
	return lists
})

func named(all []Setting, name string) int {
	return slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
}

// declaration reads the tags of Plan for one method.
type declaration struct {
	method string
	all    []Setting
}

// read adds the settings of a struct; in has the section, the conditions and the field of the struct itself.
func (d *declaration) read(of reflect.Type, in Setting) {
	for f := range of.Fields() {
		s := Setting{section: in.section, field: append(slices.Clone(in.field), f.Index...),
			when: slices.Clone(in.when)}
		for clause := range strings.FieldsSeq(f.Tag.Get("when")) {
			setting, values, _ := strings.Cut(clause, "=")
			s.when = append(s.when, condition{setting, listOf(values)})
		}
		s.Name, s.Help = f.Tag.Get("yaml"), f.Tag.Get("help")
		switch {
		case f.Anonymous:
			d.read(f.Type, s)
		case s.Name == sectionOf(d.method):
			s.section = s.Name
			d.read(f.Type, s)
		}
		if s.Help == "" {
			continue // Members, and structs of settings
		}
		s.Flag = cmp.Or(f.Tag.Get("flag"), strings.ReplaceAll(s.Name, "_", "-"))
		s.Type, s.Only, s.to, s.Default = typeName(f.Type), f.Tag.Get("only"), f.Tag.Get("to"), f.Tag.Get("default")
		s.Choices, s.Rules, s.bounds = listOf(f.Tag.Get("choices")), strings.Fields(f.Tag.Get("rule")),
			parseInterval(f.Tag.Get("bounds"))
		s.Local, s.Experimental = f.Tag.Get("local") == "true", f.Tag.Get("experimental") == "true"
		switch s.Name {
		case "method":
			s.Choices = Methods()
		case "model":
			s.Choices = models(d.method)
		}
		d.all = append(d.all, s)
	}
}

// models returns the convolutions that a method trains.
func models(method string) []string {
	return nn.Convolutions(func(c nn.Convolution) bool {
		return method == FullBatch || method == LayerWise && c.LayerWise || method == MiniBatch && minibatch.Samples(c)
	})
}

// Lookup returns the setting of that name in the plan of a method; without a method, in the plan of any.
func Lookup(method, name string) (s Setting, ok bool) {
	all := settings(method)
	if k := named(all, name); k >= 0 {
		return all[k], true
	}
	return s, false
}

// unknown is the error of a setting that a method lacks. It names the methods that have it and, if another given
// setting is missing in all of these, that one.
func unknown(method, name string, given map[string]string) error {
	var others []string
	for _, other := range Methods() {
		if _, ok := Lookup(other, name); ok {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return fmt.Errorf("%s: unknown setting", name)
	}
	belongs := strings.Replace(either(others), " or ", " and ", 1)
	for _, one := range slices.Sorted(maps.Keys(given)) {
		_, here := Lookup(method, one)
		if _, there := Lookup(others[0], one); here && !there {
			return fmt.Errorf("%s works with %s only; %s is a setting of %s: leave out one of the two", one, method,
				name, belongs)
		}
	}
	return fmt.Errorf("%s: unknown setting of %s; it belongs to %s (set method)", name, method, belongs)
}

// place is the path of s in a plan file: sections with points between.
func (s Setting) place() string {
	if !s.Experimental {
		return s.section
	}
	return strings.TrimPrefix(s.section+".experimental", ".")
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
	if to, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := to.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%s %w", s.Name, err)
		}
		return nil
	}
	if v.Kind() != reflect.Slice {
		return parseInto(v, s.Name, text)
	}
	v.SetZero()
	for _, one := range listOf(text) {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := parseInto(element, "each of "+s.Name, one); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	return nil
}

// parseInto parses text as the value v of a setting of that name.
func parseInto(v reflect.Value, name, text string) (err error) {
	must := "an integer"
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		var is bool
		is, err = strconv.ParseBool(text)
		v.SetBool(is)
		must = "true or false"
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(n)
		must = "an integer of at least 0"
	case reflect.Float32, reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(x)
		must = "a number"
	default:
		var n int64
		if n, err = strconv.ParseInt(text, 10, 64); v.Type() == reflect.TypeFor[time.Duration]() {
			var d time.Duration
			d, err = time.ParseDuration(text)
			n, must = int64(d), "a duration, as 30s or 5m"
		}
		v.SetInt(n)
	}
	if err != nil {
		return fmt.Errorf("%s must be %s (got %q)", name, must, text)
	}
	return nil
}

func (p *Plan) value(s Setting) reflect.Value { return reflect.ValueOf(p).Elem().FieldByIndex(s.field) }

// Get returns the value of s as text, as Read takes it.
func (p *Plan) Get(s Setting) string {
	var all []string
	for v := range elements(p.value(s)) {
		if v.CanFloat() {
			all = append(all, strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits()))
		} else {
			all = append(all, fmt.Sprint(v.Interface()))
		}
	}
	return strings.Join(all, ",")
}

// elements are a list's elements, or the value itself.
func elements(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		if v.Kind() != reflect.Slice {
			yield(v)
			return
		}
		for k := range v.Len() {
			if !yield(v.Index(k)) {
				return
			}
		}
	}
}

func (c condition) holds(p *Plan) bool {
	s, _ := Lookup(p.Method, c.setting)
	switch conv, _ := nn.ConvolutionNamed(p.Gradient().Model); {
	case c.values == nil:
		return !p.value(s).IsZero()
	case c.setting == "model":
		return traits[c.values[0]](conv)
	case c.setting == "encoder" && slices.Contains(c.values, p.Encoder().form()):
		return true
	}
	value, _, _ := strings.Cut(p.Get(s), ":")
	return slices.Contains(c.values, value)
}

// traits are the properties of a model's convolution that the tag when names.
var traits = map[string]func(nn.Convolution) bool{
	"hops":      func(c nn.Convolution) bool { return c.Hops },
	"restart":   nn.Convolution.Restarts,
	"relations": func(c nn.Convolution) bool { return c.Typed },
	"attention": func(c nn.Convolution) bool { return c.Heads },
}

// need returns the values of other settings of a method for which c is true.
func (c condition) need(method string) string {
	switch {
	case c.values == nil:
		return "with " + c.setting
	case c.setting == "model":
		return "to model " + either(slices.DeleteFunc(models(method), func(model string) bool {
			conv, _ := nn.ConvolutionNamed(model)
			return !traits[c.values[0]](conv)
		}))
	}
	return "to " + c.setting + " " + either(c.values)
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
	return !slices.ContainsFunc(s.when, func(c condition) bool { return !c.holds(p) })
}

// Shown returns the settings that a run by p reads on several machines, in the order of their declaration.
func (p Plan) Shown() (all []Setting) {
	for _, s := range settings(p.Method) {
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
	for _, s := range settings(p.Method) {
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
	if err := knownMethod(p.Method); err != nil {
		return err
	}
	if usual := p.Usual(); slices.ContainsFunc(settings(p.Method),
		func(s Setting) bool { return s.decides() && p.fault(s, usual.Get(s)) != nil }) {
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
	for _, one := range p.ClassWeights { // the classes of the data, as far as they are known
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

// CheckRuns returns why p cannot have several runs, or nil.
func (p Plan) CheckRuns() error {
	var errs faults
	if p.Runs > 1 && p.ClassMeans.Epsilon > 0 {
		errs.add("runs must be 1 with epsilon (got %d): each run would spend as much", p.Runs)
	}
	return errors.Join(errs...)
}

// Repeats returns the plan of each run of p, by seed. Each of them keeps the number of runs.
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

// sound returns p with the default instead of each setting that is at fault by itself, and these faults.
func (p Plan) sound() (Plan, faults) {
	usual := p.Usual()
	var errs faults
	q := p
	for _, other := range Methods() {
		if other != p.Method && slices.ContainsFunc(settings(other),
			func(s Setting) bool { return s.section != "" && !p.value(s).IsZero() }) {
			errs.add("%s must be empty with method %s", sectionOf(other), p.Method)
		}
	}
	for _, s := range settings(p.Method) {
		if err := p.fault(s, usual.Get(s)); err != nil {
			errs = append(errs, err)
			if s.decides() { // usual has what was asked for
				must(q.set(s, s.Default))
			} else {
				q.value(s).Set(usual.value(s))
			}
		}
	}
	g, fit := q.Gradient(), usual.Gradient()
	if conv, _ := nn.ConvolutionNamed(g.Model); conv.Heads && g.Hidden%g.Heads != 0 {
		errs.add("hidden must be a multiple of heads, %d (got %d)", g.Heads, g.Hidden)
		g.Hidden, g.Heads = fit.Hidden, fit.Heads
	}
	return q, errs
}

// must panics if a default in the tags is not of its setting's type: a fault of this package.
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
		by, _ := Lookup(p.Method, c.setting)
		value := p.Get(by)
		if !c.holds(p) && (len(by.Choices) == 0 || value == by.Default ||
			slices.Contains(by.Choices, value)) {
			return fmt.Errorf("%s applies only %s (got %s %s)", s.Name, c.need(p.Method), by.Name,
				cmp.Or(value, "none"))
		}
	}
	choices, chosen := s.Choices, given
	switch s.Name {
	case "model":
		choices = models(p.Method) // with those that were registered since
	case "encoder":
		chosen = p.Encoder().form()
	case "task":
		if p.Task.Links() && p.Method == ClassMeans {
			return fmt.Errorf("task must be auto, classification or regression with class-means (got %s): links need "+
				"a method of trained layers", given)
		}
	}
	if len(choices) > 0 && !slices.Contains(choices, chosen) {
		var others []string
		for _, other := range Methods() {
			if same, _ := Lookup(other, s.Name); slices.Contains(same.Choices, chosen) {
				others = append(others, other)
			}
		}
		if len(others) > 0 {
			return fmt.Errorf("%s must be %s with method %s (got %s, which works with %s)", s.Name, either(choices),
				p.Method, given, either(others))
		}
		return fmt.Errorf("%s must be %s (got %q)", s.Name, either(choices), given)
	}
	if s.Name == "init" {
		if b, err := hex.DecodeString(given); err != nil || len(b) != sha256.Size {
			return fmt.Errorf("init must be the SHA-256 of a model file, %d hexadecimal digits (got %q)", 2*sha256.Size,
				given)
		}
	}
	var errs []error
	for v := range elements(p.value(s)) {
		x := 0.0
		switch {
		case v.CanFloat():
			x = v.Float()
		case v.CanInt():
			x = float64(v.Int())
		default:
			continue
		}
		if !s.bounds.Has(x) {
			errs = append(errs, fmt.Errorf("%s must be %s (got %s)", s.Name, s.bounds, given))
		}
	}
	return errors.Join(errs...)
}
