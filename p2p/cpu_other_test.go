//go:build !linux

package p2p

import "time"

// processTime is 0: this system is not measured.
func processTime() time.Duration { return 0 }

func wakeups() int64  { return 0 }
func resident() int64 { return 0 }
