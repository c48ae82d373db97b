//go:build amd64 && !android

package kernels

import (
	"sync"
	"syscall"
)

// tilesAllowed asks the kernel for the state of the tiles, which makes a signal's frame larger; refused where a thread
// of the process, such as one of C, has too small a stack for signals.
var tilesAllowed = sync.OnceValue(func() bool {
	const request, tileData = 0x1023, 18
	_, _, err := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, request, tileData, 0)
	return err == 0
})
