package plan

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	pairs, err := yamltext.Pairs(text)
	if err == nil {
		r.pairs, err = flatten(pairs)
	}
	if err != nil {
		return nil, err
	}
	// The defaults of the other settings depend on these.
	var ask Plan
	r.into(&ask, Setting.decides)
	if ask.Method == "" && ask.Task.Links() {
		ask.Method = LayerWise // class means have no links
	}
	plan := Defaults(ask)
	r.errs = nil
	r.into(&plan, func(Setting) bool { return true })
	for _, s := range settings() {
		if given := plan.Get(s); !printable(given) { // errors and pages have it, which are read at terminals
			return nil, fmt.Errorf("%s must be printable ASCII (got %+q)", s.Name, given)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := Lookup(name); !ok {
			r.errs = append(r.errs, fmt.Errorf("every given name must be a setting (got %q)", name))
		}
	}
	r.others(&plan)
	if len(plan.Members) > 0 {
		for _, pair := range r.pairs {
			if s, ok := Lookup(pair.Key.String()); ok && s.ofOneSite() {
				r.errs = append(r.errs, fmt.Errorf("%s is a setting of one site, not of the plan: use heddle join --%s", s.Name, s.Flag))
			}
		}
	}
	return &plan, errors.Join(r.errs...)
}

// flatten puts the settings of the section experimental among the others. A setting that stands in the wrong place is a fault.
func flatten(pairs []*ast.MappingValueNode) (all []*ast.MappingValueNode, err error) {
	var errs []error
	add := func(pair *ast.MappingValueNode, experimental bool) {
		at := pair.Key.GetToken().Position
		switch s, ok := Lookup(pair.Key.String()); {
		case experimental && !(ok && s.Experimental):
			errs = append(errs, fmt.Errorf("[%d:%d] experimental must hold experimental settings only (got %s)", at.Line, at.Column, pair.Key))
		case ok && s.Experimental && !experimental:
			errs = append(errs, fmt.Errorf("[%d:%d] %s must stand under experimental", at.Line, at.Column, pair.Key))
		default:
			all = append(all, pair)
		}
	}
	for _, pair := range pairs {
		if pair.Key.String() != "experimental" {
			add(pair, false)
			continue
		}
		switch section := pair.Value.(type) {
		case *ast.MappingNode:
			for _, one := range section.Values {
				add(one, true)
			}
		case *ast.MappingValueNode:
			add(section, true)
		default:
			at := pair.Key.GetToken().Position
			errs = append(errs, fmt.Errorf("[%d:%d] experimental must be settings, a line each (got %.40q)", at.Line, at.Column, pair.Value))
		}
	}
	return all, errors.Join(errs...)
}

// reader builds a plan.
type reader struct {
	given map[string]string
	rest  any
	pairs []*ast.MappingValueNode // of the text
	errs  []error
}

// into sets those settings of p that wanted accepts: first from the text, then from what was given.
func (r *reader) into(p *Plan, wanted func(Setting) bool) {
	for _, pair := range r.pairs {
		if s, ok := Lookup(pair.Key.String()); ok && wanted(s) {
			if err := r.decode(p, s, pair.Value); err != nil {
				r.errs = append(r.errs, err)
			}
		}
	}
	for _, s := range settings() {
		if text, ok := r.given[s.Name]; ok && wanted(s) {
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
	for _, pair := range r.pairs {
		name := pair.Key.String()
		_, setting := Lookup(name)
		switch {
		case name == "members":
			if err := yaml.NodeToValue(pair.Value, &p.Members, yaml.Strict()); err != nil {
				r.errs = append(r.errs, yamltext.Readable(err))
			}
		case !setting:
			pairs = append(pairs, pair)
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
