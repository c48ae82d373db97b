package node

import (
	"flag"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// Every goroutine of a host has ended when Close returns, libp2p's included: there is no exception
// to make.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait for peers and limits
	testenv.MainWithoutLeaks(m)
}
