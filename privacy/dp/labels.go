package dp

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// Labels releases sums over the nodes of all peers such that nobody who sees the sums, and whatever follows from them,
// can tell which class a node has (label differential privacy: Chaudhuri and Hsu, COLT 2011). The unit is the label of
// one node: two data sets are neighbours if one node has another class. Features, edges, and which nodes have a label
// are the same in both, so only what labels enter needs noise.
//
// A release is a sum of whole numbers over all peers. A node with row v adds v to the sum of its class: with another
// class it takes v from one sum and adds it to another one, a change of length √2·|v|. Rows have a length of at most bound
// steps of a grid, so that the sensitivity is √2·bound, and exactly so, as each row is rounded by itself (TestLabelSensitivity
// tries all). M counts of right predictions change by at most 1 each, by √M together; one counts RightStep, which makes this
// at most √2·bound, too.
//
// The noise comes from all peers (Dwork et al., EUROCRYPT 2006). Of K peers C may pool what they know: each adds discrete
// Gaussian noise of variance σ²/(K − C), so that what the others added has a variance of at least σ². The sum of discrete
// Gaussians with these deviations is one, up to a factor that is closer to 1 than the one in deviationSquared, for the same
// reason (Kairouz, Liu and Steinke, ICML 2021, and Peikert, CRYPTO 2010, theorem 3.1). This needs sums of which nobody sees
// a part (package secagg); where parts are seen, each peer must add all of the noise: C is K − 1.
//
// Each node is in one split: what is released of training, validation and test nodes tells of different labels, and does not
// add up.
//
// What a name stood for stays, as of Edges.
type Labels struct {
	// Spend is as that of Edges.
	Spend func(Statement) error

	guarantee Guarantee
	within    Gaussian // that it allows
	planned   []Release
	peers     int
	sigma     uint64 // of this peer's noise
	secret    [32]byte
	done      map[string][]int64 // by Release.key
}

// Release is one sum that a run releases.
type Release struct {
	Split string  // of whose labels it tells
	Name  string  // unlike that of the others of its split
	Share float64 // of what the run spends of that split, as variance: those of all releases of a split add up to 1 at most
}

func (r Release) key() string { return r.Split + "/" + r.Name }

// labelSigma is σ, in steps, and labelVariance σ² as the accountant takes it: as deviationSquared.
const (
	labelSigma    = 1 << 14
	labelVariance = labelSigma*labelSigma - smoothing*smoothing
)

// NewLabels returns the mechanism of one of so many peers, of which so many may pool what they know, in a run that keeps g.
// secret is as that of NewEdges. Plan must come before the first release.
func NewLabels(g Guarantee, peers, colluding int, secret [32]byte) (*Labels, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if peers < 1 || colluding < 0 || colluding >= peers {
		return nil, fmt.Errorf("of %d peers at least 0, and not all, may collude (got %d)", peers, colluding)
	}
	return &Labels{guarantee: g, within: Within(g), peers: peers, sigma: uint64(math.Ceil(labelSigma / math.Sqrt(float64(peers-colluding)))),
		secret: secret, done: map[string][]int64{}}, nil
}

// Plan says which releases the run makes: these, and no others.
func (l *Labels) Plan(planned []Release) error {
	shares := map[string]float64{}
	for _, r := range planned {
		if shares[r.Split] += r.Share; !(r.Share > 0) || shares[r.Split] > 1+1e-9 {
			return fmt.Errorf("the releases of %s labels must have shares above 0 that add up to 1 at most (got %g)", r.Split, shares[r.Split])
		}
		if bound := l.bound(r); bound < leastBound {
			return fmt.Errorf("label_epsilon is too small for %d sums (got %g with delta %g): the noise would be %.0f times as long as a row",
				len(planned), l.guarantee.Epsilon, l.guarantee.Delta, labelSigma/float64(bound))
		}
	}
	l.planned = planned
	return nil
}

// bound is the length of a row of r, in steps.
func (l *Labels) bound(r Release) int64 {
	return int64(float64(l.within) * math.Sqrt(r.Share*labelVariance/2))
}

// Spent bounds what a run tells of a label, whose node is in one split: all that the guarantee allows.
func (l *Labels) Spent() Gaussian { return l.within }

// Step is what one step of the grid of Sums is, of rows that are at most so long.
func (l *Labels) Step(r Release, longest float64) float64 { return longest / float64(l.bound(r)) }

// Deviation is that of the noise in a sum over all peers, in steps of its grid, if each adds as much as this one.
func (l *Labels) Deviation() float64 { return float64(l.sigma) * math.Sqrt(float64(l.peers)) }

