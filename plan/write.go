package plan

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
)

// MarshalYAML returns the settings that a run by p reads, and its members; of experimental settings only those that do not
// have their default. Read yields the same plan from it; one with members has no settings of one site.
func (p Plan) MarshalYAML() ([]byte, error) {
	var all, experimental yaml.MapSlice
	usual := Defaults(p)
	for _, s := range settings() {
		v := p.value(s)
		item := yaml.MapItem{Key: s.Name, Value: v.Interface()}
		if none := v.Kind() == reflect.Slice && v.Len() == 0; !p.reads(s) || none {
			continue
		}
		if len(p.Members) > 0 && s.ofOneSite() {
			continue
		}
		switch {
		case s.Experimental && (s.decides() && p.Get(s) != s.Default || !s.decides() && p.Get(s) != usual.Get(s)):
			experimental = append(experimental, item)
		case !s.Experimental && (s.Only == "" || p.Get(s) != s.Default):
			all = append(all, item)
		}
	}
	if len(experimental) > 0 {
		all = append(all, yaml.MapItem{Key: "experimental", Value: experimental})
	}
	if len(p.Members) > 0 {
		all = append(all, yaml.MapItem{Key: "members", Value: p.Members})
	}
	return yaml.Marshal(all)
}

// Agreed returns a line for each setting in which all sites of a run must agree: those that it
// reads and in which sites may not differ.
func (p Plan) Agreed() string {
	text := ""
	for _, s := range settings() {
		if p.reads(s) && !s.Local && s.Only != "train" {
			value, err := json.Marshal(p.Get(s)) // a line whatever the value
			if err != nil {
				panic("plan: a text does not encode: " + err.Error())
			}
			text += fmt.Sprintf("%s: %s\n", s.Name, value)
		}
	}
	return text
}
