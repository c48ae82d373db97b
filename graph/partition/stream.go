package partition

import "math"

// Hash gives each node to a part by a keyed hash of its ID, in proportion to the parts' capacities.
func Hash() Rules {
	return Rules{Vertex: func(v int32, s *View) int32 { return s.part(s.Key.Float64(uint64(v))) }}
}

// ContiguousEdges gives part p the p-th run of nodes in the order of their IDs, such that all runs have equally many
// edges (CuSP's ContiguousEB and EEC): a node lies where the middle of its edges does.
func ContiguousEdges() Rules { return Rules{Vertex: contiguousEdges} }

func contiguousEdges(v int32, s *View) int32 {
	if s.total.Edges == 0 {
		return s.part((float64(v) + 0.5) / float64(s.total.Vertices))
	}
	return s.part(float64(2*s.Before(v)+s.Degree(v)) / float64(2*s.total.Edges))
}

// part returns the part that holds place x in [0, 1) of the whole, parts lying one after another by their shares.
func (s *View) part(x float64) int32 {
	last := int32(s.Parts() - 1)
	for p := range last {
		if x -= s.Share(p); x < -1e-12 {
			return p
		}
	}
	return last
}

// ldg is linear deterministic greedy (Stanton and Kliot, KDD 2012), passed over the nodes that often (restreamed:
// Nishimura and Ugander, KDD 2013): the part p of the highest |N(v) in p|·(1 − |V_p|/C_p), C_p what it may hold. Of
// three passes and more the first two find clusters, from which the others start.
func ldg(passes int) Rules {
	r := restream(passes, func(s *View, p int32, load Load) (gain, cost float64) {
		return 1 - float64(load.Vertices)/float64(s.most[p]), 0
	})
	r.Goal = Goal{Vertices: 1.03} // it is a rule of what nodes there is room for
	return r
}

// fennel (Tsourakakis et al., WSDM 2014), passed over the nodes that often (restreamed: Nishimura and Ugander, KDD
// 2013): the part p of the highest |N(v) in p| − α·γ·|V_p|^(γ−1), γ = 3/2 and α = m·K^(γ−1)/n^γ for n nodes and m
// undirected edges. Of unlike parts |V_p| is over the part's share times K. Of three passes and more the first two find
// clusters, from which the others start.
func fennel(passes int) Rules {
	return restream(passes, func(s *View, p int32, load Load) (gain, cost float64) {
		return 1, s.fennel(float64(s.total.Edges)/2, float64(load.Vertices), p)
	})
}

func restream(passes int, terms func(*View, int32, Load) (gain, cost float64)) Rules {
	return Rules{State: Masters, Goal: Even, Passes: passes, terms: terms, clusters: passes > clusterings}
}

// fennel returns α·γ·load^(γ−1), load over part p's share times K.
func (s *View) fennel(m, load float64, p int32) float64 {
	n, k := float64(s.total.Vertices), float64(s.Parts())
	return 1.5 * m * math.Sqrt(k) / (n * math.Sqrt(n)) * math.Sqrt(max(load, 0)/(k*s.Share(p)))
}
