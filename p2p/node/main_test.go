package node

import (
	"testing"

	"github.com/heddle-gnn/heddle/internal/leak"
)

// Every goroutine of a host has ended when Close returns, libp2p's included: there is no exception
// to make.
func TestMain(m *testing.M) { leak.Main(m) }
