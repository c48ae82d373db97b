package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/rng"
)

// TestWriteStops: whenever the writing of a data set is stopped, nothing is left.
func TestWriteStops(t *testing.T) {
	g := Sites(SitesConfig{Nodes: 2000, Columns: 300}, rng.New(1))
	enough := errors.New("enough")
	for looks := 0; ; looks++ {
		parent, left := t.TempDir(), looks
		err := WriteUntil(filepath.Join(parent, "out"), g, func() error {
			if left--; left < 0 {
				return enough
			}
			return nil
		})
		entries, _ := os.ReadDir(parent)
		if err == nil {
			if looks < 3 || len(entries) != 1 {
				t.Errorf("after %d looks there are %v", looks, entries)
			}
			return
		}
		if !errors.Is(err, enough) || len(entries) != 0 {
			t.Fatalf("after %d looks: %v, and %v is left", looks, err, entries)
		}
	}
}
