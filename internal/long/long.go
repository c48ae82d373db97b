// Package long keeps what takes long out of an ordinary go test: HEDDLE_LONG=1 runs it.
package long

import (
	"os"
	"testing"
)

// Only skips a test that takes long.
func Only(t *testing.T) {
	t.Helper()
	if !wanted() {
		t.Skip("SKIPPED: takes long; HEDDLE_LONG=1 runs it")
	}
}

// Form reports whether a test takes its long form. If not, a subtest that is skipped tells so.
func Form(t *testing.T) bool {
	t.Helper()
	if !wanted() {
		t.Run("long form", Only)
	}
	return wanted()
}

func wanted() bool { return !testing.Short() && os.Getenv("HEDDLE_LONG") != "" }
