package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is the processor time of all threads of this process; nil if the system does not count it.
var ProcessorTime Clock = func() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // Linux has had this clock since 2.6.12
	}
	return time.Duration(t.Nano())
}
