//go:build race

package nn_test

// raceDetector is on: sync.Pool then drops what it is given at random, and the kernels allocate.
const raceDetector = true
