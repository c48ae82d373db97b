package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/plan"
)

// TestMethodOfLinks: links without a method are learned by full-batch on one machine and by layer-wise between sites; a
// method that a flag or a file sets is kept.
func TestMethodOfLinks(t *testing.T) {
	for _, c := range []struct {
		command, text string
		given         map[string]string
		want          string
	}{
		{"train", "", map[string]string{"task": "links"}, plan.FullBatch},
		{"train", "task: links\n", nil, plan.FullBatch},
		{"train", "seed: 3\n", map[string]string{"task": "links:cites"}, plan.FullBatch},
		{"train", "", map[string]string{"task": "links", "method": "layer-wise"}, plan.LayerWise},
		{"train", "method: layer-wise\n", map[string]string{"task": "links"}, plan.LayerWise},
		{"train", "task: links\nmethod: mini-batch\n", nil, plan.MiniBatch},
		{"train", "task: links\n", map[string]string{"task": "auto"}, plan.ClassMeans},
		{"join", "", map[string]string{"task": "links"}, plan.LayerWise},
		{"join", "task: links\n", nil, plan.LayerWise},
	} {
		path := ""
		if c.text != "" {
			path = filepath.Join(t.TempDir(), "settings.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, _, err := LoadPlan(c.command, path, c.given, nil)
		if err != nil || p.Method != c.want {
			t.Errorf("%+v: method %v, %v", c, p, err)
		}
	}
}

// TestSignaturesLast: a setting behind the signatures, which the approved text ends before, is refused.
func TestSignaturesLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "federation.yaml")
	for text, refused := range map[string]bool{"": false, "signatures: []\n": false,
		"# no key\nsignatures: []\n":           false,
		"signatures: []\nmethod: layer-wise\n": true, "signatures: []\n---\nmethod: layer-wise\n": true} {
		if err := os.WriteFile(path, []byte("seed: 3\nfederation: f\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := ReadPlan(path)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "signatures must be the last key") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
