//go:build unix

package cli

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// PeakMemory returns the most memory that this process has used, in bytes (0 = unknown).
func PeakMemory() int64 {
	// Linux counts in Getrusage also what the program that started this one held until then, such as Python.
	if peak := highWater(); peak > 0 {
		return peak
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss) // bytes there, KiB elsewhere
	}
	return int64(u.Maxrss) * 1024
}

// highWater returns VmHWM of /proc/self/status in bytes (0 = unknown).
func highWater() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	fmt.Sscan(line, &kib)
	return kib << 10
}

// ProcessorTime returns the processor time of this process in its own code (0 = unknown).
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}
