//go:build race

package kernels

import (
	"runtime"
	"unsafe"
)

const raceEnabled = true

// reads and writes tell the race detector what assembly, which it cannot see, is about to touch.

func reads[T any](x []T) {
	if len(x) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&x[0]), len(x)*int(unsafe.Sizeof(x[0])))
	}
}

func writes[T any](x []T) {
	if len(x) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&x[0]), len(x)*int(unsafe.Sizeof(x[0])))
	}
}
