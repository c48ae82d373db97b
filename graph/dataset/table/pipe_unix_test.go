//go:build unix && !ios

package table

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestPipe: a table that can be read only once is refused.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	_, err := Open(pipe, Format{})
	graphtest.Refused(t, err, "must be a file, which is read more than once (got a pipe or a device)")
}
