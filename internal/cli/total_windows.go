package cli

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// TotalMemory returns the bytes of memory of this machine (0 = unknown).
func TotalMemory() int64 {
	status := struct { // MEMORYSTATUSEX
		length, load  uint32
		total, unread uint64
		more          [5]uint64
	}{length: 64}
	if ok, _,
		_ := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(
		uintptr(unsafe.Pointer(&status))); ok == 0 {
		return 0
	}
	return int64(status.total)
}
