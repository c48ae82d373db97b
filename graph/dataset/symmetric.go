package dataset

import "github.com/heddle-gnn/heddle/graph"

// symmetric returns both directions of every pair, without self-loops and repeats: two counting sorts.
func symmetric(n int, src, dst []int32) graph.CSR {
	ptr := make([]int64, n+1)
	for k, i := range src {
		if j := dst[k]; i != j {
			ptr[i+1]++
			ptr[j+1]++
		}
	}
	for i := range n {
		ptr[i+1] += ptr[i]
	}
	scatter := func(each func(put func(i, j int32))) []int32 {
		next, out := append([]int64(nil), ptr[:n]...), make([]int32, ptr[n])
		each(func(i, j int32) { out[next[i]] = j; next[i]++ })
		return out
	}
	col := scatter(func(put func(i, j int32)) {
		for k, i := range src {
			if j := dst[k]; i != j {
				put(i, j)
				put(j, i)
			}
		}
	})
	// The pairs are symmetric as a multiset, so the transpose is the same rows with ascending columns.
	col = scatter(func(put func(i, j int32)) {
		for i := range n {
			for _, j := range col[ptr[i]:ptr[i+1]] {
				put(j, int32(i))
			}
		}
	})
	g := graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1), Col: col[:0]}
	for i := range n {
		start := len(g.Col)
		for _, j := range col[ptr[i]:ptr[i+1]] {
			if len(g.Col) == start || g.Col[len(g.Col)-1] != j {
				g.Col = append(g.Col, j)
			}
		}
		g.RowPtr[i+1] = int64(len(g.Col))
	}
	return g
}
