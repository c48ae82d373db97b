//go:build !linux

package node

import "time"

// boundTimeout does nothing here: yamux notices after tcpPatience times as long.
func boundTimeout(any, time.Duration) {}
