//go:build amd64 && !linux

package kernels

func tilesAllowed() bool { return false }
