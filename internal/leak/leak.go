// Package leak makes a package's tests fail when a goroutine outlives them.
package leak

import (
	"testing"

	"go.uber.org/goleak"
)

// Main is the whole TestMain of a package that owns goroutines: it runs the tests and fails if any goroutine is left.
func Main(m *testing.M) { goleak.VerifyTestMain(m) }
