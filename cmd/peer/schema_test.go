package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// resultSchema returns the schema of the reference, parsed and compiled.
func resultSchema(t *testing.T) (plain any, schema *jsonschema.Schema) {
	t.Helper()
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(contents(t, "../../docs/reference/result.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("result.schema.json", plain); err != nil {
		t.Fatal(err)
	}
	if schema, err = c.Compile("result.schema.json"); err != nil {
		t.Fatal(err)
	}
	return plain, schema
}

// bySchema checks that the file of a run is by the schema, and returns it.
func bySchema(t *testing.T, schema *jsonschema.Schema, path string) any {
	t.Helper()
	object, err := jsonschema.UnmarshalJSON(bytes.NewReader(contents(t, path)))
	if err == nil {
		err = schema.Validate(object)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return object
}

// TestResultSchema: what runs of each mode write is by the schema of the reference, which knows every one of their fields;
// a field that is missing, or of another type, is not.
func TestResultSchema(t *testing.T) {
	t.Parallel()
	plain, schema := resultSchema(t)
	for _, flags := range []string{"--mode retexo --rounds 3", "--preset frugal --epsilon 4 --class-target labels", "--preset auto", "--preset frugal --seeds 2", "--mode fullbatch --rounds 3 --metric auc", "--mode standalone --rounds 3 --peers 1", "--mode fullbatch --task links --rounds 3"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			must(t, append([]string{"train", "--data", sites(t), "--transport", "memory", "--out", out}, strings.Fields(flags)...)...)
			object := bySchema(t, schema, filepath.Join(out, "result.json"))
			root := plain.(map[string]any)
			for _, field := range unknown(object, root, root, "result") {
				t.Errorf("the schema must know %s", field)
			}
			result := object.(map[string]any)
			if result["ranks"] == nil && (result["figures"] == nil || result["bytes_all_peers"] == nil) {
				t.Errorf("figures %v, ranks %v: one of them must be there", result["figures"], result["ranks"])
			}
			for key, wrong := range map[string]any{"test": "0.8", "figures": []any{}, "date": "today", "peers": json.Number("0")} {
				held := result[key]
				result[key] = wrong
				if schema.Validate(object) == nil {
					t.Errorf("%s: %v must not be by the schema", key, wrong)
				}
				delete(result, key)
				if schema.Validate(object) == nil {
					t.Errorf("a result without %s must not be by the schema", key)
				}
				result[key] = held
			}
		})
	}
}

// unknown returns the fields of an object that its schema does not name.
func unknown(object any, schema, root map[string]any, at string) (all []string) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	switch x := object.(type) {
	case map[string]any:
		known, _ := schema["properties"].(map[string]any)
		for key, v := range x {
			if one, ok := known[key].(map[string]any); ok {
				all = append(all, unknown(v, one, root, at+"."+key)...)
			} else if schema["additionalProperties"] == nil {
				all = append(all, at+"."+key)
			}
		}
	case []any:
		for k, v := range x {
			items, _ := schema["items"].(map[string]any)
			all = append(all, unknown(v, items, root, fmt.Sprintf("%s[%d]", at, k))...)
		}
	}
	return all
}
