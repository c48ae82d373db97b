package p2p

import (
	"testing"

	"go.uber.org/goleak"
)

// Every goroutine of a host has ended when Close returns. The ones below belong to the process, not to a host:
// go-flow-metrics' ticker and go-multiaddr-dns start nothing until used, so no exception is needed for them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
