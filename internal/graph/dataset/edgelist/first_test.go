package edgelist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nodes of a list without 0 are numbered from 1, and their numbers are their names.
func TestNumberedFromOne(t *testing.T) {
	for text, want := range map[string]string{
		"1 2\n2 3\n": "3 1,2,3", "\ufeff1 2\n2 3\n": "3 1,2,3", "1\x00 \x002\x00\n\x002\x00 \x003\x00\n\x00": "3 1,2,3",
		"0 2\n2 3\n": "4 ", "2 3\n": "4 ",
	} {
		path := filepath.Join(t.TempDir(), "a.el")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g, _, err := Read(Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(want)
		names := strings.Join(words[1:], "")
		if len(g.Split) != int(words[0][0]-'0') || strings.Join(g.IDs, ",") != names {
			t.Errorf("%q: %d nodes named %q, want %s", text, len(g.Split), g.IDs, want)
		}
		if names == "" {
			continue
		}
		for nodes, want := range map[int]int{3: 3, 4: 4} {
			g, _, err := Read(Config{Path: path, Nodes: nodes})
			if err != nil || len(g.Split) != want || (g.IDs == nil) != (nodes == 4) {
				t.Errorf("with %d nodes: %d named %q (%v)", nodes, len(g.Split), g.IDs, err)
			}
		}
	}
}
