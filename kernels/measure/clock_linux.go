package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is that of this process, all its threads together; nil where the system does not
// count it.
var ProcessorTime Clock = func() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // the kernel has had this clock since 2.6.12
	}
	return time.Duration(t.Nano())
}
