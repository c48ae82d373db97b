package dgl

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// golden is what DGL reports about one part (testdata/golden.py).
type golden struct {
	Nodes       int                  `json:"nodes"`
	Inner       int                  `json:"inner"`
	Edges       int                  `json:"edges"`
	InnerEdges  int                  `json:"inner_edges"`
	NodeTypes   map[string]int       `json:"node_types"`
	EdgeTypes   map[string]int       `json:"edge_types"`
	Halo        []int64              `json:"halo"`       // sources of inner edges that another part owns
	HaloOwner   []int                `json:"halo_owner"` // of each
	AllHalo     []int64              `json:"all_halo"`
	Pairs       [][3]int64           `json:"pairs"` // inner edges: source, destination, relation
	Columns     map[string][]float64 `json:"columns"`
	EdgeColumns map[string][]float64 `json:"edge_columns"`
}

var cases = []string{"random-2", "metis-4", "whole", "rows-2", "typed-random-2", "typed-metis-4", "typed-csc-2"}

func expected(t *testing.T, name string) []golden {
	return expectedIn(t, "testdata", name)
}

func expectedIn(t *testing.T, dir, name string) (want []golden) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func open(t *testing.T, name string) *Partition {
	t.Helper()
	p, err := Read(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGolden compares what is read with what DGL reads from the same files.
func TestGolden(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			p, want := open(t, name), expected(t, name)
			if len(p.Parts) != len(want) {
				t.Fatalf("%d parts, want %d", len(p.Parts), len(want))
			}
			for k, part := range p.Parts {
				part.compare(t, p, k, want[k])
			}
		})
	}
}

func (part *Part) compare(t *testing.T, p *Partition, k int, want golden) {
	if len(part.Global) != want.Nodes || part.Inner != want.Inner || len(part.Src) != want.InnerEdges ||
		part.Outer != want.Edges-want.InnerEdges {
		t.Errorf("part %d: %d nodes, %d inner, %d inner edges, %d outer; want %d, %d, %d, %d", k,
			len(part.Global), part.Inner, len(part.Src), part.Outer, want.Nodes, want.Inner, want.InnerEdges,
			want.Edges-want.InnerEdges)
	}
	if halo := slices.Sorted(slices.Values(part.Global[part.Inner:])); !slices.Equal(halo, want.AllHalo) {
		t.Errorf("part %d: halo %v, want %v", k, halo, want.AllHalo)
	}
	var pairs [][3]int64
	for e := range part.Src {
		pairs = append(pairs, [3]int64{part.Global[part.Src[e]], part.Global[part.Dst[e]], int64(part.Type[e])})
	}
	slices.SortFunc(pairs, func(a, b [3]int64) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(pairs, want.Pairs) {
		t.Errorf("part %d: edges\n%v, want\n%v", k, pairs, want.Pairs)
	}
	for kind, name := range p.NodeTypes {
		if n := int(p.nodes.ranges[kind][k].len()); n != want.NodeTypes[name] {
			t.Errorf("part %d: %d nodes of type %s, want %d", k, n, name, want.NodeTypes[name])
		}
	}
	for kind, name := range p.EdgeTypes {
		n := 0
		for _, relation := range part.Type {
			if int(relation) == kind {
				n++
			}
		}
		if n != want.EdgeTypes[name] {
			t.Errorf("part %d: %d edges of type %s, want %d", k, n, name, want.EdgeTypes[name])
		}
	}
	found := 0
	for kind, columns := range part.Columns {
		for name, tensor := range columns {
			found++
			sums(t, tensor, want.Columns[p.NodeTypes[kind]+"/"+name], name)
		}
	}
	for kind, columns := range part.Edges {
		for name, tensor := range columns {
			found++
			sums(t, tensor, want.EdgeColumns[p.EdgeTypes[kind]+"/"+name], name)
		}
	}
	if found != len(want.Columns)+len(want.EdgeColumns) {
		t.Errorf("part %d: %d columns, want %d", k, found, len(want.Columns)+len(want.EdgeColumns))
	}
}

// sums compares the sum of each row.
func sums(t *testing.T, tensor Tensor, want []float64, name string) {
	t.Helper()
	v, err := tensor.floats(true)
	if err != nil || int(tensor.Shape[0]) != len(want) {
		t.Fatalf("column %s is %v, want %d rows (%v)", name, tensor, len(want), err)
	}
	for i, w := range want {
		sum, width := 0.0, len(v)/len(want)
		for _, x := range v[i*width : (i+1)*width] {
			sum += float64(x)
		}
		if math.Abs(sum-w) > 1e-5 {
			t.Errorf("column %s, row %d: sum %v, want %v", name, i, sum, w)
		}
	}
}

// TestShards compares the shards with DGL's report on the parts: what each owns, and whose rows it needs. shardsOf
// returns Heddle's shards of the same nodes: Graph cut by the same owners.
func shardsOf(p *Partition, n Names) ([]*shard.Shard, error) {
	g, owner, err := p.Graph(n)
	if err != nil {
		return nil, err
	}
	return shard.Cut(g, owner, len(p.Parts))
}

func TestShards(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) { compareShards(t, open(t, name), expected(t, name)) })
	}
}

