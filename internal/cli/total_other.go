//go:build !linux && !darwin && !windows

package cli

// TotalMemory returns the bytes of memory of this machine (0 = unknown).
func TotalMemory() int64 { return 0 }
