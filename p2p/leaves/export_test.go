package leaves

import (
	"testing"

	"github.com/heddle-gnn/heddle/comm"
)

// Write writes bytes to a stream as they are.
func Write(t *testing.T, link comm.Transport, to int, b []byte) {
	t.Helper()
	if _, err := link.(*streams).all[to].Write(b); err != nil {
		t.Error(err)
	}
}
