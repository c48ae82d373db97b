//go:build !linux

package kernels

func adviseLarge(uintptr, uintptr) {}
