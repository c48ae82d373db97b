//go:build !android

package kernels

import (
	"sync"
	"syscall"

	"golang.org/x/sys/cpu"
)

// tilesAllowed reports whether AMX may be used. It asks Linux to save the tiles with each signal, which takes 8 KiB of
// the signal's stack. Linux refuses if a thread of the process, such as a C thread, has too small a signal stack.
var tilesAllowed = sync.OnceValue(func() bool {
	const requestPermission, tileData = 0x1023, 18
	if x := &cpu.X86; !x.HasAMXTile || !x.HasAMXBF16 || !x.HasAVX512BF16 {
		return false
	}
	_, _, err := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return err == 0
})
