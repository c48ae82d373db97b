//go:build race

package retexo

const raceDetector = true // it makes pools forget, so that memory is not measured
