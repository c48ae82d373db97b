package p2p

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time that this process has used.
func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wakeups is how often a thread of this process has waited and was woken.
func wakeups() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Nvcsw
}

// resident is how many bytes of this process are in memory.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(b)); err == nil && len(fields) > 1 {
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return n * int64(os.Getpagesize())
		}
	}
	return 0
}
