//go:build !linux

package node

import "time"

// boundTimeout does nothing where the kernel has no such bound: yamux notices after tcpPatience times as long.
func boundTimeout(any, time.Duration) {}
