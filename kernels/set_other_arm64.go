//go:build !linux && !darwin

package kernels

func hasBF16() bool { return false }
