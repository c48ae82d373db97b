package graph

import "math"

// Norm is how edges are weighted before rows are summed over them.
type Norm uint8

const (
	// Plain keeps the edges and weights as they are (GraphSAGE with max pooling).
	Plain Norm = iota
	// Loops adds a self-loop of weight 1 to every destination (GAT; GIN, whose sum includes the node itself).
	Loops
	// GCN adds self-loops and weighs edge (j, i) by w/√((1+d_i)(1+d_j)), where d is the weighted in-degree in the whole
	// graph (Kipf and Welling, ICLR 2017, eq. 2). A node without edges keeps its own row: its self-loop has weight 1.
	GCN
	// Mean weighs edge (j, i) by w/d_i (GraphSAGE, NeurIPS 2017, mean aggregator). The sum of a node without edges is
	// zero.
	Mean
	// Symmetric weighs edge (j, i) by w/√(d_i d_j), without self-loops (Correct & Smooth; Huang et
	// al., ICLR 2021, §2).
	Symmetric
)

// Degrees returns the weighted in-degree of every destination; 0 if it has no edges.
func (g *CSR) Degrees() []float32 {
	d := make([]float32, g.NumDst)
	for i := range d {
		col, weight := g.Row(i)
		sum := float64(len(col))
		if weight != nil {
			sum = 0
			for _, w := range weight {
				sum += float64(w)
			}
		}
		d[i] = float32(sum)
	}
	return d
}

// Averages returns g with weights that sum to 1 at each destination, and the sums of the original weights. If a sum is
// 0, its weights do not change, and it is returned as 1.
func (g *CSR) Averages() (*CSR, []float32) {
	totals := g.Degrees()
	for i, total := range totals {
		if total == 0 {
			totals[i] = 1
		}
	}
	return weighed(g, func(w float32, i, _ int) float32 { return w / totals[i] }), totals
}

// Normalise returns g weighted by norm. degree has every source's weighted degree in the whole graph (len NumSrc), so
// that a shard or block weighs its edges as the whole graph does; Plain and Loops do not read it. With Loops and GCN
// destination i must be source i. A degree of 0 gives finite weights: a source of a directed graph without in-edges has
// it, and edges of weight 0. If degree and weights disagree so that a root or denominator is not positive, the edge's
// weight is 0.
func Normalise(g *CSR, degree []float32, norm Norm) *CSR {
	if g = WithLoops(g, norm); norm == Plain || norm == Loops {
		return g
	}
	return weighed(g, func(w float32, i, j int) float32 {
		if norm == Mean { // sources may have no degree in this graph
			return norm.Weigh(w, degree[i], 0)
		}
		return norm.Weigh(w, degree[i], degree[j])
	})
}

// WeighDestinations returns g with the weights of the edges into destination i times dst[i] (nil = 1). Other memory is
// shared with g. Use it with the loops and dst of a norm (WithLoops, Factors) and rows that their owners have
// multiplied by src. Sums are then those of Normalise, and only the degrees of the destinations are needed.
func WeighDestinations(g *CSR, dst []float64) *CSR {
	if dst == nil {
		return g
	}
	return weighed(g, func(w float32, i, _ int) float32 { return float32(float64(w) * dst[i]) })
}

// WithLoops returns g with the self-loops of norm, whose columns are zeros. If norm has no loops, it returns g.
func WithLoops(g *CSR, norm Norm) *CSR {
	if norm != Loops && norm != GCN {
		return g
	}
	keep, loops := make([]bool, 0, len(g.Col)), g.like(g.NumDst, g.NumSrc, 0)
	loops.Col, loops.Weight, loops.Edge = make([]int32, g.NumDst), nil, nil
	for i := range g.NumDst {
		loops.RowPtr[i+1], loops.Col[i] = int64(i+1), int32(i)
		col, _ := g.Row(i)
		for _, j := range col { // the graph's own self-loop counts once
			keep = append(keep, int(j) != i)
		}
	}
	return Union(g.Keep(keep), loops)
}

// weighed returns g with the weights of weigh.
func weighed(g *CSR, weigh func(w float32, i, j int) float32) *CSR {
	out := *g
	out.Weight = make([]float32, len(g.Col))
	for i := range g.NumDst {
		for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
			w := float32(1)
			if g.Weight != nil {
				w = g.Weight[k]
			}
			out.Weight[k] = weigh(w, i, int(g.Col[k]))
		}
	}
	return &out
}

// Weigh returns the weight that Normalise gives an edge of weight w between nodes of these weighted degrees.
func (norm Norm) Weigh(w, to, from float32) float32 {
	d := 0.0 // divides w
	switch norm {
	case GCN:
		d = math.Sqrt((1 + float64(to)) * (1 + float64(from)))
	case Symmetric:
		d = math.Sqrt(float64(to) * float64(from))
	case Mean:
		d = float64(to)
	default:
		return w
	}
	if !(d > 0) { // no number, too: the root of a product below 0
		return 0
	}
	return float32(float64(w) / d)
}
