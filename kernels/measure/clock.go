package measure

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Clock measures durations as the difference of two calls. It is Wall, or ProcessorTime on a machine that others use
// too.
type Clock func() time.Duration

var begin = time.Now()

// Wall is the wall clock.
func Wall() time.Duration { return time.Since(begin) }

// Cost is a duration or a point in time, by the wall clock and by processor time, which is 0 if the system does not
// count it.
type Cost struct{ Wall, Processor time.Duration }

// Now returns the current point in time.
func Now() Cost {
	now := Cost{Wall: Wall()}
	if ProcessorTime != nil {
		now.Processor = ProcessorTime()
	}
	return now
}

// Since returns the cost of what ran since start.
func Since(start Cost) Cost {
	now := Now()
	return Cost{now.Wall - start.Wall, now.Processor - start.Processor}
}

// Resident returns a line of /proc/self/status in bytes, or 0 on systems other than Linux. VmRSS is the resident
// memory, VmHWM its peak; reset sets the peak to the current value.
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
