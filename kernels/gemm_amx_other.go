//go:build !linux || !amd64 || android

package kernels

// tilesAllowed reports that AMX may not be used.
func tilesAllowed() bool { return false }
