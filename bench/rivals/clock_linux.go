package rivals

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-gnn/heddle/kernels/measure"
)

// ProcessorTime is that of this process, all its threads together; nil where the system does not count it.
var ProcessorTime measure.Clock = func() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // the kernel has had this clock since 2.6.12
	}
	return time.Duration(t.Nano())
}
