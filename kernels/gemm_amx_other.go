//go:build !linux || !amd64 || android

package kernels

// tilesAllowed is false: AMX is used on Linux for amd64 only.
func tilesAllowed() bool { return false }
