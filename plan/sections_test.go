package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEverySettingComesBack: a plan is the same after its text is read, whatever it sets. Models of a method write a
// setting alike, so one of them represents all; TestDefaults reads the text of each.
func TestEverySettingComesBack(t *testing.T) {
	cameBack := map[string]bool{}
	everyPlan(func(usual Plan) {
		for _, s := range Settings(usual.Method) {
			for _, text := range slices.Concat(s.Choices, []string{"true", "false", "1", "2", "3", "0.5", "0.25,0.5",
				"12s", "a=2", "links:cites", "pca:7"}) {
				p, once := usual, fmt.Sprint(usual.Method, usual.Task, usual.Gradient().Solver, s.Name, text)
				if cameBack[once] || s.decides() || p.set(s, text) != nil || p.Validate() != nil ||
					p.Only("join") != nil && p.Only("train") != nil {
					continue
				}
				written, err := p.MarshalYAML()
				if err != nil {
					t.Fatal(err)
				}
				if again := read(t, string(written), nil); !reflect.DeepEqual(*again, p) {
					t.Errorf("%s with %s: %s: of\n%s\ncomes %+v\nwant %+v", p.Method, s.Name, text, written, *again, p)
				}
				cameBack[once] = true
			}
		}
	})
}

// TestSections: an experimental setting is under experimental, any other is not, and a fault has its position.
func TestSections(t *testing.T) {
	for text, want := range map[string]string{
		"seed: 3\nsums: int8": "[2:1] sums must stand under class_means, experimental",
		"seed: 3\nclass_means:\n  experimental:\n    sums: int8\n    hops: 2": "[5:5] hops must stand " +
			"under class_means",
		"compress: zstd":                "[1:1] compress must stand under experimental",
		"method: layer-wise\nrounds: 5": "[2:1] rounds must stand under layer_wise",
		"layer_wise: {rounds: 5}": "[1:1] layer_wise must be left out with method class-means, whose settings " +
			"stand under class_means",
		"class_means: {fanouts: [5]}": "[1:15] fanouts: unknown setting of class-means; it belongs to mini-batch",
		"fanouts: [5]":                "[1:1] fanouts: unknown setting of class-means; it belongs to mini-batch",
		"rounds: 5": "[1:1] rounds: unknown setting of class-means; it belongs to layer-wise, " +
			"full-batch and mini-batch",
		"class_means: {seed: 5}":      "[1:15] seed must stand outside class_means: it is common to all methods",
		"class_means: {colour: red}":  "[1:15] colour: unknown setting",
		"experimental: {colour: red}": "[1:16] colour: unknown setting",
		"experimental: 7":             "[1:1] experimental must be settings, a line each",
		"experimental:":               "[1:1] experimental must be settings, a line each",
		"experimental: {compress: zstd}\nexperimental: {compress: none}": "[2:1]",
		"class_means: {hops: 1}\nclass_means: {hops: 2}":                 "[2:1]",
		"class_means: {hops: 1, hops: 2}":                                "[1:",
		"experimental: {members: []}":                                    "[1:16] members: unknown setting",
		"method: retexo\n" +
			"layers: 3": `method must be class-means, layer-wise, full-batch or mini-batch (got "retexo")`,
	} {
		if _, err := Read([]byte(text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error must be %q (got %v)", text, want, err)
		}
	}
	for _, text := range []string{"class_means: {experimental: {sums: int8}}",
		"class_means:\n  experimental:\n    sums: int8\nseed: 1",
		"class_means:\n  hops: 2\n  experimental:\n    sums: int8\n    shrink: 3"} {
		if p, err := Read([]byte(text), nil, nil); err != nil || p.Federation().Sums != "int8" {
			t.Errorf("%q: sums must be int8 (got %v)", text, err)
		}
	}
}

// TestSettingsOfOneSite: a plan with members has no setting that each site decides on, whatever its command line has.
func TestSettingsOfOneSite(t *testing.T) {
	const members = "method: full-batch\nmembers: [{name: north, id: 12D3, addresses: []}]\n"
	for text, want := range map[string]string{
		"full_batch: {memory: 3}":   "memory is a setting of one site, not of the plan: use heddle join --memory",
		"full_batch: {prefetch: 2}": "use heddle join --prefetch", "full_batch: {checkpoint_every: 5}": "use heddle " +
			"join --checkpoint-every", "relays: []": "", "carrier: tcp": "",
	} {
		if _, err := Read([]byte(members+text), nil, nil); errorText(err) != "" && want == "" ||
			!strings.Contains(errorText(err), want) {
			t.Errorf("%q: the error must be %q (got %v)", text, want, err)
		}
	}
	read(t, members, map[string]string{"memory": "3", "prefetch": "2"})
	read(t, "method: full-batch\nmemory: 3", nil)
}

// TestFewSettings: the list of settings for users is short; what only a benchmark sets is experimental.
func TestFewSettings(t *testing.T) {
	n := 0
	for _, s := range Settings("") {
		if !s.Experimental && !s.Local {
			n++
		}
	}
	if n > mostSettings {
		t.Errorf("settings that are neither experimental nor of one site must be at most %d (got %d)", mostSettings, n)
	}
}

const mostSettings = 47

// TestExamplePlans: the plans of examples are sound.
func TestExamplePlans(t *testing.T) {
	all, err := filepath.Glob("../examples/plans/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Read(text, nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
