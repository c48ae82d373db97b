//go:build !linux

package measure

// ProcessorTime is nil: this system does not count it.
var ProcessorTime Clock
