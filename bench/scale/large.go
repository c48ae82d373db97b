package scale

import (
	"bufio"
	"io"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
	"github.com/heddle-gnn/heddle/rng"
)

// large is a graph that need not fit into memory. Nodes are in 256 groups, one after the other in the order of their
// numbers, so that four sites of 64 groups each cut about 15 % of the edges. Degrees follow a power law of exponent 3,
// and 80 % of the edges stay in a group. Groups take turns with ten classes: seven nodes of ten have their group's
// class, the others any. A tenth of the nodes train, a twentieth validate.
type large struct {
	nodes, edges int // undirected edges, before the repeated ones are dropped
	columns      int // of normal numbers, whose means differ by class
	words        int // instead: words of a vocabulary of that size, 20 a node, half of them from the class's tenth
}

const (
	largeGroups  = 256
	largeClasses = 10
	largeWords   = 20
)

// store writes the graph to path, in about `memory` bytes and 13 a node.
func (l large) store(path string, memory int64) error {
	key := rng.New(1).FoldString("bench/large")
	g := &graph.Graph{Name: "large", Split: make([]graph.Split, l.nodes),
		Labels: graph.Labels{Classes: largeClasses, Class: make([]int32, l.nodes)}}
	label, split := key.FoldString("class"), key.FoldString("split")
	for i := range l.nodes {
		class := i * largeGroups / l.nodes % largeClasses
		if x := label.Float64(uint64(i)); x < 0.3 {
			class = int(x / 0.3 * largeClasses)
		}
		g.Labels.Class[i] = int32(class)
		switch x := split.Float64(uint64(i)); {
		case x < 0.1:
			g.Split[i] = graph.Train
		case x < 0.15:
			g.Split[i] = graph.Val
		default:
			g.Split[i] = graph.Test
		}
	}
	features := []section.Section{section.Stream("x/dense", section.F32, []int{l.nodes, l.columns},
		l.numbers(key.FoldString("numbers"), g.Labels.Class))}
	if l.words > 0 {
		features = l.bags(key.FoldString("words"), g.Labels.Class)
	}
	return external.WriteNodes(path, g, features, l.nodes, l.pairs(key.FoldString("edges")), graph.Build{}, memory)
}

func (l large) pairs(key rng.Key) external.EdgeReader {
	skewed := func(at uint64, lo, hi int) int32 { x := key.Float64(at); return int32(lo + int(x*x*float64(hi-lo))) }
	node := func(at uint64, group int) int32 {
		return skewed(at, group*l.nodes/largeGroups, (group+1)*l.nodes/largeGroups)
	}
	return func(yield func(src, dst []int32) error) error {
		var src, dst []int32
		for e := range uint64(l.edges) {
			from := int(key.Float64(5*e) * largeGroups)
			to := from
			if key.Float64(5*e+1) > 0.8 {
				to = int(key.Float64(5*e+2) * largeGroups)
			}
			src, dst = append(src, node(5*e+3, from)), append(dst, node(5*e+4, to))
			if len(src) == 1<<16 || e == uint64(l.edges)-1 {
				if err := yield(src, dst); err != nil {
					return err
				}
				src, dst = src[:0], dst[:0]
			}
		}
		return nil
	}
}

// numbers writes the columns, node by node.
func (l large) numbers(key rng.Key, class []int32) func(io.Writer) error {
	return func(w io.Writer) error {
		b, row := bufio.NewWriterSize(w, 1<<16), make([]float32, l.columns)
		for i, c := range class {
			one, mean := key.Fold(uint64(i)), key.FoldString("means").Fold(uint64(c))
			for j := range row {
				row[j] = float32(one.Normal(uint64(j)) + 0.15*mean.Normal(uint64(j)))
			}
			if err := section.WriteArray(b, row); err != nil {
				return err
			}
		}
		return b.Flush()
	}
}

// words returns the bags of words: as many of each node, some of them repeated.
func (l large) bags(key rng.Key, class []int32) []section.Section {
	x := struct {
		ptr []int64
		col []int32
	}{ptr: make([]int64, l.nodes+1)}
	tenth := l.words / largeClasses
	row := make([]int32, largeWords)
	for i, c := range class {
		one := key.Fold(uint64(i))
		for k := range row {
			u := one.Float64(uint64(k))
			if row[k] = int32(u * u * float64(l.words)); k%2 == 0 {
				row[k] = c*int32(tenth) + int32(u*float64(tenth))
			}
		}
		slices.Sort(row)
		x.col = append(x.col, slices.Compact(row)...)
		x.ptr[i+1] = int64(len(x.col))
	}
	return []section.Section{section.Array("x/shape", []int64{int64(l.nodes), int64(l.words)}),
		section.Array("x/row_ptr", x.ptr), section.Array("x/col", x.col),
		section.Array("x/val", slices.Repeat([]float32{1}, len(x.col)))}
}
