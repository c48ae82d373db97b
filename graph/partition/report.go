package partition

// Report is the quality of a partition.
type Report struct {
	Parts       int
	Nodes       int64
	Edges       int64   // stored: both directions of an undirected edge count
	Cut         int64   // edge cut: stored edges whose ends have different owners
	Halo        int64   // halo rows of all parts: what one exchange of a layer's rows carries
	CutShare    float64 // Cut / Edges; 0 without edges
	Replication float64 // replication factor: (Nodes + Halo) / Nodes
	// Balance is the largest part's share over the mean: 1 is even, Parts is all in one. 0 where there are none.
	NodeBalance, EdgeBalance, TrainBalance, HaloBalance float64
}

// Report returns the quality of the partition that m describes.
func (m *Manifest) Report() Report {
	r := Report{Parts: len(m.Parts), Nodes: m.Nodes, Edges: m.Edges}
	var nodes, edges, train, halo []int
	for _, p := range m.Parts {
		rows := 0
		for _, n := range p.Halo {
			rows += n
		}
		r.Cut, r.Halo = r.Cut+int64(p.Cut), r.Halo+int64(rows)
		nodes, edges, train, halo = append(nodes, p.Owned), append(edges, p.Edges), append(train, p.Train), append(halo, rows)
	}
	if r.Edges > 0 {
		r.CutShare = float64(r.Cut) / float64(r.Edges)
	}
	if r.Nodes > 0 {
		r.Replication = float64(r.Nodes+r.Halo) / float64(r.Nodes)
	}
	r.NodeBalance, r.EdgeBalance, r.TrainBalance, r.HaloBalance = balance(nodes), balance(edges), balance(train), balance(halo)
	return r
}

// balance returns the largest of x over the mean.
func balance(x []int) float64 {
	most, sum := 0, 0
	for _, v := range x {
		most, sum = max(most, v), sum+v
	}
	if sum == 0 {
		return 0
	}
	return float64(most) * float64(len(x)) / float64(sum)
}
