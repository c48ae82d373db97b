package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// SitesConfig describes the multi-site graph that Sites makes. A zero field means the default in its
// comment; with all defaults a two-layer GCN reaches about 88 % on the pooled graph and 66 %
// if each site learns without the others, and a model of only the features 67 % (testdata/sites.py measures
// it).
type SitesConfig struct {
	Nodes   int // N, at least 10·Sites; 0: 8000
	Sites   int // K, at least 1; 0: 4
	Classes int // C, at least 2; 0: 7
	Columns int // F, words of the vocabulary, at least Classes; 0: 600
	// desired mean degree, above 0 and below Nodes/4 (0 = 10); repeated edges are dropped, so it is a little lower
	Degree float64
	Words  float64 // mean number of words a node, above 0; 0: 20
	Train  float64 // share of a site's nodes whose label is for training, in (0, 1); 0: 0.03
	Val    float64 // share for validation, in (0, 1), Train+Val < 1; all others are for testing; 0: 0.05
}

// What the graphs of Sites have in common.
const (
	tail      = 2.5  // exponent of the degree distribution's tail
	homophily = 0.58 // share of edges that join nodes of one class
	crossing  = 0.30 // share of edges that join two sites
	skew      = 0.7  // how far the sites' class mixes are apart: standard deviation of log shares
	signal    = 0.38 // share of words that come from the node's class
)

func (c SitesConfig) withDefaults() SitesConfig {
	c.Nodes = cmp.Or(c.Nodes, 8000)
	c.Sites = cmp.Or(c.Sites, 4)
	c.Classes = cmp.Or(c.Classes, 7)
	c.Columns = cmp.Or(c.Columns, 600)
	c.Degree = cmp.Or(c.Degree, 10)
	c.Words = cmp.Or(c.Words, 20)
	c.Train = cmp.Or(c.Train, 0.03)
	c.Val = cmp.Or(c.Val, 0.05)
	return c
}

// Validate reports every field that is out of its bounds, or nil.
func (c SitesConfig) Validate() error {
	c = c.withDefaults()
	var faults []error
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("sites: %s must be %s (got %v)", field, want, value))
		}
	}
	check(c.Sites >= 1 && c.Sites <= 1<<24, "Sites", c.Sites, "1 to 2²⁴")
	check(c.Nodes >= 10*max(c.Sites, 1) && c.Nodes <= 1<<28, "Nodes", c.Nodes, "at least 10 a site, at most 2²⁸")
	check(c.Classes >= 2 && c.Classes <= MaxClasses, "Classes", c.Classes, "at least 2")
	check(c.Columns >= c.Classes && c.Columns <= maxColumns, "Columns", c.Columns, "at least one a class")
	check(c.Degree > 0 && c.Degree < float64(c.Nodes)/4, "Degree", c.Degree, "above 0, below a quarter of Nodes")
	check(c.Words > 0 && c.Words < float64(c.Columns), "Words", c.Words, "above 0, below Columns")
	check(c.Train > 0 && c.Val > 0 && c.Train+c.Val < 1, "Train, Val", []float64{c.Train, c.Val},
		"above 0, their sum below 1")
	return errors.Join(faults...)
}

