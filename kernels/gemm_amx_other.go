//go:build !linux || !amd64 || android

package kernels

// tilesAllowed is false: only Linux on amd64 uses AMX.
func tilesAllowed() bool { return false }
