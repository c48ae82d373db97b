package testenv

import (
	"os"
	"testing"
)

// OnlyLong skips a test that takes long, unless HEDDLE_LONG=1 asks for it.
func OnlyLong(t *testing.T) {
	t.Helper()
	if !longWanted() {
		t.Skip("SKIPPED: takes long; HEDDLE_LONG=1 runs it")
	}
}

// LongForm reports whether a test takes its long form. If not, a subtest that is skipped tells so.
func LongForm(t *testing.T) bool {
	t.Helper()
	if !longWanted() {
		t.Run("long form", OnlyLong)
	}
	return longWanted()
}

func longWanted() bool { return !testing.Short() && os.Getenv("HEDDLE_LONG") != "" }