func compareShards(t *testing.T, p *Partition, want []golden) {
	shards, err := shardsOf(p, Names{Build: graph.Build{Directed: true, KeepLoops: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := shard.Consistent(shards); err != nil {
		t.Fatal(err)
	}
	for k, s := range shards {
		if err := s.Valid(); err != nil {
			t.Fatal(err)
		}
		var halo []int64
		for q := range shards {
			for _, id := range s.Global[s.HaloPtr[q]:s.HaloPtr[q+1]] {
				halo = append(halo, id)
				if at, _ := slices.BinarySearch(want[k].Halo, id); at < len(want[k].HaloOwner) &&
					want[k].HaloOwner[at] != q {
					t.Errorf("part %d: halo node %d is of part %d, want %d", k, id, q, want[k].HaloOwner[at])
				}
			}
		}
		slices.Sort(halo)
		if s.Owned != want[k].Inner || !slices.Equal(halo, want[k].Halo) {
			t.Errorf("part %d: %d owned, halo %v; want %d, %v", k, s.Owned, halo, want[k].Inner, want[k].Halo)
		}
		pairs := map[[2]int64]bool{}
		for _, pair := range want[k].Pairs {
			pairs[[2]int64(pair[:2])] = true
		}
		for i := range s.Owned {
			col, _ := s.Adj.Row(i)
			for _, j := range col {
				if !pairs[[2]int64{s.Global[j], s.Global[i]}] {
					t.Errorf("part %d: edge from %d to %d is not DGL's", k, s.Global[j], s.Global[i])
				}
			}
		}
		if s.Adj.NumEdges() != len(pairs) { // edges of several relations between the same nodes are one
			t.Errorf("part %d: %d edges, want %d", k, s.Adj.NumEdges(), len(pairs))
		}
	}
}

// TestShardsHomogeneous looks at what the nodes have.
func TestShardsHomogeneous(t *testing.T) {
	for _, name := range []string{"random-2", "metis-4", "whole", "rows-2"} {
		want := expected(t, name)
		shards, err := shardsOf(open(t, name), Names{Weight: "w"})
		if err != nil {
			t.Fatal(err)
		}
		for k, s := range shards {
			if s.X.Cols() != 6 || s.Labels.Classes != 3 {
				t.Fatalf("%s: %d features and %d classes, want 6 and 3", name, s.X.Cols(), s.Labels.Classes)
			}
			for i := range s.Owned {
				sum := 0.0
				for _, v := range s.X.Dense.Row(i) {
					sum += float64(v)
				}
				columns := want[k].Columns
				if math.Abs(sum-columns["_N/feat"][i]) > 1e-5 || float64(s.Labels.Class[i]) != columns["_N/label"][i] {
					t.Errorf("%s: part %d, node %d: features add up to %v, label %d; want %v, %v", name, k, i, sum,
						s.Labels.Class[i], columns["_N/feat"][i], columns["_N/label"][i])
				}
				split := graph.None
				for of, mask := range masks {
					if mask != "" && columns["_N/"+mask][i] == 1 && s.Labels.Class[i] >= 0 {
						split = graph.Split(of)
					}
				}
				if s.Split[i] != split {
					t.Errorf("%s: part %d, node %d: split %d, want %d", name, k, i, s.Split[i], split)
				}
			}
			total, edges := 0.0, 0.0
			for _, w := range s.Adj.Weight {
				total += float64(w)
			}
			for _, w := range want[k].EdgeColumns["_N:_E:_N/w"] {
				edges += w
			}
			if edges == 0 || math.Abs(total-edges) > 1e-4 {
				t.Errorf("%s: part %d: weights add up to %v, want %v", name, k, total, edges)
			}
		}
	}
}

// TestShardsTyped looks at the columns that the types have of their own.
func TestShardsTyped(t *testing.T) {
	for _, name := range []string{"typed-random-2", "typed-metis-4", "typed-csc-2"} {
		p, want := open(t, name), expected(t, name)
		shards, err := shardsOf(p, Names{})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for k, s := range shards {
			at := 0
			// author: columns 0 to 2, paper: 3 to 7, venue: none
			for kind, first := range map[int]int{0: 0, 1: 3, 2: 8} {
				at = int(p.nodes.ranges[kind][k][0]) - int(s.Global[0])
				for row := range int(p.nodes.ranges[kind][k].len()) {
					col, val := s.X.Sparse.Row(at + row)
					sum := 0.0
					for c, j := range col {
						if int(j) < first || int(j) >= []int{3, 8, 8}[kind] {
							t.Errorf("%s: part %d: a node of type %s has column %d", name, k, p.NodeTypes[kind], j)
						}
						sum += float64(val[c])
					}
					if f := want[k].Columns[p.NodeTypes[kind]+"/feat"]; f != nil && math.Abs(sum-f[row]) > 0.02 {
						t.Errorf("%s: part %d, %s %d: features add up to %v, want %v", name, k, p.NodeTypes[kind], row,
							sum, f[row])
					}
					label, split := int32(-1), graph.None
					if kind == 1 {
						label, split = int32(want[k].Columns["paper/label"][row]), graph.Test
						if want[k].Columns["paper/train_mask"][row] == 1 {
							split = graph.Train
						}
					}
					if s.Labels.Class[at+row] != label || s.Split[at+row] != split {
						t.Errorf("%s: part %d, %s %d: label %d, split %d; want %d, %d", name, k, p.NodeTypes[kind], row,
							s.Labels.Class[at+row], s.Split[at+row], label, split)
					}
					seen[s.IDs[at+row]] = true
					if s.Types.Names[s.Types.Of[at+row]] != p.NodeTypes[kind] {
						t.Errorf("%s: part %d, %s %d is of type %s", name, k, p.NodeTypes[kind], row,
							s.Types.Names[s.Types.Of[at+row]])
					}
				}
			}
		}
		if len(seen) != 30+50+16 || !seen["author/29"] || !seen["paper/49"] || !seen["venue/15"] {
			t.Errorf("%s: names %v", name, seen)
		}
	}
}

// TestShardsRelations compares the typed edges of the shards with the edges that DGL reports for each part, and looks
// for the reverse of each.
func TestShardsRelations(t *testing.T) {
	for _, name := range []string{"typed-random-2", "typed-metis-4", "typed-csc-2", "metis-4"} {
		p, want := open(t, name), expected(t, name)
		directed, err := shardsOf(p, Names{Build: graph.Build{Directed: true, KeepLoops: true}})
		if err != nil {
			t.Fatal(err)
		}
		both, err := shardsOf(p, Names{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "metis-4" {
			if both[0].Typed.Count() != 0 || directed[0].Typed.Count() != 0 {
				t.Errorf("%s: relations of a graph of one type", name)
			}
			continue
		}
		edges := func(s *shard.Shard) (list [][3]int64) {
			for row := range s.Typed.Adj.NumDst {
				col, _ := s.Typed.Adj.Row(row)
				for _, j := range col {
					list = append(list, [3]int64{s.Global[j], s.Global[row%s.Owned], int64(row / s.Owned)})
				}
			}
			slices.SortFunc(list, func(a, b [3]int64) int { return slices.Compare(a[:], b[:]) })
			return list
		}
		inverse := map[[3]int64]bool{}
		relations := int64(len(p.EdgeTypes))
		for k, s := range directed {
			if !slices.Equal(s.Typed.Names, p.EdgeTypes) {
				t.Errorf("%s: relations %q, want %q", name, s.Typed.Names, p.EdgeTypes)
			}
			if got := edges(s); !slices.Equal(got, slices.Compact(want[k].Pairs)) {
				t.Errorf("%s: part %d: edges\n%v, want\n%v", name, k, got, want[k].Pairs)
			}
			for _, e := range edges(both[k]) {
				inverse[e] = true
			}
		}
		for k := range directed {
			for _, e := range want[k].Pairs {
				if reverse := [3]int64{e[1], e[0], e[2] + relations}; e[0] != e[1] &&
					(!inverse[e] || !inverse[reverse]) {
					t.Errorf("%s: edge %v or its reverse is missing", name, e)
				}
			}
		}
		if n := both[0].Typed.Names; len(n) != 2*len(p.EdgeTypes) || n[relations] != p.EdgeTypes[0]+" (inverse)" {
			t.Errorf("%s: relations %q", name, n)
		}
	}
}

func TestFormatsAgree(t *testing.T) {
	// Part 0 of metis-4 has the edges as pairs and as columns; reading only columns gives the same.
	path := filepath.Join("testdata", "metis-4", "part0", "graph.dgl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &tensorStream{path: path, b: b, at: 4112 + 8}
	s.metagraph()
	s.u64("relations")
	both := &local{}
	s.expect(unitMagic, "unit")
	if formats := s.u64("formats"); formats != flagged|coo|csc {
		t.Fatalf("formats %#x, want pairs and columns", formats)
	}
	s.u64("allowed")
	s.metagraph()
	var nodes int64
	if both.src, both.dst, nodes, err = s.pairs(); err != nil {
		t.Fatal(err)
	}
	s.metagraph()
	src, dst, again, err := s.rows(true)
	if err != nil || s.err != nil {
		t.Fatal(err, s.err)
	}
	if nodes != again || !reflect.DeepEqual(src, both.src) || !reflect.DeepEqual(dst, both.dst) {
		t.Errorf("pairs %v → %v, columns %v → %v", both.src, both.dst, src, dst)
	}
}
