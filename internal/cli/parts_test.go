package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPartPaths: a list is split at its commas, but not at those in the names of existing files.
func TestPartPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a,b")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	part := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"part-0", "part-1"} {
		if err := os.WriteFile(part(name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	missing := part("part-9")
	for list, want := range map[string][]string{part("part-0"): {part("part-0")}, part("part-0") + "," +
		part("part-1"): {part("part-0"), part("part-1")},
		missing: strings.Split(missing, ",")} {
		if got := partPaths(list); !slices.Equal(got, want) {
			t.Errorf("%s: must be %q (got %q)", list, want, got)
		}
	}
}
