package vertexcut

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// edgeStream gives edges to parts one after another, an edge and its reverse at once where all
// edges have one.
type edgeStream struct {
	*placing
	src    partition.Source
	both   bool
	copies int64 // stored edges of an edge: 2 where both
}

// newEdgeStream reads the edges once, and calls met for each, if given.
func newEdgeStream(src partition.Source, w *placing, met func(u, v int32)) (*edgeStream, error) {
	// Edges have all their reverses where those from lower nodes and those from higher ones,
	// turned, are the same set: their keyed hashes add up to the same. By chance others' do one
	// time in 2⁶⁴.
	key, sum := rng.New(0).FoldString("reverse edges"), uint64(0)
	err := src.Runs(true, func(r *partition.Run) error {
		for i := range r.N() {
			v := r.First + int32(i)
			for _, u := range r.Sources(i) {
				switch {
				case u > v:
					sum += key.Uint64(uint64(u)<<32 | uint64(v))
				case u < v:
					sum -= key.Uint64(uint64(v)<<32 | uint64(u))
				}
				if met != nil {
					met(u, v)
				}
			}
		}
		return nil
	})
	s := &edgeStream{placing: w, src: src, both: sum == 0, copies: 1}
	if s.both {
		s.copies = 2
	}
	return s, err
}

// edges calls f for each edge in the order of destinations, one that has its reverse at the lower
// of its ends.
func (s *edgeStream) edges(f func(u, v int32)) error {
	return s.src.Runs(true, func(r *partition.Run) error {
		for i := range r.N() {
			v := r.First + int32(i)
			for _, u := range r.Sources(i) {
				if !s.both || u >= v {
					f(u, v)
				}
			}
		}
		return nil
	})
}

// give gives an edge, with its reverse, to part p.
func (s *edgeStream) give(u, v, p int32) {
	s.put(u, v, p)
	if s.both && u != v {
		s.put(v, u, p)
	}
}

// settle gives each node to the emptiest, of nodes, of the parts in which it lies, and nodes
// without edges to the emptiest of all.
func (s *edgeStream) settle() {
	owned := make([]int64, s.parts)
	for v := range s.owner {
		best := int32(-1)
		s.each(int32(v), func(p int32) {
			if best < 0 || owned[p] < owned[best] {
				best = p
			}
		})
		if best < 0 {
			best = emptiest(owned)
		}
		s.owner[v] = best
		owned[best]++
	}
}

func emptiest(load []int64) (best int32) {
	for p, x := range load {
		if x < load[best] {
			best = int32(p)
		}
	}
	return best
}

// hdrf streams edges to the part p of the highest g(u,p) + g(v,p) + λ·(max − |E_p|)/(ε + max −
// min), where g(u,p) is 2 − θ(u) if u lies in p already and θ(u) its share of the degrees of both
// ends as met so far: hubs are replicated first (Petroni et al., CIKM 2015; λ = 1, ε = 1).
type hdrf struct{}

// Needs implements Cut.
func (hdrf) Needs(parts int) (int, int64) { return 2, 4 + placeBytes(parts) }

// place implements Cut.
func (hdrf) place(src partition.Source, _ rng.Key, w *placing) error {
	s, err := newEdgeStream(src, w, nil)
	if err != nil {
		return err
	}
	met := s.owner // degrees so far; owners come when all edges are held
	err = s.edges(func(u, v int32) {
		met[u]++
		met[v]++
		share := float64(met[u]) / float64(met[u]+met[v])
		most, least := float64(slices.Max(s.held)), float64(slices.Min(s.held))
		best, top := int32(0), -1.0
		for p := range int32(s.parts) {
			x := (most - float64(s.held[p])) / (1 + most - least)
			if s.has(u, p) {
				x += 2 - share
			}
			if s.has(v, p) {
				x += 1 + share
			}
			if x > top {
				best, top = p, x
			}
		}
		s.give(u, v, best)
	})
	if err != nil {
		return err
	}
	s.settle()
	return nil
}

