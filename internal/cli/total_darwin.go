package cli

import "golang.org/x/sys/unix"

// TotalMemory returns the bytes of memory of this machine (0 = unknown).
func TotalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
