//go:build !race

package nn_test

const raceDetector = false