// Most bounds the magnitude of each number that a peer adds to a sum over so many nodes, but for a probability of e^−1000.
func (l *Labels) Most(r Release, nodes int64) int64 { return nodes*l.RightStep(r, 1) + 50*labelSigma }

// Sums returns what this peer adds to the sums over each class of its rows x, D×C, row by row: whole steps of the grid, with
// noise. labels has the class of each row. A row that is longer than longest is shortened. Each row has the number constant
// behind its last one, whose sums are those of D+1; 0: it has not.
func (l *Labels) Sums(r Release, x graph.Features, constant float32, labels []int32, classes int, longest float64) ([]int64, error) {
	return l.release(r, func() []int64 {
		d := x.Cols()
		if constant != 0 {
			d++
		}
		sums, all, row := make([]int64, d*classes), []float32(nil), []int64(nil)
		for i, class := range labels {
			var col []int32
			var val []float32
			if x.Sparse != nil {
				col, val = x.Sparse.Row(i)
			} else {
				val = x.Dense.Row(i)
			}
			if all = append(all[:0], val...); constant != 0 {
				all = append(all, constant)
			}
			row = grid(row[:0], all, longest, l.bound(r))
			for k, v := range row {
				j := k
				if k == len(val) {
					j = d - 1
				} else if col != nil {
					j = int(col[k])
				}
				sums[j*classes+int(class)] += v
			}
		}
		return sums
	})
}

// grid appends to steps those of a row whose length is at most bound steps: zeros, if a number of it is not finite.
func grid(steps []int64, row []float32, longest float64, bound int64) []int64 {
	square := 0.0
	for _, v := range row {
		square += float64(v) * float64(v)
	}
	scale := float64(bound) / max(longest, math.Sqrt(square))
	left := bound * bound
	for _, v := range row {
		n := int64(0)
		if square-square == 0 {
			n = int64(math.Trunc(float64(v) * scale))
		}
		if left -= n * n; left < 0 { // only by the rounding of square
			left, n = left+n*n, 0
		}
		steps = append(steps, n)
	}
	return steps
}

// RightStep is what one right prediction adds in Right, where that many candidates predict.
func (l *Labels) RightStep(r Release, candidates int) int64 {
	return int64(float64(l.bound(r)) * math.Sqrt(2/float64(candidates)) * (1 - 1e-12))
}

// mostCandidates is how many a release counts for at most: of more a count would add nothing.
const mostCandidates = 2 * leastBound

// Right returns what this peer adds to the counts of nodes that each of some candidates predicts right, of which right are its
// own: multiples of RightStep, with noise.
func (l *Labels) Right(r Release, right []int64) ([]int64, error) {
	if len(right) > mostCandidates {
		return nil, fmt.Errorf("a release counts for at most %d candidates (got %d)", mostCandidates, len(right))
	}
	return l.release(r, func() []int64 {
		sums := slices.Clone(right)
		for k := range sums {
			sums[k] *= l.RightStep(r, len(right))
		}
		return sums
	})
}

// release adds noise to sums, once.
func (l *Labels) release(r Release, sums func() []int64) ([]int64, error) {
	key := r.key()
	if done, ok := l.done[key]; ok {
		return slices.Clone(done), nil
	}
	if !slices.Contains(l.planned, r) {
		return nil, fmt.Errorf("a run must make the releases that it has planned, and no others (got %+v)", r)
	}
	if len(l.done) == 0 && l.Spend != nil {
		if err := l.Spend(l.Statement()); err != nil {
			return nil, err
		}
	}
	out := sums()
	source := newNoise(sha256.Sum256(append(l.secret[:len(l.secret):len(l.secret)], key...)), l.sigma)
	for k := range out {
		out[k] += source.draw()
	}
	l.done[key] = out
	return slices.Clone(out), nil
}

// Releases returns all releases by split and name, for a checkpoint.
func (l *Labels) Releases() map[string][]int64 { return l.done }

// Restore takes up a release from a checkpoint. One that this process has made stays.
func (l *Labels) Restore(key string, sums []int64) {
	if _, ok := l.done[key]; !ok {
		l.done[key] = sums
	}
}

// Statement is as that of Edges, of which Noise is that of a release with all of a split's share.
func (l *Labels) Statement() Statement {
	return Statement{Unit: "label", Epsilon: l.guarantee.Epsilon, Delta: l.guarantee.Delta,
		Mechanism: "sums over the nodes of each class with discrete Gaussian noise", Releases: len(l.planned),
		Noise: math.Sqrt2 / float64(l.Spent()), Mu: float64(l.Spent())}
}
