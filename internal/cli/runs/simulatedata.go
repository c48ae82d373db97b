package runs

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// members is the data of a federation.
type members struct {
	sites, phones []*shard.Shard
	pooled        *graph.Graph     // all of it
	joined        *graph.Graph     // pooled with the edges between members that a data set has (nil = none)
	edges         *leaf.CrossEdges // these edges, as the sites know them (nil = nobody does)
}

// leastNodes is how many nodes each phone has at least, usualNodes how many one has of a data set on average.
const (
	leastNodes = 20
	usualNodes = 30
)

// generated returns phones that each have a graph of 20 to 40 nodes. Most nodes have one of the phone's three classes,
// out of 8. A node has 3 edges, 3 in 4 of them within its class, and 6 of 64 words, half of them among the class's 16.
// The given fraction of the nodes trains, and two thirds as many validate. Sites have ten times as many nodes.
func generated(sites, phones int, labelled float64, seed uint64) members {
	key := rng.New(seed).FoldString("phones")
	all := make([]*graph.Graph, sites+phones)
	for m := range all {
		times := 1
		if m < sites {
			times = 10
		}
		all[m] = generate(times, labelled, key.Fold(uint64(m)))
	}
	return gather(sites, all, together(all))
}

const (
	words     = 64
	classes   = 8
	ownWords  = 16
	eachWords = 6
	eachEdges = 3
)

func generate(times int, labelled float64, key rng.Key) *graph.Graph {
	n := times * (leastNodes + int(key.Uint64(0)%21))
	likes := key.Fold(1).Uint64(0)
	class, of := make([]int32, n), make([][]int32, classes)
	for i := range class {
		class[i] = int32(likes >> (3 * (key.Fold(2).Uint64(uint64(i)) % 3)) % classes)
		if key.Fold(3).Float64(uint64(i)) < 0.1 {
			class[i] = int32(key.Fold(4).Uint64(uint64(i)) % classes)
		}
		of[class[i]] = append(of[class[i]], int32(i))
	}
	var src, dst []int32
	x := &mat.Sparse{Rows: n, Cols: words, RowPtr: make([]int64, n+1)}
	split := make([]graph.Split, n)
	for i, c := range class {
		for k := range uint64(eachEdges) {
			u := uint64(i)*eachEdges + k
			j := int32(key.Fold(5).Uint64(u) % uint64(n))
			if near := of[c]; key.Fold(6).Float64(u) < 0.75 {
				j = near[key.Fold(5).Uint64(u)%uint64(len(near))]
			}
			if j != int32(i) {
				src, dst = append(src, int32(i)), append(dst, j)
			}
		}
		var has [words]bool
		for k := range uint64(eachWords) {
			u := uint64(i)*eachWords + k
			w := key.Fold(7).Uint64(u) % words
			if key.Fold(8).Float64(u) < 0.5 {
				w = (uint64(c)*words/classes + w%ownWords) % words
			}
			has[w] = true
		}
		for w, is := range has {
			if is {
				x.Col, x.Val = append(x.Col, int32(w)), append(x.Val, 1)
			}
		}
		x.RowPtr[i+1] = int64(len(x.Col))
		split[i] = splitOf(labelled, key.Fold(9).Float64(uint64(i)))
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err) // of the edges above
	}
	return &graph.Graph{Name: "generated", Adj: adj, X: graph.Features{Sparse: x}, Split: split,
		Labels: graph.Labels{Classes: classes, Class: class}}
}

// splitOf deals a node to a split by a random number in [0, 1).
func splitOf(labelled, u float64) graph.Split {
	switch {
	case u < labelled:
		return graph.Train
	case u < labelled*5/3:
		return graph.Val
	}
	return graph.Test
}

// together returns graphs as one, without edges between them.
func together(all []*graph.Graph) *graph.Graph {
	g := &graph.Graph{Name: all[0].Name, Adj: graph.CSR{RowPtr: []int64{0}},
		Labels: graph.Labels{Classes: all[0].Labels.Classes},
		X:      graph.Features{Sparse: &mat.Sparse{Cols: all[0].X.Cols(), RowPtr: []int64{0}}}}
	for _, one := range all {
		first, x := int32(g.Adj.NumDst), g.X.Sparse
		edges, values := int64(len(g.Adj.Col)), int64(len(x.Col))
		for i := range one.N() {
			g.Adj.RowPtr = append(g.Adj.RowPtr, edges+one.Adj.RowPtr[i+1])
			x.RowPtr = append(x.RowPtr, values+one.X.Sparse.RowPtr[i+1])
		}
		for _, j := range one.Adj.Col {
			g.Adj.Col = append(g.Adj.Col, first+j)
		}
		x.Col, x.Val = append(x.Col, one.X.Sparse.Col...), append(x.Val, one.X.Sparse.Val...)
		g.Labels.Class, g.Split = append(g.Labels.Class, one.Labels.Class...), append(g.Split, one.Split...)
		g.Adj.NumDst += one.N()
		x.Rows += one.N()
	}
	g.Adj.NumSrc = g.Adj.NumDst
	return g
}

