package rivals

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Processor returns the time that this process has run on any processor, 0 where the system does not count it.
func Processor() time.Duration {
	if ProcessorTime == nil {
		return 0
	}
	return ProcessorTime()
}

// Resident returns a line of /proc/self/status in bytes, 0 elsewhere than on Linux; reset makes what is resident now the
// most that there was.
func Resident(line string, reset bool) int64 {
	if reset {
		os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	}
	text, _ := os.ReadFile("/proc/self/status")
	var kib int64
	if _, rest, ok := strings.Cut(string(text), line+":"); ok {
		fmt.Sscan(rest, &kib)
	}
	return kib << 10
}
