//go:build !race

package kernels

const raceEnabled = false

func reads[T any]([]T)  {}
func writes[T any]([]T) {}
