package mobile

import (
	"math"
	"runtime/debug"

	"github.com/heddle-gnn/heddle/graph"
)

// What the Go heap may grow to before the garbage collector works harder, and keeps below where it can: systems end
// apps in the background by their memory. Training on 10,000 nodes in a single closed form keeps about 20 MiB.
const (
	smallHeap = 30 << 20
	smallSize = 10_000  // nodes, up to which that holds
	nodeHeap  = 3 << 10 // for each node more
)

// limitMemory sets the soft limit of this process's Go heap for training on a graph. A lower one that the app has set
// stays, and so does that of a larger graph.
func limitMemory(g *graph.Graph) {
	if g == nil {
		return
	}
	limit := int64(smallHeap + nodeHeap*max(0, g.N()-smallSize) + 12*g.N()*g.X.Cols())
	if now := debug.SetMemoryLimit(-1); now == math.MaxInt64 || smallHeap <= now && now < limit {
		debug.SetMemoryLimit(limit)
	}
}
