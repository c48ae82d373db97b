package cli

import "golang.org/x/sys/unix"

// TotalMemory returns the bytes of memory of this machine (0 = unknown).
func TotalMemory() int64 {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(uint64(s.Totalram) * uint64(s.Unit))
}
