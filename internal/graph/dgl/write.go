package dgl

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// WriteDir writes shards, all of one partition in order, as DGL stores a partition of one type, and
// returns the path of the file that describes it, dir/NAME.json: DGL's load_partition takes it.
// Until all of it is on the disk the folder is called dir.incomplete; on an error nothing is left.
// It refuses a dir that has anything in it.
//
// DGL numbers the nodes of a part one after another: node i of part k gets ID first(k)+i, and the
// column orig_id has what it is called in the shards. The other columns are feat, label (−1 for
// none; 0 and 1 in float32 of several classes), train_mask, val_mask, test_mask and, of edges,
// weight. DGL has no sparse features: they are written dense.
func WriteDir(dir string, shards []*shard.Shard) (path string, err error) {
	for _, s := range shards {
		if err := s.Valid(); err != nil {
			return "", err
		}
	}
	if err := shard.Consistent(shards); err != nil {
		return "", err
	}
	w, name := newWriter(shards), fileName(shards[0].Name)
	return filepath.Join(dir, name+".json"), shard.WriteWhole(dir, func(tmp string) error {
		for k := range shards {
			if err := w.part(tmp, k); err != nil {
				return err
			}
		}
		text, err := w.config(name)
		if err != nil {
			return err
		}
		return disk.WriteFile(disk.OS{}, filepath.Join(tmp, name+".json"), 0o600, text)
	})
}

// fileName keeps of a name what every file system and DGL take.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, name)
	if name == "" {
		return "graph"
	}
	return name
}

// writer knows where DGL's numbers of each part begin.
type writer struct {
	shards       []*shard.Shard
	nodes, edges []int64 // [K+1]
}

func newWriter(shards []*shard.Shard) *writer {
	w := &writer{shards: shards, nodes: []int64{0}, edges: []int64{0}}
	for k, s := range shards {
		w.nodes = append(w.nodes, w.nodes[k]+int64(s.Owned))
		w.edges = append(w.edges, w.edges[k]+int64(s.Adj.NumEdges()))
	}
	return w
}

func (w *writer) config(name string) ([]byte, error) {
	ranges := func(at []int64) (list []Range) {
		for k := range w.shards {
			list = append(list, Range(at[k:k+2]))
		}
		return list
	}
	last := len(w.shards)
	c := map[string]any{
		"graph_name": name, "part_method": "heddle", "num_parts": last, "halo_hops": 1,
		"num_nodes": w.nodes[last], "num_edges": w.edges[last],
		"node_map": map[string]any{defaultNode: ranges(w.nodes)}, "ntypes": map[string]int{defaultNode: 0},
		"edge_map": map[string]any{defaultEdge: ranges(w.edges)}, "etypes": map[string]int{defaultEdge: 0},
	}
	for k := range w.shards {
		part := fmt.Sprintf("part%d/", k)
		c[fmt.Sprintf("part-%d", k)] = files{Nodes: part + "node_feat.dgl", Edges: part + "edge_feat.dgl",
			Graph: part + "graph.dgl"}
	}
	text, err := json.MarshalIndent(c, "", "    ")
	return append(text, '\n'), err
}

func (w *writer) part(dir string, k int) error {
	folder := filepath.Join(dir, fmt.Sprintf("part%d", k))
	if err := os.Mkdir(folder, 0o777); err != nil {
		return err
	}
	for name, fill := range map[string]func(*sink, int){"graph.dgl": w.graph, "node_feat.dgl": w.nodeColumns,
		"edge_feat.dgl": w.edgeColumns} {
		if err := disk.WriteStream(disk.OS{}, filepath.Join(folder, name), func(f io.Writer) error {
			s := &sink{w: f}
			fill(s, k)
			return s.err
		}); err != nil {
			return err
		}
	}
	return nil
}

// graph writes graph.dgl: the inner edges by destination, then the edges that leave the part.
func (w *writer) graph(s *sink, k int) {
	p := w.local(k)
	s.u64(fileMagic, fileVersion, heteroKind, 1)
	s.bytes(make([]byte, dataAt-32))
	s.u64(dataAt+16, 0)
	s.u64(heteroMagic)
	s.metagraph()
	s.u64(1, unitMagic, flagged|coo, flagged|coo|csr|csc)
	s.metagraph()
	s.u64(cooMagic, uint64(len(p.global)), uint64(len(p.global)))
	s.ints(p.src)
	s.ints(p.dst)
	s.ints(nil)           // the edges are numbered as they come
	s.bytes([]byte{0, 0}) // no order is recorded
	s.u64(1, uint64(len(p.global)))
	s.u64(1, 3)
	s.text("_ID")
	s.ints(p.global)
	s.text("part_id")
	s.ints(p.owner)
	s.text("inner_node")
	s.flags(w.shards[k].Owned, len(p.global))
	s.u64(1, 2)
	s.text("_ID")
	s.ints(p.id)
	s.text("inner_edge")
	s.flags(w.shards[k].Adj.NumEdges(), len(p.id))
	s.u64(1)
	s.text("_N")
	s.u64(1)
	s.text("_E")
	s.u64(16, 1, dataAt+16, 16)
}

