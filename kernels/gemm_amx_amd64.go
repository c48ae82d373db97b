package kernels

import "unsafe"

//go:noescape
func gemmAMX(shape *tileShape, rows, cols, k int, a unsafe.Pointer, rs int, b unsafe.Pointer, ldb int, c unsafe.Pointer, ldc int, acc, below bool)
