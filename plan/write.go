package plan

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
)

// MarshalYAML returns the settings that a run by p reads, and its members. Read yields the same
// plan from it.
func (p Plan) MarshalYAML() ([]byte, error) {
	var all yaml.MapSlice
	for _, s := range settings() {
		v := p.value(s)
		if none := v.Kind() == reflect.Slice && v.Len() == 0; p.reads(s) && !none && (s.Only == "" || p.Get(s) != s.Default) {
			all = append(all, yaml.MapItem{Key: s.Name, Value: v.Interface()})
		}
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
