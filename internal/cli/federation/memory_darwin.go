package federation

import "golang.org/x/sys/unix"

// memoryOf returns the bytes of memory of this machine; 0: unknown.
func memoryOf() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
