package plan

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSettingsPageOfPython keeps the types of settings in Python equal to the tags of Plan. HEDDLE_WRITE=1 writes them.
func TestSettingsPageOfPython(t *testing.T) {
	generated(t, "../python/heddle/_settings.py", pythonSettings(comments(t)))
}

// pythonSettings is a typed dictionary of the settings that a simulation takes.
func pythonSettings(texts map[string]string) []byte {
	var b bytes.Buffer
	var fields bytes.Buffer
	b.WriteString(`"""Settings of a run. Generated: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan"""

from __future__ import annotations

from typing import Literal, TypedDict


class Settings(TypedDict, total=False):
    """Settings of ` + "`train` and `compare`" + `; one that is not given has its default.

    Attributes:
`)
	for _, s := range settings("") {
		if s.Only == "join" || s.Experimental {
			continue
		}
		kind := map[string]string{"text": "str", "integer": "int", "number": "float", "true or false": "bool",
			"duration": "str", "list": "list[float]"}[s.Type]
		if reflect.TypeFor[Plan]().FieldByIndex(s.field).Type == reflect.TypeFor[[]int]() {
			kind = "list[int]"
		}
		text := ""
		var choices []string
		for _, method := range Methods() { // which have a setting of that name
			if one, ok := Lookup(method, s.Name); ok {
				choices = append(choices, one.Choices...)
				if more := one.text(texts); !strings.Contains(text, more) {
					text = strings.TrimSpace(text + "\nWith " + method + ": " + more)
				}
			}
		}
		if strings.Count(text, "\nWith ") == 0 { // the same with all methods
			_, text, _ = strings.Cut(text, ": ")
		}
		if len(choices) > 0 && s.Name != "encoder" {
			slices.Sort(choices)
			kind = `Literal["` + strings.Join(slices.Compact(choices), `", "`) + `"]`
		}
		fmt.Fprintf(&b, "        %s: %s\n", s.Name, capital(s.Help))
		fmt.Fprintf(&fields, "\n    %s: %s\n    \"\"\"%s\n\n", s.Name, kind, capital(s.Help))
		line := "   "
		for word := range strings.FieldsSeq(text) {
			if len(line)+len(word) > 100 {
				fields.WriteString(line + "\n")
				line = "   "
			}
			line += " " + strings.ReplaceAll(word, `\`, `\\`)
		}
		fmt.Fprintf(&fields, "%s\n    \"\"\"\n", line)
	}
	b.WriteString(`    """` + "\n")
	return append(b.Bytes(), fields.Bytes()...)
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
