// Package sample draws in-edges of vertices for training by mini-batches. What is sampled for a vertex is a function of
// a key, the hop and the vertex's ID, so that it is the same for every peer, in any order and with any other
// vertices.
//
// Hops are counted from the seeds outward, as in PyTorch Geometric: hop 0 draws in-edges of the seeds, hop 1 in-edges
// of the seeds and of what hop 0 found, and so on. DGL lists fan-outs the other way round.
//
// Letters in comments: N vertices, E edges, d the in-degree of a vertex, k the fan-out of a hop.
package sample

import (
	"errors"
	"fmt"
	"slices"
)

// Kinds are the samplers.
//
//	neighbour  k in-edges of each vertex, by itself (Hamilton, Ying and Leskovec, NeurIPS 2017)
//	labor      k in-edges of each vertex on average, taken by a number of the source that all vertices of a hop share,
//	           so that a hop finds fewer distinct sources (LABOR-0; Balin and Çatalyürek, NeurIPS 2023)
var Kinds = []string{"neighbour", "labor"}

// Config sets how in-edges are sampled.
type Config struct {
	Kind    string `json:"kind"`    // one of Kinds
	Fanouts []int  `json:"fanouts"` // [hops] in-edges of a vertex, from the seeds outward (−1 = all)
}

// MaxFanout is the largest fan-out of a hop.
const MaxFanout = 1 << 20

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(!slices.Contains(Kinds, c.Kind), "sampler must be one of %q (got %q)", Kinds, c.Kind)
	fault(len(c.Fanouts) == 0, "fanouts must have a number for each layer (got none)")
	for _, k := range c.Fanouts {
		fault(k != -1 && (k < 1 || k > MaxFanout), "fanouts must be -1 (all) or from 1 to %d (got %d)", MaxFanout, k)
	}
	return errors.Join(errs...)
}