// twoPhase is 2PS-L (Mayer, Orujzade and Jacobsen, ICDE 2022): nodes are clustered as their edges
// stream by, clusters dealt to parts by volume, edges within a part's clusters put there, and the
// others to the better of the parts of their two ends; no part holds over 1.05 times the mean.
type twoPhase struct{}

// Needs implements Cut.
func (twoPhase) Needs(parts int) (int, int64) { return 4, 24 + placeBytes(parts) }

// place implements Cut.
func (twoPhase) place(src partition.Source, key rng.Key, w *placing) error {
	degree := make([]int32, len(w.owner)) // directions apart
	s, err := newEdgeStream(src, w, func(u, v int32) { degree[u]++; degree[v]++ })
	if err != nil {
		return err
	}
	m := src.Size().Edges
	most := int64(math.Ceil(1.05 * float64(m) / float64(s.parts)))
	cluster := s.owner // owners come when all edges are held
	volume, err := s.clusters(cluster, degree, 2*m/int64(s.parts))
	if err != nil {
		return err
	}
	part := pack(volume, s.parts)
	room := func(p int32) bool { return s.held[p]+s.copies <= most }
	inner := make([]int64, s.parts) // edges held of those within a part's clusters: the first ones that are met
	err = s.edges(func(u, v int32) {
		if p := part[cluster[u]]; p == part[cluster[v]] && room(p) {
			s.give(u, v, p)
			inner[p]++
		}
	})
	if err != nil {
		return err
	}
	err = s.edges(func(u, v int32) {
		p, q := part[cluster[u]], part[cluster[v]]
		if p == q && inner[p] > 0 {
			inner[p]--
			return
		}
		share := float64(degree[u]) / float64(degree[u]+degree[v])
		a, b := float64(volume[cluster[u]]), float64(volume[cluster[v]])
		score := func(p int32) (x float64) {
			if s.has(u, p) {
				x += 2 - share
			}
			if s.has(v, p) {
				x += 1 + share
			}
			if part[cluster[u]] == p {
				x += a / (a + b)
			}
			if part[cluster[v]] == p {
				x += b / (a + b)
			}
			return x
		}
		if score(q) > score(p) {
			p, q = q, p
		}
		hub := u
		if degree[v] > degree[u] {
			hub = v
		}
		hashed := int32(key.Uint64(uint64(hub)) % uint64(s.parts))
		switch {
		case room(p):
		case room(q):
			p = q
		case room(hashed):
			p = hashed
		default:
			p = emptiest(s.held)
		}
		s.give(u, v, p)
	})
	if err != nil {
		return err
	}
	s.settle()
	return nil
}

// clusters fills in the cluster of each node and returns the volume, the sum of degrees, of each:
// of each edge the end whose cluster is smaller without it joins the other's, where that has room
// within most.
func (s *edgeStream) clusters(cluster, degree []int32, most int64) (volume []int64, err error) {
	volume = make([]int64, len(cluster))
	for v := range cluster {
		cluster[v], volume[v] = int32(v), int64(degree[v])
	}
	return volume, s.edges(func(u, v int32) {
		a, b := cluster[u], cluster[v]
		if a == b || volume[a] > most || volume[b] > most {
			return
		}
		if volume[a]-int64(degree[u]) > volume[b]-int64(degree[v]) {
			u, a, b = v, b, a
		}
		if d := int64(degree[u]); volume[b]+d <= most {
			volume[a], volume[b], cluster[u] = volume[a]-d, volume[b]+d, b
		}
	})
}

// pack returns a part for each cluster: the largest first, each into the emptiest.
func pack(volume []int64, parts int) []int32 {
	n := 0
	for _, x := range volume {
		if x > 0 {
			n++
		}
	}
	order := make([]int32, 0, n) // of those that have nodes with edges
	for k, x := range volume {
		if x > 0 {
			order = append(order, int32(k))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(min(max(volume[b]-volume[a], -1), 1)) })
	part, load := make([]int32, len(volume)), make([]int64, parts)
	for _, at := range order {
		p := emptiest(load)
		part[at] = p
		load[p] += volume[at]
	}
	return part
}
