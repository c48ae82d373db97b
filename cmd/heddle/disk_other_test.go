//go:build !linux

package main

// breakDisk does nothing: only on Linux a test makes syncs fail.
func breakDisk() {}

func tempInMemory() {}
