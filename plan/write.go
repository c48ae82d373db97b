package plan

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
)

// MarshalYAML returns the settings that a run by p reads, and its members; of experimental settings only those that do
// not have their default. Read yields the same plan from it; one with members has no settings of one site.
func (p Plan) MarshalYAML() ([]byte, error) {
	items := map[string]yaml.MapSlice{} // by place
	usual := p.Usual()
	for _, s := range settings(p.Method) {
		v := p.value(s)
		if none := v.Kind() == reflect.Slice && v.Len() == 0; !p.reads(s) || none ||
			len(p.Members) > 0 && s.ofOneSite() {
			continue
		}
		base := usual.Get(s)
		if s.decides() || !s.Experimental {
			base = s.Default
		}
		if s.Only == "" && !s.Experimental || p.Get(s) != base {
			items[s.place()] = append(items[s.place()], yaml.MapItem{Key: s.Name, Value: v.Interface()})
		}
	}
	own := sectionOf(p.Method)
	for _, of := range [][3]string{{own, "experimental", own + ".experimental"}, {"", own, own},
		{"", "experimental", "experimental"}} {
		if in, name, place := of[0], of[1], of[2]; len(items[place]) > 0 {
			items[in] = append(items[in], yaml.MapItem{Key: name, Value: items[place]})
		}
	}
	if len(p.Members) > 0 {
		items[""] = append(items[""], yaml.MapItem{Key: "members", Value: p.Members})
	}
	return yaml.Marshal(items[""])
}

// Agreed returns a line for each setting in which all sites of a run must agree: those that it
// reads and in which sites may not differ.
func (p Plan) Agreed() string {
	text := ""
	for _, s := range settings(p.Method) {
		if p.reads(s) && !s.Local && s.Only != "train" {
			text += fmt.Sprintf("%s: %q\n", s.Name, p.Get(s)) // a line whatever the value
		}
	}
	return text
}
