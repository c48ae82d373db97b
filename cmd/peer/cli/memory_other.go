//go:build !unix

package cli

// PeakMemory returns 0: unknown on this system.
func PeakMemory() int64 { return 0 }
