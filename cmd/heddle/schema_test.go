package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A schema has the keywords of JSON Schema that the schema of results uses.
type schema map[string]any

// resultSchema returns the schema of the reference.
func resultSchema(t *testing.T) (s schema) {
	t.Helper()
	if err := json.Unmarshal(contents(t, "../../docs/reference/result.schema.json"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// bySchema checks that the file of a run follows the schema, and returns it.
func bySchema(t *testing.T, s schema, path string) (object any) {
	t.Helper()
	if err := json.Unmarshal(contents(t, path), &object); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	for _, fault := range s.faults(object, s, "result") {
		t.Errorf("%s: %s", path, fault)
	}
	return object
}

// at returns the schema that one of root refers to, if it does.
func (s schema) at(root schema) schema {
	if ref, ok := s["$ref"].(string); ok {
		return root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	return s
}

// is reports whether v has a type of that name.
func is(v any, name string) bool {
	switch x := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && x == math.Trunc(x)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// faults returns what in v violates the schema.
func (s schema) faults(v any, root schema, at string) (all []string) {
	s = s.at(root)
	fault := func(format string, args ...any) { all = append(all, at+" "+fmt.Sprintf(format, args...)) }
	names, _ := s["type"].([]any)
	if one, ok := s["type"].(string); ok {
		names = []any{one}
	}
	if names != nil && !slices.ContainsFunc(names, func(name any) bool { return is(v, name.(string)) }) {
		fault("must be %v (got %v)", names, v)
		return all
	}
	if list, ok := s["enum"].([]any); ok && !slices.Contains(list, v) {
		fault("must be one of %v (got %v)", list, v)
	}
	switch x := v.(type) {
	case string:
		if pattern, ok := s["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(x) {
			fault("must match %s (got %q)", pattern, x)
		}
		if _, err := time.Parse(time.RFC3339, x); s["format"] == "date-time" && err != nil {
			fault("must be a time (got %q)", x)
		}
	case float64:
		for key, low := range map[string]func(bound float64) bool{"minimum": func(b float64) bool { return x < b },
			"exclusiveMinimum": func(b float64) bool { return x <= b },
			"maximum":          func(b float64) bool { return x > b }} {
			if bound, ok := s[key].(float64); ok && low(bound) {
				fault("must keep to %s %g (got %g)", key, bound, x)
			}
		}
	case map[string]any:
		required, _ := s["required"].([]any)
		for _, key := range required {
			if _, ok := x[key.(string)]; !ok {
				fault("must have %s", key)
			}
		}
		known, _ := s["properties"].(map[string]any)
		for key, one := range x {
			if of, ok := known[key].(map[string]any); ok {
				all = append(all, schema(of).faults(one, root, at+"."+key)...)
			}
		}
	case []any:
		of, _ := s["items"].(map[string]any)
		for k, one := range x {
			all = append(all, schema(of).faults(one, root, fmt.Sprintf("%s[%d]", at, k))...)
		}
	}
	return all
}

// TestResultSchema: what runs of each method write is by the schema of the reference, which knows every one of their
// fields; a field that is missing, or of another type, is not.
func TestResultSchema(t *testing.T) {
	t.Parallel()
	s := resultSchema(t)
	for _, flags := range []string{"--method layer-wise --rounds 3",
		"--method class-means --epsilon 4 --class-target labels", "--method class-means --seeds 2",
		"--method full-batch --rounds 3 --metric auc", "--method full-batch --peers 1 --rounds 3",
		"--method full-batch --task links --rounds 3"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			must(t, append([]string{"train", "--data", sites(t), "--transport", "memory", "--out", out},
				strings.Fields(flags)...)...)
			object := bySchema(t, s, filepath.Join(out, "result.json"))
			for _, field := range unknown(object, s, s, "result") {
				t.Errorf("the schema must know %s", field)
			}
			result := object.(map[string]any)
			if result["ranks"] == nil && (result["figures"] == nil || result["bytes_all_peers"] == nil) {
				t.Errorf("figures %v, ranks %v: one of them must be there", result["figures"], result["ranks"])
			}
			for key, wrong := range map[string]any{"test": "0.8", "figures": []any{}, "date": "today", "peers": 0.0} {
				held := result[key]
				result[key] = wrong
				if s.faults(object, s, "result") == nil {
					t.Errorf("%s: %v must not be by the schema", key, wrong)
				}
				delete(result, key)
				if s.faults(object, s, "result") == nil {
					t.Errorf("a result without %s must not be by the schema", key)
				}
				result[key] = held
			}
		})
	}
}

// unknown returns the fields of an object that its schema does not name.
func unknown(object any, s, root schema, at string) (all []string) {
	s = s.at(root)
	switch x := object.(type) {
	case map[string]any:
		known, _ := s["properties"].(map[string]any)
		for key, v := range x {
			if one, ok := known[key].(map[string]any); ok {
				all = append(all, unknown(v, one, root, at+"."+key)...)
			} else if s["additionalProperties"] == nil {
				all = append(all, at+"."+key)
			}
		}
	case []any:
		for k, v := range x {
			items, _ := s["items"].(map[string]any)
			all = append(all, unknown(v, items, root, fmt.Sprintf("%s[%d]", at, k))...)
		}
	}
	return all
}
