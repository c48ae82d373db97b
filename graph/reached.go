package graph

// NormaliseTyped returns g, the stacked relations between D destinations and their sources, weighted
// by norm within each relation; a shard's destinations have all their edges, so that nothing is read
// of others. For MeanReached it returns 2·R relations: those of Mean, and behind them for each an
// edge of weight 1 from every destination that the relation reaches to itself.
func NormaliseTyped(g *CSR, destinations int, norm Norm) *CSR {
	if norm != MeanReached {
		return Normalise(g, g.Degrees(), norm)
	}
	mean := Normalise(g, g.Degrees(), Mean)
	own := &CSR{NumDst: g.NumDst, NumSrc: g.NumSrc, RowPtr: make([]int64, 1, g.NumDst+1)}
	for k := range g.NumDst {
		if g.RowPtr[k+1] > g.RowPtr[k] {
			own.Col, own.Weight = append(own.Col, int32(k%destinations)), append(own.Weight, 1)
		}
		own.RowPtr = append(own.RowPtr, int64(len(own.Col)))
	}
	out := Stack([]*CSR{mean, own})
	return &out
}
