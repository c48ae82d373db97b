//go:build amd64 && (!linux || android)

package kernels

func tilesAllowed() bool { return false }
