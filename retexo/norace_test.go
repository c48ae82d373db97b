//go:build !race

package retexo

const raceDetector = false
