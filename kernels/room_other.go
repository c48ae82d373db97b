//go:build !linux

package kernels

func adviseLarge([]float32) {}
