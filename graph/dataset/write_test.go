package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// ending is a context that ends after so many looks at it.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestWriteStops: whenever a context ends while a data set is written, the next bytes are not written, and nothing is left.
func TestWriteStops(t *testing.T) {
	g := Sites(SitesConfig{Nodes: 2000, Columns: 300}, rng.New(1))
	for looks := 0; ; looks++ {
		parent := t.TempDir()
		err := WriteContext(&ending{t.Context(), looks}, filepath.Join(parent, "out"), g)
		left, _ := os.ReadDir(parent)
		if err == nil {
			if looks < 3 || len(left) != 1 {
				t.Errorf("after %d looks there are %v", looks, left)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || len(left) != 0 {
			t.Fatalf("after %d looks: %v, and %v is left", looks, err, left)
		}
	}
}
