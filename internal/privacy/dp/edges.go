package dp

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// PrivateEdges releases sums of neighbours' rows such that nobody who sees them can tell whether the graph
// has one undirected edge more or less (GAP: Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, USENIX
// Security 2023, over rows of class probabilities instead of features). The unit is an edge between
// two nodes, whatever its weight and however often a file lists it.
//
// Rows are integers on a grid and have a Euclidean length of at most bound steps (Bound). An edge
// changes the sums of its two ends by one such row each: the sensitivity is √2·bound. Every number of
// a sum gets discrete Gaussian noise of parameter sigma steps. Sums and noise are exact.
//
// A release is made once and kept under its name, also if a run begins a round again. Otherwise the difference of two
// releases with the same noise, or the mean of two with different noise, would reveal more than was accounted for.
type PrivateEdges struct {
	// Spend is called before the first release of a run (nil = not called). Its error prevents the release.
	Spend func(train.Privacy) error

	guarantee Guarantee
	releases  int
	bound     int64
	secret    [32]byte
	done      map[string]mat.Dense // releases by name
}

// leastBound is the length of a row, in steps of the grid, below which rounding takes much of it.
const leastBound = 16

// NewEdges returns the mechanism of a run that makes `releases` releases and keeps the guarantee g over all of them.
// The noise is computed from secret. It must come from crypto/rand, serve one run and stay with its owner: anyone with
// it can remove the noise.
func NewEdges(g Guarantee, releases int, secret [32]byte) (*PrivateEdges, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if releases < 1 {
		return nil, fmt.Errorf("releases must be at least 1 (got %d)", releases)
	}
	// As in Spent.
	bound := math.Floor(float64(Within(g)) * math.Sqrt(deviationSquared/(2*float64(releases))))
	if bound < leastBound {
		return nil, fmt.Errorf("epsilon is too small for %d sums of neighbours' rows (got %g with delta %g): "+
			"the noise would be %.0f times as long as a row", releases, g.Epsilon, g.Delta, sigma/bound)
	}
	return &PrivateEdges{guarantee: g, releases: releases, bound: int64(bound), secret: secret,
		done: map[string]mat.Dense{}}, nil
}

// Spent returns the privacy loss of all releases together; never more than the guarantee.
func (e *PrivateEdges) Spent() Gaussian {
	return Gaussian(float64(e.bound) * math.Sqrt(2*float64(e.releases)/deviationSquared))
}

// Bound makes each row one that a release takes: shortened to a length of 1 at most and rounded
// towards zero to whole steps of the grid, in which it is from then on. A row with a number that is
// not finite becomes zeros.
func (e *PrivateEdges) Bound(rows mat.Dense) {
	for i := range rows.Rows {
		row := rows.Row(i)
		square := 0.0
		for _, v := range row {
			square += float64(v) * float64(v)
		}
		if square-square != 0 {
			clear(row)
			continue
		}
		scale := float64(e.bound) / max(1, math.Sqrt(square))
		for k, v := range row {
			row[k] = float32(math.Trunc(float64(v) * scale))
		}
		for !e.takes(row) { // rounded a step too long
			for k, v := range row {
				row[k] -= float32(math.Copysign(min(1, math.Abs(float64(v))), float64(v)))
			}
		}
	}
}

// takes reports whether a row is what Bound makes of rows.
func (e *PrivateEdges) takes(row []float32) bool {
	square := int64(0)
	for _, v := range row {
		if !(math.Abs(float64(v)) <= float64(e.bound)) || v != float32(math.Trunc(float64(v))) {
			return false
		}
		square += int64(v) * int64(v)
	}
	return square <= e.bound*e.bound
}

// Release returns, for each destination of adj, the sum over the other nodes with an edge to it of
// src, which Bound has made, with noise; in units of a row of length 1. nodes are the global IDs of
// the destinations, which are the first sources. A source that is listed twice counts once.
//
// The caller may publish nothing else that it computed from these edges. If it keeps
// anything, it must store a release durably before it publishes it.
func (e *PrivateEdges) Release(name string, adj *graph.CSR, nodes []int64, src mat.Dense) (mat.Dense, error) {
	if sums, ok := e.done[name]; ok {
		return sums, nil
	}
	if len(e.done) == e.releases {
		return mat.Dense{}, fmt.Errorf("a run of %d releases must not make another (got %q)", e.releases, name)
	}
	for j := range src.Rows {
		if !e.takes(src.Row(j)) {
			return mat.Dense{}, &RowError{Row: j}
		}
	}
	if len(e.done) == 0 && e.Spend != nil {
		if err := e.Spend(e.Statement()); err != nil {
			return mat.Dense{}, err
		}
	}
	out, sum := mat.New(adj.NumDst, src.Cols), make([]int64, src.Cols)
	for i := range out.Rows {
		neighbours(sum, adj, i, src)
		noise := e.noise(name, nodes[i])
		for k, row := 0, out.Row(i); k < len(row); k++ {
			row[k] = float32(float64(sum[k]+noise.draw()) / float64(e.bound))
		}
	}
	e.done[name] = out
	return out, nil
}

// neighbours writes the sum over the other nodes with an edge to i, each of them once.
func neighbours(sum []int64, adj *graph.CSR, i int, src mat.Dense) {
	clear(sum)
	last := int32(-1)
	col, _ := adj.Row(i)
	for _, j := range col { // ascending
		if int(j) == i || j == last {
			continue
		}
		last = j
		for k, v := range src.Row(int(j)) {
			sum[k] += int64(v)
		}
	}
}

// RowError is the error of a row longer than a release accepts: its owner did not bound it.
type RowError struct{ Row int }

func (e *RowError) Error() string {
	return fmt.Sprintf("row %d must be whole numbers of a length that the plan's epsilon sets", e.Row)
}

// noise returns the source of the noise of one node in one release.
func (e *PrivateEdges) noise(name string, node int64) *noise {
	b := append(e.secret[:len(e.secret):len(e.secret)], name...)
	b = binary.LittleEndian.AppendUint64(b, uint64(node))
	return newNoise(sha256.Sum256(b), sigma)
}

// Releases returns all releases by name, for a checkpoint.
func (e *PrivateEdges) Releases() map[string]mat.Dense { return e.done }

// Restore takes up a release from a checkpoint. One that this process has made stays.
func (e *PrivateEdges) Restore(name string, sums mat.Dense) {
	if _, ok := e.done[name]; !ok {
		e.done[name] = sums
	}
}

// The units of what ledgers keep: all statements are of edges.
const (
	edgeUnit = "edge"
	runUnit  = "run"
)

// Statement returns the statement of this mechanism. Its ε is the guaranteed one: the releases spend all of it except
// rounding.
func (e *PrivateEdges) Statement() train.Privacy {
	return train.Privacy{Unit: edgeUnit, Epsilon: e.guarantee.Epsilon, Delta: e.guarantee.Delta,
		Mechanism: "sums over neighbours with discrete Gaussian noise", Releases: e.releases,
		Noise: sigma / float64(e.bound), Mu: float64(e.Spent())}
}
