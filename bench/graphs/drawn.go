package graphs

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Unlike are the names of generated graphs that differ from the data sets, on which nothing was tuned: each has a seed.
var Unlike = []string{"drawn-dense", "drawn-text", "drawn-binary"}

// population is a graph in the making: its nodes have classes, sites and neighbours.
type population struct {
	key         rng.Key
	sites       []string
	class, site []int32
}

// DrawUnlike returns a graph of Unlike.
//
//   - drawn-dense: amounts in 8 dense columns, whose sizes tell three classes. A little more than half of the edges
//     join nodes of one class. No sites; a tenth of the nodes train.
//   - drawn-text: words of five topics at three sites, which share a third of their vocabularies. No edge joins two
//     sites. Each site labels 5 nodes of a class to train, and as many to validate.
//   - drawn-binary: 24 columns of zeros and ones, which tell little of four classes. Three quarters of the edges join a
//     class and the next. No sites; half of the nodes train.
func DrawUnlike(name string, seed uint64) (*graph.Graph, error) {
	p := &population{key: rng.New(seed).FoldString(name)}
	switch name {
	case "drawn-dense":
		p.people(2400, 3, 1)
		g, err := p.graph(name, 8, func(class, draw int32) int32 {
			if draw < 550 {
				return class
			}
			return (class + 1 + draw%2) % 3
		})
		if err == nil {
			g.X.Dense, g.Split = p.amounts(8), p.shares(0.1, 0.1)
		}
		return g, err
	case "drawn-text":
		p.people(2400, 5, 3)
		g, err := p.graph(name, 5, func(class, draw int32) int32 {
			if draw < 500 {
				return class
			}
			return draw % 5
		})
		if err == nil {
			g.X.Sparse, g.Split = p.words(1200, 12), p.fewOfEach(5)
		}
		return g, err
	case "drawn-binary":
		p.people(2400, 4, 1)
		g, err := p.graph(name, 7, func(class, draw int32) int32 {
			if draw < 750 {
				return (class + 1) % 4
			}
			return draw % 4
		})
		if err == nil {
			g.X.Dense, g.Split = p.bits(24), p.shares(0.5, 0.25)
		}
		return g, err
	}
	return nil, fmt.Errorf("drawn graph must be one of %q (got %q)", Unlike, name)
}

// people samples class and site of n nodes.
func (p *population) people(n, classes, sites int) {
	key := p.key.FoldString("people")
	for i := range n {
		p.class = append(p.class, int32(key.Float64(uint64(2*i))*float64(classes)))
		p.site = append(p.site, int32(key.Float64(uint64(2*i+1))*float64(sites)))
	}
	for s := range sites {
		p.sites = append(p.sites, fmt.Sprintf("site %d", s))
	}
}

// graph samples `degree` edges for each node, within its site. The other end is of the class that other returns, given
// a draw that is uniform over 0 to 999.
func (p *population) graph(name string, degree int, other func(class, draw int32) int32) (*graph.Graph, error) {
	n, classes := len(p.class), slices.Max(p.class)+1
	src, dst := p.edges("edges", degree, other)
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	g := &graph.Graph{Name: name, Adj: adj, Labels: graph.Labels{Classes: int(classes), Class: p.class}}
	if len(p.sites) > 1 {
		g.Site, g.Sites = p.site, p.sites
	}
	return g, err
}

// edges samples `degree` edges for each node; what names them.
func (p *population) edges(what string, degree int, other func(class, draw int32) int32) (src, dst []int32) {
	of := map[[2]int32][]int32{}
	for i := range p.class {
		at := [2]int32{p.site[i], p.class[i]}
		of[at] = append(of[at], int32(i))
	}
	for i := range p.class {
		key := p.key.FoldString(what).Fold(uint64(i))
		for k := range degree {
			c := other(p.class[i], int32(1000*key.Float64(uint64(2*k))))
			near := of[[2]int32{p.site[i], c}]
			src, dst = append(src, int32(i)), append(dst, near[int(key.Float64(uint64(2*k+1))*float64(len(near)))])
		}
	}
	return src, dst
}

// amounts samples columns of positive numbers. The first three differ between classes, by factors; the others, of very
// different units, carry no information.
func (p *population) amounts(columns int) mat.Dense {
	x := mat.New(len(p.class), columns)
	for i := range x.Rows {
		key := p.key.FoldString("amounts").Fold(uint64(i))
		for j := range columns {
			size := key.Normal(uint64(j)) + float64(j)
			if j < 3 && int32(j) == p.class[i] {
				size += 1.5
			}
			x.Set(i, j, float32(math.Exp(size)))
		}
	}
	return x
}

// words samples the words of short texts. A quarter of them have the class's topic, and each is from the vocabulary of
// the node's site. All sites share a third of their vocabularies.
func (p *population) words(columns, count int) *mat.Sparse {
	x := &mat.Sparse{Rows: len(p.class), Cols: columns, RowPtr: []int64{0}}
	shared := columns / (2*len(p.sites) + 1) // a third of what one site knows
	own := (columns - shared) / len(p.sites)
	for i := range x.Rows {
		key := p.key.FoldString("words").Fold(uint64(i))
		var row []int32
		for k := range count {
			u := func(d int) float64 { return key.Float64(uint64(4*k + d)) }
			from, size := 0, shared
			if u(0) > 1.0/3 {
				from, size = shared+own*int(p.site[i]), own
			}
			if word := int(u(1) * float64(size)); u(2) < 0.25 { // words of a topic are every fifth one
				row = append(row, int32(from+(word/5*5+int(p.class[i]))%size))
			} else {
				row = append(row, int32(from+word))
			}
		}
		slices.Sort(row)
		x.Col = append(x.Col, slices.Compact(row)...)
		x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
	}
	for range x.Col {
		x.Val = append(x.Val, 1)
	}
	return x
}

// bits samples columns of zeros and ones: a fourth are ones, in a class's own columns two fifths.
func (p *population) bits(columns int) mat.Dense {
	x := mat.New(len(p.class), columns)
	for i := range x.Rows {
		key := p.key.FoldString("bits").Fold(uint64(i))
		for j := range columns {
			chance := 0.25
			if j%int(slices.Max(p.class)+1) == int(p.class[i]) {
				chance = 0.4
			}
			if key.Float64(uint64(j)) < chance {
				x.Set(i, j, 1)
			}
		}
	}
	return x
}

// shares samples which nodes train and validate, as these shares of all; the others test.
func (p *population) shares(train, val float64) []graph.Split {
	split := make([]graph.Split, len(p.class))
	for k, i := range p.key.FoldString("split").Perm(len(split)) {
		switch at := float64(k) / float64(len(split)); {
		case at < train:
			split[i] = graph.Train
		case at < train+val:
			split[i] = graph.Val
		default:
			split[i] = graph.Test
		}
	}
	return split
}

// fewOfEach samples n nodes of each class and site to train, and as many to validate; the others test.
func (p *population) fewOfEach(n int) []graph.Split {
	split, drawn := make([]graph.Split, len(p.class)), map[[2]int32]int{}
	for _, i := range p.key.FoldString("split").Perm(len(split)) {
		at := [2]int32{p.site[i], p.class[i]}
		split[i] = graph.Test
		if drawn[at] < n {
			split[i] = graph.Train
		} else if drawn[at] < 2*n {
			split[i] = graph.Val
		}
		drawn[at]++
	}
	return split
}
