package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/plan"
)

// TestClassWeightsOfAFile: a flag may name a file of weights. An error names the line.
func TestClassWeightsOfAFile(t *testing.T) {
	for text, c := range map[string][2]string{
		"class,weight\nfraud,5\n# others\nok, 0.5\n": {"fraud=5,ok=0.5", ""},
		"\"a b\",2":      {"a b=2", ""},
		"class,weight\n": {"", "must have lines CLASS,WEIGHT"},
		"fraud,5\nok":    {"", `line 2 must be CLASS,WEIGHT (got "ok")`},
		"\"a,b\",2":      {"", "line 1: a class whose name has a comma"},
	} {
		path := filepath.Join(t.TempDir(), "weights.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, _, err := LoadPlan("train", "", map[string]string{"class_weights": path, "method": "full-batch"}, nil)
		if c[1] != "" {
			if err == nil || !strings.Contains(err.Error(), c[1]) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q is refused with %v, must be with %q and the file", text, err, c[1])
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		s, _ := plan.Lookup("", "class_weights")
		if got := p.Get(s); got != c[0] {
			t.Errorf("%q is %q, must be %q", text, got, c[0])
		}
	}
}
