//go:build !linux && !darwin && !windows

package federation

// memoryOf returns the bytes of memory of this machine; 0: unknown.
func memoryOf() int64 { return 0 }
