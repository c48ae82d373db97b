package partition

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph/shard"
)

// Quality is the quality of a partition.
type Quality struct {
	Parts       int
	Nodes       int64
	Edges       int64   // stored edges: both directions of an undirected edge count
	Cut         int64   // edge cut: stored edges whose ends have different owners
	Halo        int64   // halo rows of all parts, which one exchange of a layer's rows sends
	CutShare    float64 // Cut / Edges; 0 without edges
	Replication float64 // replication factor: (Nodes + Halo) / Nodes
	// Balance is the largest part's share over the mean: 1 is even, the number of parts is all in one (0 = none).
	WorkBalance, NodeBalance, EdgeBalance, TrainBalance, ByteBalance, HaloBalance float64
	// Slowest is the part with the most work (Goal.Work), for which the others will wait.
	Slowest int
	// Rows is the communication volume of each pair, [K][K]: the rows that part p sends to part q in one exchange of a
	// layer's rows. They sum to Halo.
	Rows [][]int64
}

// Measure returns the quality of the partition that m describes.
func Measure(m *shard.Manifest) Quality {
	r := Quality{Parts: len(m.Parts), Nodes: m.Nodes, Edges: m.Edges, Rows: square(len(m.Parts))}
	var nodes, edges, train, bytes, halo []int64
	for q, part := range m.Parts {
		rows := int64(0)
		for p, n := range part.Halo {
			r.Rows[p][q] = int64(n)
			rows += int64(n)
		}
		r.Cut, r.Halo = r.Cut+int64(part.Cut), r.Halo+rows
		nodes, edges, train = append(nodes, int64(part.Owned)), append(edges, int64(part.Edges)),
			append(train, int64(part.Train))
		bytes, halo = append(bytes, part.Bytes), append(halo, rows)
	}
	if r.Edges > 0 {
		r.CutShare = float64(r.Cut) / float64(r.Edges)
	}
	if r.Nodes > 0 {
		r.Replication = float64(r.Nodes+r.Halo) / float64(r.Nodes)
	}
	most := Slowest(m, len(m.Parts))
	r.Slowest, r.WorkBalance = most.Worker, most.Balance
	r.NodeBalance, r.EdgeBalance, r.TrainBalance = Balance(nodes), Balance(edges), Balance(train)
	r.ByteBalance, r.HaloBalance = Balance(bytes), Balance(halo)
	return r
}

// workLoad is the load of the slowest worker.
type workLoad struct {
	Worker  int     // the worker with the most work (Goal.Work)
	Balance float64 // its work over the mean (0 = no worker has any)
}

// Slowest returns the most loaded of `workers` workers, which have the parts of shard.Group.
func Slowest(m *shard.Manifest, workers int) workLoad {
	work := make([]int64, workers)
	for w := range work {
		lo, hi := shard.Group(len(m.Parts), workers, w)
		for _, part := range m.Parts[lo:hi] {
			work[w] += int64(part.Edges) + NodeWork*int64(part.Owned)
		}
	}
	return workLoad{slices.Index(work, slices.Max(work)), Balance(work)}
}

// String is a sentence for the log.
func (l workLoad) String() string {
	return fmt.Sprintf("the slowest peer will be %d, with %.2f of the mean work", l.Worker, l.Balance)
}

// Widest returns the pair of parts between which most rows are sent, from p to q.
func (r Quality) Widest() (p, q int, rows int64) {
	for from, to := range r.Rows {
		for at, n := range to {
			if n > rows {
				p, q, rows = from, at, n
			}
		}
	}
	return p, q, rows
}

// messageCounts is how many messages one exchange of rows takes if a partial sum may replace the rows in it.
type messageCounts struct {
	Rows, Sums [][]int64 // [K][K] from part p to part q: rows of p's nodes, and sums for q's
	Total      int64
}

// LeastMessages returns the fewest messages between shards, which are all shards of a partition in order. An aggregator
// that is not linear in the rows needs every halo row instead: Quality.Halo.
func LeastMessages(shards []*shard.Shard) messageCounts {
	all := messageCounts{Rows: square(len(shards)), Sums: square(len(shards))}
	for q, s := range shards {
		for p := range shards {
			c := shard.NewCover(s.From(&s.Adj, p))
			all.Rows[p][q], all.Sums[p][q] = int64(len(c.Rows)), int64(len(c.Dst))
			all.Total += int64(c.Len())
		}
	}
	return all
}

// Balance returns the largest of x over the mean.
func Balance(x []int64) float64 {
	most, sum := int64(0), int64(0)
	for _, v := range x {
		most, sum = max(most, v), sum+v
	}
	if sum == 0 {
		return 0
	}
	return float64(most) * float64(len(x)) / float64(sum)
}

// square returns an n×n matrix of zeros.
func square(n int) [][]int64 {
	out := make([][]int64, n)
	for k := range out {
		out[k] = make([]int64, n)
	}
	return out
}
