package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// DataDir returns the folder of a public graph, which is no part of the repository: in $HEDDLE_DATA, or in shared/data
// beside a folder above the working directory. If there is none, the test is skipped, loudly.
func DataDir(t testing.TB, name string) string {
	t.Helper()
	if root := os.Getenv("HEDDLE_DATA"); root != "" {
		return filepath.Join(root, name)
	}
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		dir := filepath.Join(at, "shared", "data", name)
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		up := filepath.Dir(at)
		if up == at {
			t.Skipf("SKIPPED: data set %s not found; set HEDDLE_DATA to the folder that holds it", name)
		}
		at = up
	}
}
