package plan

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// Read reads a plan from YAML text and from settings given by name, which override the text;
// either may be empty. All other settings have their defaults. Keys of the text that are not
// settings are read into rest, a pointer to a struct with YAML tags; if it is nil they are faults.
// All faults are reported at once; Validate checks the values.
func Read(text []byte, given map[string]string, rest any) (p *Plan, err error) {
	defer func() { // the library panics on some texts (a tag before an anchor without a value, in v1.19.2)
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("the text must be YAML (got %v)", r)
		}
	}()
	r := reader{given: given, rest: rest}
	if r.pairs, err = yamltext.Pairs(text); err != nil {
		return nil, err
	}
	// The method decides which settings there are, and some settings decide on the defaults of others.
	var ask Plan
	r.into(&ask, settings(""), func(s Setting) bool { return s.decides() && s.section == "" })
	if ask.Method == "" {
		if ask.Method = ClassMeans; ask.Task.Links() {
			ask.Method = LayerWise // class means have no links
		}
	}
	if err := knownMethod(ask.Method); err != nil {
		return nil, err
	}
	pairs := r.pairs
	r.pairs, r.errs = nil, nil
	r.settle(ask.Method, pairs, "")
	misplaced := r.errs
	r.into(&ask, settings(ask.Method), Setting.decides)
	plan := ask.Usual()
	r.errs = misplaced
	r.into(&plan, settings(plan.Method), func(Setting) bool { return true })
	for _, s := range settings(plan.Method) {
		if given := plan.Get(s); !printable(given) { // errors and pages have it, which are read at terminals
			return nil, fmt.Errorf("%s must be printable ASCII (got %+q)", s.Name, given)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := Lookup(plan.Method, name); !ok {
			r.errs = append(r.errs, unknown(plan.Method, name, given))
		}
	}
	r.others(&plan)
	if len(plan.Members) > 0 {
		for _, pair := range r.pairs {
			if s, _ := Lookup(plan.Method, pair.Key.String()); s.ofOneSite() {
				r.errs = append(r.errs, fmt.Errorf("%s is a setting of one site, not of the plan: use heddle join --%s",
					s.Name, s.Flag))
			}
		}
	}
	return &plan, errors.Join(r.errs...)
}

// reader builds a plan.
type reader struct {
	given map[string]string
	rest  any
	pairs []*ast.MappingValueNode // settings of the text, whatever their place
	more  []*ast.MappingValueNode // the other keys of its first level
	errs  []error
}

// settle takes the settings at a place of the text for a plan of method. Settings that belong elsewhere, or that the
// method lacks, are faults.
func (r *reader) settle(method string, pairs []*ast.MappingValueNode, place string) {
	own := sectionOf(method)
	for _, pair := range pairs {
		name := pair.Key.String()
		at := pair.Key.GetToken().Position
		fault := func(format string, args ...any) {
			r.errs = append(r.errs, fmt.Errorf("[%d:%d] "+format, append([]any{at.Line, at.Column}, args...)...))
		}
		inner := strings.TrimPrefix(place+"."+name, ".")
		s, ok := Lookup(method, name)
		_, other := Lookup("", name)
		switch {
		case inner == own || inner == "experimental" || inner == own+".experimental":
			switch section := pair.Value.(type) {
			case *ast.MappingNode:
				r.settle(method, section.Values, inner)
			case *ast.MappingValueNode:
				r.settle(method, []*ast.MappingValueNode{section}, inner)
			default:
				fault("%s must be settings, a line each (got %.40q)", name, pair.Value)
			}
		case ok && s.place() == place:
			r.pairs = append(r.pairs, pair)
		case ok && s.place() == "":
			fault("%s must stand outside %s: it is common to all methods", name, place)
		case ok:
			fault("%s must stand under %s", name, strings.ReplaceAll(s.place(), ".", ", "))
		case slices.ContainsFunc(Methods(), func(m string) bool { return inner == sectionOf(m) }):
			fault("%s must be left out with method %s, whose settings stand under %s", name, method, own)
		case place == "" && !other:
			r.more = append(r.more, pair)
		default:
			fault("%w", unknown(method, name, nil))
		}
	}
}

// into sets the settings of p that wanted accepts: first from the text, then from what was given.
func (r *reader) into(p *Plan, all []Setting, wanted func(Setting) bool) {
	for _, s := range all {
		if !wanted(s) {
			continue
		}
		for _, pair := range r.pairs {
			if pair.Key.String() == s.Name {
				if err := r.decode(p, s, pair.Value); err != nil {
					r.errs = append(r.errs, err)
				}
			}
		}
		if text, ok := r.given[s.Name]; ok {
			if err := p.set(s, text); err != nil {
				r.errs = append(r.errs, err)
			}
		}
	}
}

// decode sets s to the value of a node of the text.
func (r *reader) decode(p *Plan, s Setting, node ast.Node) error {
	to := p.value(s).Addr().Interface()
	if _, ok := to.(encoding.TextUnmarshaler); ok {
		var scalar any
		if err := yaml.NodeToValue(node, &scalar); err != nil {
			return yamltext.Readable(err)
		}
		if err := p.set(s, fmt.Sprint(scalar)); err != nil {
			at := node.GetToken().Position
			return fmt.Errorf("[%d:%d] %w", at.Line, at.Column, err)
		}
		return nil
	}
	if err := yaml.NodeToValue(node, to, yaml.Strict()); err != nil {
		return yamltext.Readable(err)
	}
	return nil
}

// others reads what is not a setting: the members, and what belongs in rest.
func (r *reader) others(p *Plan) {
	var pairs []*ast.MappingValueNode
	for _, pair := range r.more {
		if pair.Key.String() != "members" {
			pairs = append(pairs, pair)
		} else if err := yaml.NodeToValue(pair.Value, &p.Members, yaml.Strict()); err != nil {
			r.errs = append(r.errs, yamltext.Readable(err))
		}
	}
	if len(pairs) == 0 {
		return
	}
	rest := r.rest
	if rest == nil {
		rest = new(struct{})
	}
	if err := yaml.NodeToValue(ast.Mapping(pairs[0].Start, false, pairs...), rest, yaml.Strict()); err != nil {
		r.errs = append(r.errs, yamltext.Readable(err))
	}
}
