package measure

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Clock tells how long something took, by the difference of two calls: Wall, or ProcessorTime on a
// machine that others use too.
type Clock func() time.Duration

var begin = time.Now()

// Wall is the time that passes.
func Wall() time.Duration { return time.Since(begin) }

// Cost is what a piece of work took, or a moment: by the wall, and by the processor, which is 0
// where the system does not count it.
type Cost struct{ Wall, Processor time.Duration }

// Now returns this moment.
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

// Resident returns a line of /proc/self/status in bytes, 0 elsewhere than on Linux. VmRSS is what
// is resident, VmHWM the most that was; reset makes what is resident now the most.
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
