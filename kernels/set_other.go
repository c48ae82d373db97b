//go:build !amd64

package kernels

func usable() []*set { return []*set{generic} }
