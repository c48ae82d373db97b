// Package graphs has the graphs that are measured: data sets, and graphs generated from a seed.
package graphs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
)

// Root adds the flag for the folder of the data sets.
func Root(f *flag.FlagSet) *string {
	root := "../shared/data"
	if env := os.Getenv("HEDDLE_DATA"); env != "" {
		root = env
	}
	return f.String("root", root, "folder of the data sets; default: $HEDDLE_DATA")
}

// Open returns a data set under root, or a generated graph: power-law-20M or communities-20M has 20 million undirected
// edges.
func Open(root, name string) (*graph.Graph, error) {
	at := strings.LastIndexByte(name, '-')
	kind, size := name[:max(at, 0)], name[at+1:]
	if kind != "power-law" && kind != "communities" {
		return dataset.Read(filepath.Join(root, name), 0)
	}
	millions, err := strconv.Atoi(strings.TrimSuffix(size, "M"))
	if err != nil || millions < 1 || !strings.HasSuffix(size, "M") {
		return nil, fmt.Errorf("size of a drawn graph must be like 20M (got %q)", size)
	}
	n, batches, err := Draw(kind, millions*1_000_000)
	if err != nil {
		return nil, err
	}
	var src, dst []int32
	if err := batches(func(u, v []int32) error {
		src, dst = append(src, u...), append(dst, v...)
		return nil
	}); err != nil {
		return nil, err
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	labels := graph.Labels{Classes: 1, Class: make([]int32, n)}
	return &graph.Graph{Name: name, Adj: adj, Split: make([]graph.Split, n), Labels: labels}, err
}

// Draw returns the edges of a graph of a tenth as many nodes, whose degrees follow a power law of exponent 3 (Chung and
// Lu). With kind communities the nodes have 256 groups, and 80 % of the edges join nodes of the same group. Node IDs
// reveal neither degree nor group.
func Draw(kind string, edges int) (nodes int, batches func(yield func(src, dst []int32) error) error, err error) {
	groups, inside := 256, 0.8
	switch kind {
	case "communities":
	case "power-law":
		groups, inside = 1, 0
	default:
		return 0, nil, fmt.Errorf("kind of a drawn graph must be power-law or communities (got %q)", kind)
	}
	nodes = edges / 10
	key := rng.New(1).FoldString("bench/partition")
	name := key.FoldString("name").Perm(nodes)
	skewed := func(at uint64, n int) int { x := key.Float64(at); return int(x * x * float64(n)) }
	return nodes, func(yield func(src, dst []int32) error) error {
		var src, dst []int32
		for e := range uint64(edges) {
			u, v := skewed(3*e, nodes), 0
			if v = skewed(3*e+1, nodes); key.Float64(3*e+2) < inside {
				v = u%groups + groups*skewed(3*e+1, nodes/groups)
			}
			if src, dst = append(src, name[u]), append(dst, name[v]); len(src) == 1<<16 || e == uint64(edges)-1 {
				if err := yield(src, dst); err != nil {
					return err
				}
				src, dst = src[:0], dst[:0]
			}
		}
		return nil
	}, nil
}
