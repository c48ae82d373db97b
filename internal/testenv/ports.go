package testenv

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

var portsGiven struct { // to the tests of this process, which may run side by side
	sync.Mutex
	next int
}

// FreePorts returns the first of n ports in a row that nobody has, for UDP and TCP. They are below those that the system
// gives away itself (from 32768 on Linux), as to what another test dials, and begin elsewhere in another process.
func FreePorts(t testing.TB, n int) int {
	t.Helper()
	portsGiven.Lock()
	defer portsGiven.Unlock()
	for port := max(portsGiven.next, 13000+os.Getpid()%2400*8); port+n <= 65000; port += n {
		if unusedPorts(port, n) {
			portsGiven.next = port + n
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

func unusedPorts(port, n int) bool {
	for k := range n {
		at := fmt.Sprintf("127.0.0.1:%d", port+k)
		packets, err := net.ListenPacket("udp4", at)
		if err != nil {
			return false
		}
		packets.Close()
		streams, err := net.Listen("tcp4", at)
		if err != nil {
			return false
		}
		streams.Close()
	}
	return true
}
