//go:build !amd64 && !arm64

package kernels

func usable() []*set { return []*set{generic} }
