//go:build !linux

package p2p

import "time"

// boundSilence does nothing where the kernel has no such bound: yamux notices a silent peer, after tcpPatience times as long.
func boundSilence(any, time.Duration) {}