// localPart is a part in DGL's numbers.
type localPart struct {
	global, owner []int64 // of the local nodes, inner ones first
	src, dst, id  []int64 // of the local edges, inner ones first
}

func (w *writer) local(k int) localPart {
	s, p := w.shards[k], localPart{}
	for i := range s.Owned {
		p.global, p.owner = append(p.global, w.nodes[k]+int64(i)), append(p.owner, int64(k))
	}
	halo := map[int64]int64{} // local place of a node that another part owns
	for q, of := range w.shards {
		for _, i := range of.Boundary[k] {
			id := w.nodes[q] + int64(i)
			halo[id] = int64(len(p.global))
			p.global, p.owner = append(p.global, id), append(p.owner, int64(q))
		}
	}
	for i := range s.Owned {
		col, _ := s.Adj.Row(i)
		for _, j := range col {
			p.src, p.dst, p.id = append(p.src, int64(j)), append(p.dst, int64(i)),
				append(p.id, w.edges[k]+int64(len(p.id)))
		}
	}
	for q, of := range w.shards {
		lo, hi := int32(of.HaloPtr[k]), int32(of.HaloPtr[k+1])
		for i := range of.Owned {
			col, _ := of.Adj.Row(i)
			first, _ := slices.BinarySearch(col, lo)
			last, _ := slices.BinarySearch(col, hi)
			if first == last {
				continue
			}
			id := w.nodes[q] + int64(i)
			at, ok := halo[id]
			if !ok { // nothing comes from it, as in a directed graph
				at = int64(len(p.global))
				halo[id] = at
				p.global, p.owner = append(p.global, id), append(p.owner, int64(q))
			}
			for c := first; c < last; c++ {
				p.src = append(p.src, int64(s.Boundary[q][col[c]-lo]))
				p.dst, p.id = append(p.dst, at), append(p.id, w.edges[q]+of.Adj.RowPtr[i]+int64(c))
			}
		}
	}
	return p
}

func (w *writer) nodeColumns(out *sink, k int) {
	s := w.shards[k]
	n, width := s.Owned, s.X.Cols()
	columns := []func(){func() {
		out.text("_N/orig_id")
		out.ints(s.Global[:n])
	}}
	if width > 0 {
		columns = append(columns, func() {
			out.text("_N/feat")
			out.array(Float, 32, n, width)
			row := make([]float32, width)
			for i := range n {
				if s.X.Sparse == nil {
					out.floats(s.X.Dense.Row(i))
					continue
				}
				clear(row)
				col, val := s.X.Sparse.Row(i)
				for c, j := range col {
					row[j] = val[c]
				}
				out.floats(row)
			}
		})
	}
	switch {
	case s.Labels.Kind() == graph.Numbers:
		columns = append(columns, func() {
			out.text("_N/label")
			out.array(Float, 32, n, s.Labels.Classes)
			out.floats(s.Labels.Values)
		})
	case s.Labels.Multi():
		columns = append(columns, func() {
			out.text("_N/label")
			out.array(Float, 32, n, s.Labels.Classes)
			for _, b := range s.Labels.Bits {
				out.floats([]float32{float32(b)})
			}
		})
	case s.Labels.Class != nil:
		columns = append(columns, func() {
			out.text("_N/label")
			out.array(Int, 64, n)
			for _, c := range s.Labels.Class {
				out.u64(uint64(int64(c)))
			}
		})
	}
	for split := graph.Train; split <= graph.Test; split++ {
		columns = append(columns, func() {
			out.text("_N/" + masks[split])
			out.array(Uint, 8, n)
			mask := make([]byte, n)
			for i, of := range s.Split {
				if of == split {
					mask[i] = 1
				}
			}
			out.bytes(mask)
		})
	}
	out.tensors(columns)
}

func (w *writer) edgeColumns(out *sink, k int) {
	var columns []func()
	if weight := w.shards[k].Adj.Weight; weight != nil {
		columns = append(columns, func() {
			out.text(defaultEdge + "/weight")
			out.array(Float, 32, len(weight))
			out.floats(weight)
		})
	}
	out.tensors(columns)
}
