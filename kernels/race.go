//go:build race

package kernels

import (
	"runtime"
	"unsafe"
)

const raceEnabled = true

// reads and writes inform the race detector what assembly is about to read and write, which it cannot see.

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
