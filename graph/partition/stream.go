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
	return s.part((float64(s.Before(v)) + 0.5*float64(len(s.Sources(v)))) / float64(s.total.Edges))
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

// LDG is linear deterministic greedy (Stanton and Kliot, KDD 2012), passed over the nodes that often (restreamed:
// Nishimura and Ugander, KDD 2013): the part p of the highest |N(v) in p|·(1 − |V_p|/C_p), C_p what it may hold.
func LDG(passes int) Rules {
	r := Rules{State: Masters, Goal: even, Passes: passes}
	r.Vertex = func(v int32, s *View) int32 {
		near := s.Near(v)
		return s.Best(v, func(p int32) float64 {
			return float64(near[p]) * (1 - float64(s.Load(p).Vertices)/float64(s.Most(p)))
		})
	}
	return r
}

// Fennel (Tsourakakis et al., WSDM 2014), passed over the nodes that often (restreamed: Nishimura and Ugander, KDD
// 2013): the part p of the highest |N(v) in p| − α·γ·|V_p|^(γ−1), γ = 3/2 and α = m·K^(γ−1)/n^γ for n nodes and m
// undirected edges. Of unlike parts |V_p| is over the part's share times K.
func Fennel(passes int) Rules {
	r := Rules{State: Masters, Goal: even, Passes: passes}
	r.Vertex = func(v int32, s *View) int32 {
		near, k := s.Near(v), float64(s.Parts())
		scale := fennelScale(s, float64(s.Total().Edges)/2)
		return s.Best(v, func(p int32) float64 {
			return float64(near[p]) - scale*math.Sqrt(float64(s.Load(p).Vertices)/(k*s.Share(p)))
		})
	}
	return r
}

// fennelScale returns α·γ.
func fennelScale(s *View, m float64) float64 {
	n := float64(s.Total().Vertices)
	return 1.5 * m * math.Sqrt(float64(s.Parts())) / (n * math.Sqrt(n))
}

// FEC is CuSP's Fennel edge cut (FennelEB and Source): a node of more than 1000 edges stays with its reader, whose run
// of nodes is that of ContiguousEdges; any other goes to the part p of the highest |N(v) in p| − α·γ·L_p^(γ−1),
// L_p = (|V_p| + (n/m)·|E_p|)/2, γ and α as in Fennel but m the stored edges.
func FEC() Rules {
	r := Rules{State: Masters, Goal: even}
	r.Vertex = func(v int32, s *View) int32 {
		if len(s.Sources(v)) > hub {
			return contiguousEdges(v, s)
		}
		near, k, m := s.Near(v), float64(s.Parts()), float64(max(s.Total().Edges, 1))
		scale, perEdge := fennelScale(s, m), float64(s.Total().Vertices)/m
		return s.Best(v, func(p int32) float64 {
			load := (float64(s.Load(p).Vertices) + perEdge*float64(s.Load(p).Edges)) / 2
			return float64(near[p]) - scale*math.Sqrt(load/(k*s.Share(p)))
		})
	}
	return r
}

const hub = 1000 // edges
