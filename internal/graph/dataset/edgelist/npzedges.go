package edgelist

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/heddle-gnn/heddle/internal/graph/npy"
)

// openArchive opens an archive of NumPy arrays with the edges as PyTorch Geometric has them: edge_index [2, E], sources
// and then targets. Weight names an array [E], such as edge_weight; num_nodes, a number, may give how many nodes there
// are. The arrays are kept in memory.
func openArchive(c Config) (l *List, err error) {
	a, err := npy.Open(c.Path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if source := cmp.Or(c.Source, "source"); source != "source" || cmp.Or(c.Target, "target") != "target" {
		return nil, fmt.Errorf("%s: an archive has its edges in edge_index and no column of "+
			"sources or targets", c.Path)
	}
	pairs, shape, err := npy.Read[int64](a, "edge_index", 2, -1)
	if err != nil {
		return nil, err
	}
	count, nodes := shape[1], int64(-1)
	if a.Has("num_nodes") {
		n, _, err := npy.Read[int64](a, "num_nodes")
		if err != nil {
			return nil, err
		}
		nodes = n[0]
	}
	weight := slices.Repeat([]float32{1}, count)
	if c.Weight != "" {
		h, err := a.Header(c.Weight)
		if err != nil {
			return nil, err
		}
		want := []int{count, 1}[:max(1, min(2, len(h.Shape)))] // edge_attr has one column
		if weight, _, err = npy.Read[float32](a, c.Weight, want...); err != nil {
			return nil, err
		}
	}
	at := 0
	next := func() (Edge, error) {
		if at == count {
			return Edge{}, io.EOF
		}
		at++
		return Edge{Source: pairs[at-1], Target: pairs[count+at-1], Weight: weight[at-1], At: int64(at - 1)}, nil
	}
	return &List{Path: c.Path, Unit: "edge", Nodes: nodes, next: next, close: func() error { return nil }}, nil
}
