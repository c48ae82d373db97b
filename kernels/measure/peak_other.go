//go:build !amd64

package measure

// No peak is measured here.
const vectors = false

func fmaFlops() int                                 { return 0 }
func fmas(rounds int)                               {}
func triads(a, b, c []float32)                      {}
func gathers(index []int32, x []float32, lines int) {}
