package graph

// WithReached returns g, the stacked relations between D destinations and their sources, followed by one more relation
// for each. It has an edge of weight 1 from every destination that the relation reaches to itself. Destination i must
// be source i. reached reports for each row whether the relation reaches its destination (nil = if the row has an
// edge).
func (g *CSR) WithReached(destinations int, reached []bool) *CSR {
	own := &CSR{NumDst: g.NumDst, NumSrc: g.NumSrc, RowPtr: make([]int64, 1, g.NumDst+1)}
	for k := range g.NumDst {
		if g.RowPtr[k+1] > g.RowPtr[k] || reached != nil && reached[k] {
			own.Col, own.Weight = append(own.Col, int32(k%destinations)), append(own.Weight, 1)
			if g.Edge != nil {
				own.Edge = append(own.Edge, -1)
			}
		}
		own.RowPtr = append(own.RowPtr, int64(len(own.Col)))
	}
	out := Stack([]*CSR{g, own})
	return &out
}
