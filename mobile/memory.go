package mobile

import (
	"math"
	"runtime/debug"

	"github.com/heddle-gnn/heddle/graph"
)

// The soft limit of the Go heap, since systems end background apps that use much memory. Training on 10,000 nodes in a
// single closed form keeps about 20 MiB.
const (
	smallHeap = 30 << 20
	smallSize = 10_000  // nodes for which smallHeap suffices
	nodeHeap  = 3 << 10 // for each further node
)

// limitMemory sets the soft limit of this process's Go heap for training on a graph. It keeps a lower
// limit that the app has set, and the limit of a larger graph.
func limitMemory(g *graph.Graph) {
	if g == nil {
		return
	}
	limit := int64(smallHeap + nodeHeap*max(0, g.N()-smallSize) + 12*g.N()*g.X.Cols())
	if now := debug.SetMemoryLimit(-1); now == math.MaxInt64 || smallHeap <= now && now < limit {
		debug.SetMemoryLimit(limit)
	}
}
