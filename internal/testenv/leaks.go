// Package testenv has what tests of several packages need of the machine: long tests only if they are wanted, free
// ports, the public graphs, and no goroutine left behind.
package testenv

import (
	"testing"

	"go.uber.org/goleak"
)

// MainWithoutLeaks is the whole TestMain of a package that owns goroutines: it runs the tests and fails if any
// goroutine is left.
func MainWithoutLeaks(m *testing.M) { goleak.VerifyTestMain(m) }