// dealt returns a data set in parts by communities; the first parts are of sites. Each phone has a part (0 = as many
// phones as have 20 nodes each) or, with single, one node of the other parts. The edges between members are known to
// the sites, or to nobody.
func (c *command) dealt() (m members, err error) {
	g, err := dataset.Read(c.data, 0)
	if err != nil {
		return m, cli.Invalid(err)
	}
	phones, most := c.phones, g.N()/usualNodes-c.sites // parts are of about the same size
	if phones == 0 || c.single {
		phones = most
	}
	if g.X.Cols() == 0 || g.Labels.Multi() || phones > most || phones < 2 {
		return m, cli.Invalidf("%s must have features, one class a node, and for %d phones at least %d nodes (got %d)",
			c.data, max(phones, 2), (max(phones, 2)+c.sites)*usualNodes, g.N())
	}
	if c.labelled > 0 {
		key := rng.New(c.seed).FoldString("labelled")
		g.Split = make([]graph.Split, g.N())
		for i := range g.Split {
			g.Split[i] = splitOf(c.labelled, key.Float64(uint64(i)))
		}
	}
	g.IDs = make([]string, g.N())
	for i := range g.IDs {
		g.IDs[i] = strconv.Itoa(i)
	}
	// each has its own few nodes, whatever their edges
	byNodes := partition.Multilevel{Goal: partition.Goal{Vertices: 1.03}}
	parts, err := partition.Partition(g, byNodes, c.sites+phones, c.seed)
	if err != nil {
		return m, cli.Invalid(err)
	}
	var all []*graph.Graph
	owner := make([]int, g.N())
	for p, s := range parts {
		if s.Owned < leastNodes {
			return m, cli.Invalidf("%s: each member must have at least %d nodes (part %d got %d): ask for fewer "+
				"--phones", c.data, leastNodes, p, s.Owned)
		}
		for _, i := range s.Global[:s.Owned] {
			if owner[i] = len(all); c.single && p >= c.sites {
				all = append(all, single(g, int32(i)))
			}
		}
		if !c.single || p < c.sites {
			all = append(all, s.Alone())
		}
	}
	alone := *g
	var between [][2]string
	if alone.Adj, between, err = parted(g, owner); err != nil {
		return m, err
	}
	m = gather(c.sites, all, &alone)
	m.joined = g
	if c.edges || c.single {
		m.edges, err = leaf.NewEdges(between)
	}
	return m, err
}

// single returns the graph of one node.
func single(g *graph.Graph, i int32) *graph.Graph {
	return &graph.Graph{Name: g.Name, Adj: graph.CSR{NumDst: 1, NumSrc: 1, RowPtr: []int64{0, 0}},
		X:      g.X.Select([]int32{i}),
		Labels: g.Labels.Select([]int32{i}), Split: []graph.Split{g.Split[i]}, IDs: []string{g.IDs[i]}}
}

// parted returns the edges of g that have one owner, and the names of the ends of the others.
func parted(g *graph.Graph, owner []int) (inside graph.CSR, between [][2]string, err error) {
	var src, dst []int32
	for i := range g.N() {
		near, _ := g.Adj.Row(i)
		for _, j := range near {
			switch {
			case owner[i] == owner[j]:
				src, dst = append(src, j), append(dst, int32(i))
			case int(j) > i:
				between = append(between, [2]string{g.IDs[i], g.IDs[j]})
			}
		}
	}
	inside, err = graph.FromEdges(g.N(), src, dst, nil, graph.Build{})
	return inside, between, err
}

// gather returns the members whose graphs those are. Limits of a run follow from how many nodes there are in all.
func gather(sites int, all []*graph.Graph, pooled *graph.Graph) (m members) {
	first := int64(0)
	for r, g := range all {
		s := shard.Whole(g)
		s.Name, s.Nodes = fmt.Sprintf("member %d", r), int64(pooled.N())
		for i := range s.Global {
			s.Global[i] += first
		}
		if first += int64(g.N()); r >= sites {
			m.phones = append(m.phones, s)
			continue
		}
		s.Rank, s.Parts, s.Boundary = r, sites, make([][]int32, sites)
		s.HaloPtr = slices.Repeat([]int{s.Owned}, sites+1)
		s.Fingerprint = [32]byte{} // the phones' parts do not partition one graph
		m.sites = append(m.sites, s)
	}
	m.pooled = pooled
	return m
}