// Sites makes a graph of K sites whose nodes have classes, words and friends: the same key gives the same graph
// everywhere. It is a degree-corrected block model (Karrer and Newman, Phys. Rev. E 83, 2011) whose blocks are a site's
// classes: an end of an edge is sampled by weights with a Pareto tail, the other among the nodes of the same or of
// other classes and sites. Sites differ in size (share of site s ∝ 1/√(s+1)) and class mix (log-normal shares, about
// even over all sites together). A node's 0/1 features are the words of a short text, some from its class's topic and
// the others from everybody's words.
//
// It panics unless cfg.Validate() is nil.
func Sites(cfg SitesConfig, key rng.Key) *graph.Graph {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	w := world{SitesConfig: cfg.withDefaults(), key: key.FoldString("sites")}
	w.placeNodes()
	src, dst := w.drawEdges()
	adj, err := graph.FromEdges(w.Nodes, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{
		Name:   "sites",
		Adj:    adj,
		X:      graph.Features{Sparse: w.drawWords()},
		Labels: graph.Labels{Classes: w.Classes, Class: w.class},
		Split:  w.drawSplit(),
		Site:   w.site,
	}
	for s := range w.SitesConfig.Sites {
		g.Sites = append(g.Sites, "site-"+strconv.Itoa(s))
	}
	return g
}

// world is a graph in the making. Weights are integers, so that machines whose logarithms differ in the last bit still
// sample the same graph.
type world struct {
	SitesConfig
	key         rng.Key
	start       []int // site s has the nodes [start[s], start[s+1])
	site, class []int32
	weight      []uint64 // expected degree of a node, times a constant
}

// unit is the weight 1 as an integer.
const unit = 1 << 20

// urn samples an index with probability in proportion to its weight.
type urn []uint64 // running sums

// newUrn returns an urn of n indices with the given weights.
func newUrn(n int, weight func(int) uint64) urn {
	u, sum := make(urn, n), uint64(0)
	for i := range u {
		sum += weight(i)
		u[i] = sum
	}
	return u
}

// mass returns the sum of the weights.
func (u urn) mass() uint64 {
	if len(u) == 0 {
		return 0
	}
	return u[len(u)-1]
}

// draw returns the index for the uniform value x; the mass must not be 0.
func (u urn) draw(x uint64) int {
	at, _ := slices.BinarySearch(u, x%u.mass()+1)
	return at
}

// placeNodes gives every node a site, a class and a weight.
func (w *world) placeNodes() {
	k := w.SitesConfig.Sites
	sizes := newUrn(k, func(s int) uint64 { return uint64(unit / math.Sqrt(float64(s+1))) })
	w.start = make([]int, k+1)
	for s := range k {
		w.start[s+1] = int(uint64(w.Nodes) * sizes[s] / sizes.mass())
	}
	w.site, w.class, w.weight = make([]int32, w.Nodes), make([]int32, w.Nodes), make([]uint64, w.Nodes)
	mix, class, weight := w.key.FoldString("mix"), w.key.FoldString("class"), w.key.FoldString("weight")
	liking := func(s, c int) float64 { return math.Exp(skew * mix.Fold(uint64(s)).Normal(uint64(c))) }
	total := make([]float64, w.Classes) // balances the classes over all sites: none is rare everywhere
	for c := range total {
		for s := range k {
			total[c] += float64(float64(w.start[s+1]-w.start[s]) * liking(s, c))
		}
	}
	for s := range k {
		classes := newUrn(w.Classes, func(c int) uint64 {
			return uint64(unit*float64(w.Nodes)*liking(s, c)/total[c]) + 1
		})
		for i := w.start[s]; i < w.start[s+1]; i++ {
			w.site[i], w.class[i] = int32(s), int32(classes.draw(class.Uint64(uint64(i))))
		}
	}
	for i := range w.weight {
		pareto := math.Pow(1-weight.Float64(uint64(i)), -1/(tail-1))
		w.weight[i] = uint64(1024 * min(pareto, math.Sqrt(float64(w.Nodes))))
	}
}

// drawEdges returns the ends of about N·Degree/2 edges; some repeat.
func (w *world) drawEdges() (src, dst []int32) {
	blocks := w.SitesConfig.Sites * w.Classes
	members := make([][]int32, blocks)
	for i, c := range w.class {
		b := int(w.site[i])*w.Classes + int(c)
		members[b] = append(members[b], int32(i))
	}
	inBlock := make([]urn, blocks)
	for b, nodes := range members {
		inBlock[b] = newUrn(len(nodes), func(k int) uint64 { return w.weight[nodes[k]] })
	}
	all := newUrn(w.Nodes, func(i int) uint64 { return w.weight[i] })
	key := w.key.FoldString("edge")
	for e := range int(float64(w.Nodes) * w.Degree / 2) {
		k := key.Fold(uint64(e))
		i := int32(all.draw(k.Uint64(0)))
		cross, alike := k.Float64(1) < crossing, k.Float64(2) < homophily
		block := newUrn(blocks, func(b int) uint64 {
			if (int32(b/w.Classes) != w.site[i]) != cross || (int32(b%w.Classes) == w.class[i]) != alike {
				return 0
			}
			return inBlock[b].mass()
		})
		if block.mass() == 0 { // one site only, or no such class elsewhere
			continue
		}
		b := block.draw(k.Uint64(3))
		src, dst = append(src, i), append(dst, members[b][inBlock[b].draw(k.Uint64(4))])
	}
	return src, dst
}

// drawWords returns the N×F bag of words. A class's topic is a fifth of the vocabulary, so topics overlap; the other
// words follow a power law, as in texts.
func (w *world) drawWords() *mat.Sparse {
	topics := make([][]int32, w.Classes)
	for c := range topics {
		topics[c] = w.key.FoldString("topic").Fold(uint64(c)).Perm(w.Columns)[:max(1, w.Columns/5)]
	}
	common := w.key.FoldString("common").Perm(w.Columns)
	x := &mat.Sparse{Rows: w.Nodes, Cols: w.Columns, RowPtr: make([]int64, w.Nodes+1)}
	key := w.key.FoldString("words")
	for i := range w.Nodes {
		k := key.Fold(uint64(i))
		row := make([]int32, 1+int(w.Words*(0.5+k.Float64(0))))
		for t := range row {
			u, topic := k.Float64(uint64(3*t+2)), topics[w.class[i]]
			if k.Float64(uint64(3*t+1)) < signal {
				row[t] = topic[int(u*float64(len(topic)))]
			} else {
				row[t] = common[int(u*u*float64(w.Columns))]
			}
		}
		slices.Sort(row)
		x.Col = append(x.Col, slices.Compact(row)...)
		x.RowPtr[i+1] = int64(len(x.Col))
	}
	x.Val = make([]float32, len(x.Col))
	for k := range x.Val {
		x.Val[k] = 1
	}
	return x
}

// drawSplit assigns the shares Train and Val of every site's nodes, at least one node each.
func (w *world) drawSplit() []graph.Split {
	split := make([]graph.Split, w.Nodes)
	for s := range w.SitesConfig.Sites {
		n := w.start[s+1] - w.start[s]
		train := max(1, int(math.Round(w.Train*float64(n))))
		val := max(1, int(math.Round(w.Val*float64(n))))
		for k, i := range w.key.FoldString("split").Fold(uint64(s)).Perm(n) {
			switch node := w.start[s] + int(i); {
			case k < train:
				split[node] = graph.Train
			case k < train+val:
				split[node] = graph.Val
			default:
				split[node] = graph.Test
			}
		}
	}
	return split
}
