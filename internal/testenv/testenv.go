// Package testenv has what tests of several packages need of the machine: long tests only if they are wanted, free
// ports, the public graphs, and no goroutine left behind.
package testenv

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// MainWithoutLeaks is the whole TestMain of a package that owns goroutines: it runs the tests and fails if any
// goroutine is left. Heaps are small here and in the programs that tests start: the collector would take a third of
// the time by default.
func MainWithoutLeaks(m *testing.M) {
	debug.SetGCPercent(400)
	os.Setenv("GOGC", "400")
	goleak.VerifyTestMain(m)
}

// DataDir returns the folder of a public graph, which is no part of the repository: in $HEDDLE_DATA, or in shared/data
// next to a folder above the working directory. If there is none, the test is skipped, with a message.
func DataDir(t testing.TB, name string) string {
	t.Helper()
	if root := os.Getenv("HEDDLE_DATA"); root != "" {
		return filepath.Join(root, name)
	}
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; at != filepath.Dir(at); at = filepath.Dir(at) {
		dir := filepath.Join(at, "shared", "data", name)
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	t.Skipf("SKIPPED: data set %s not found; set HEDDLE_DATA to the folder that has it", name)
	return ""
}

// OnlyLong skips a test that takes long, unless HEDDLE_LONG=1 asks for it.
func OnlyLong(t *testing.T) {
	t.Helper()
	if !longWanted() {
		t.Skip("SKIPPED: takes long; HEDDLE_LONG=1 runs it")
	}
}

// LongForm reports whether a test takes its long form. If not, a skipped subtest shows it.
func LongForm(t *testing.T) bool {
	t.Helper()
	if !longWanted() {
		t.Run("long form", OnlyLong)
	}
	return longWanted()
}

func longWanted() bool { return !testing.Short() && os.Getenv("HEDDLE_LONG") != "" }

var portsGiven struct { // to the tests of this process, which may run side by side
	sync.Mutex
	next, end int // of the block
	claims    []net.Listener
}

// A block of ports belongs to the process that listens on its first one.
const firstBlock, blockPorts, portBlocks = 13000, 400, 49

// FreePorts returns the first of n ports in a row, for UDP and TCP, that nobody has and no other test process is given.
// They are below those that the system gives away itself (from 32768 on Linux), such as to another test's connection.
func FreePorts(t testing.TB, n int) int {
	t.Helper()
	portsGiven.Lock()
	defer portsGiven.Unlock()
	for k := range portBlocks {
		for port := portsGiven.next; port+n <= portsGiven.end; port += n {
			if unusedPorts(port, n) {
				portsGiven.next = port + n
				return port
			}
		}
		first := firstBlock + (os.Getpid()+k)%portBlocks*blockPorts
		if claim, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", first)); err == nil {
			portsGiven.claims = append(portsGiven.claims, claim)
			portsGiven.next, portsGiven.end = first+1, first+blockPorts
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
