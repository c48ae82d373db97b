package eval

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Hits are the ranks up to which links are counted.
var Hits = [4]int{1, 3, 10, 50}

// Ranking counts how known links rank among random pairs, as sums that add up over peers exactly.
type Ranking struct {
	auc   Accumulator // of each link and its first random pair
	links int64
	hits  [len(Hits)]int64
	ranks float64 // sum of 1/rank
	loss  float64
	pairs []float32 // scores for auc: link, random pair, link, random pair, …
}

// Ranks are the figures of links.
type Ranks struct {
	Links int64 `json:"links"` // how many were ranked
	// mean of 1/rank; the rank is 1 + the random pairs with a higher score + half of the pairs with the same
	MRR  float64         `json:"mrr"`
	Hits map[int]float64 `json:"hits"` // by K, of 1, 3, 10 and 50: share of ranks of at most K
	AUC  float64         `json:"auc"`  // of links against one random pair each
	Loss float64         `json:"loss"` // mean binary cross-entropy
}

// RankedLinks is where links that were held out rank, as a process measured it.
type RankedLinks struct {
	Name string `json:"name,omitempty"` // of a relation or a site
	Val  *Ranks `json:"val"`            // (nil = there are none)
	Test *Ranks `json:"test"`
	// the own links of a site, ranked by what it knows of neighbours
	Common     *Ranks        `json:"common_neighbours,omitempty"`
	AdamicAdar *Ranks        `json:"adamic_adar,omitempty"`
	Relations  []RankedLinks `json:"relations,omitempty"` // of all sites, if there are several relations
	Sites      []RankedLinks `json:"sites,omitempty"`     // of this process, by rank: of their nodes' links
}

// NewRanking returns a Ranking of no link. bins is the resolution of the area under the curve.
func NewRanking(bins int) *Ranking {
	return &Ranking{auc: NewAccumulator("auc", graph.Labels{Classes: 2, Class: []int32{}}, bins)}
}

// Add counts a link with the given score among the scores of random pairs. Without pairs it counts nothing.
func (r *Ranking) Add(score float32, drawn []float32) {
	if len(drawn) == 0 {
		return
	}
	rank := 1.0
	for _, s := range drawn {
		switch {
		case s > score || s != s || score != score: // what is not a number never ranks first
			rank++
		case s == score:
			rank += 0.5
		}
	}
	r.links++
	r.ranks += 1 / rank
	for k, most := range Hits {
		if rank <= float64(most) {
			r.hits[k]++
		}
	}
	r.pairs = append(r.pairs, score, drawn[0])
}

// Lost adds a loss summed over links.
func (r *Ranking) Lost(loss float64) { r.loss += loss }

// counted is how many numbers come before the counts of the area under the curve.
const counted = 1 + len(Hits) + 2*RealLen

// Vector returns what r has counted as whole numbers.
func (r *Ranking) Vector() []int64 {
	v := make([]int64, counted+r.auc.Size())
	v[0] = r.links
	copy(v[1:], r.hits[:])
	PutReal(v[1+len(Hits):], r.ranks)
	PutReal(v[1+len(Hits)+RealLen:], r.loss)
	scores, labels := mat.New(len(r.pairs), 2), graph.Labels{Classes: 2, Class: make([]int32, len(r.pairs))}
	for i, s := range r.pairs {
		scores.Set(i, 1, s)
		labels.Class[i] = int32(1 - i%2)
	}
	r.auc.Write(v[counted:], 0, float64(len(r.pairs)), scores, labels)
	return v
}

// Read returns the metrics of a sum of Vectors; they are NaN if no link was counted. A sum that no Vectors give is an
// error.
func (r *Ranking) Read(v []int64) (Ranks, error) {
	nan := math.NaN()
	n := v[0]
	if n == 0 {
		return Ranks{MRR: nan, AUC: nan, Loss: nan}, nil
	}
	out := Ranks{Links: n, MRR: Real(v[1+len(Hits):]) / float64(n), Loss: Real(v[1+len(Hits)+RealLen:]) / float64(n),
		Hits: make(map[int]float64)}
	last := int64(0)
	for k := range Hits {
		if h := v[1+k]; h < last || h > n {
			return Ranks{}, fmt.Errorf("links of rank at most %d must be %d to %d (got %d)", Hits[k], last, n, h)
		}
		last = v[1+k]
		out.Hits[Hits[k]] = float64(last) / float64(n)
	}
	if !(out.MRR >= 0 && out.MRR <= 1) {
		return Ranks{}, fmt.Errorf("a mean reciprocal rank must be 0 to 1 (got %g)", out.MRR)
	}
	var err error
	out.AUC, _, _, err = r.auc.Read(v[counted:])
	return out, err
}

// Of(m) is metric m.
func (r Ranks) Of(m Metric) float64 {
	switch k := m.hits(); {
	case r.Links == 0:
		return math.NaN()
	case k > 0:
		return r.Hits[k]
	case m == "auc":
		return r.AUC
	}
	return r.MRR
}
