package dgl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// folder returns a copy of a golden partition that may be changed.
func folder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o666); err != nil {
		t.Fatal(err)
	}
}

// put stores tensors under other names, "" for none.
func put(t *testing.T, path string, rename func(string) string) {
	edit(t, path, func(b []byte) []byte {
		all, err := parseTensors(path, b)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s := &sink{w: &out}
		s.u64(tensorsMagic, uint64(len(all)), uint64(len(all)))
		for name, tensor := range all {
			s.text(rename(name))
			shape := make([]int, len(tensor.Shape))
			for k, n := range tensor.Shape {
				shape[k] = int(n)
			}
			s.array(tensor.Kind, tensor.Bits, shape...)
			s.bytes(tensor.data)
		}
		return out.Bytes()
	})
}

// TestOldHomogeneous reads what versions before 1.0 wrote: lists of ends for maps, no types in the
// names of columns, flags of other widths, the format of edges as a number.
func TestOldHomogeneous(t *testing.T) {
	want, err := shardsOf(open(t, "random-2"), Names{})
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, "random-2")
	for k := range 2 {
		part := filepath.Join(dir, fmt.Sprintf("part%d", k))
		put(t, filepath.Join(part, "node_feat.dgl"),
			func(name string) string { return strings.TrimPrefix(name, "_N/") })
		put(t, filepath.Join(part, "edge_feat.dgl"),
			func(name string) string { return strings.TrimPrefix(name, "_N:_E:_N/") })
		edit(t, filepath.Join(part, "graph.dgl"), func(b []byte) []byte { return oldGraph(t, b) })
	}
	for name, maps := range map[string]string{
		"maps of " +
			"types": `"node_map": {"_N": [%d, 40]}, "edge_map": {"_E": [%d, %d]}, "ntypes": {"_N": 0}, "etypes": {"_E": 0}`,
		"maps of ends":   `"node_map": [%d, 40], "edge_map": [%d, %d]`,
		"maps of ranges": `"node_map": [[0, %[1]d], [%[1]d, 40]], "edge_map": [[0, %[2]d], [%[2]d, %[3]d]]`,
	} {
		edit(t, filepath.Join(dir, "small.json"), func([]byte) []byte {
			e := [2]int{want[0].Adj.NumEdges(), want[1].Adj.NumEdges()}
			text := fmt.Sprintf(maps, want[0].Owned, e[0], e[0]+e[1])
			return fmt.Appendf(nil, `{"graph_name": "small", "num_parts": 2, "num_nodes": 40, "num_edges": %d, %s, %s}`,
				e[0]+e[1], text,
				`"part-0": {"node_feats": "part0/node_feat.dgl", "edge_feats": "part0/edge_feat.dgl", "part_graph": "part0/graph.dgl"},
				"part-1": {"node_feats": "part1/node_feat.dgl", "edge_feats": "part1/edge_feat.dgl", "part_graph": "part1/graph.dgl"}`)
		})
		p, err := Read(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := shardsOf(p, Names{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the shards differ", name)
		}
	}
}

// oldGraph writes a graph of pairs as version 0.6 did.
func oldGraph(t *testing.T, b []byte) []byte {
	g, err := parseGraph("", b)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &sink{w: &out}
	small := func(name string, bits int, of Tensor) {
		v, err := of.ints()
		if err != nil {
			t.Fatal(err)
		}
		s.text(name)
		s.array(Int, bits, len(v))
		for _, x := range v {
			s.bytes([]byte{byte(x), 0, 0, 0}[:bits/8])
		}
	}
	ids := func(of Tensor) {
		v, err := of.ints()
		if err != nil {
			t.Fatal(err)
		}
		s.text("_ID")
		s.ints(v)
	}
	s.u64(fileMagic, fileVersion, heteroKind, 1)
	s.bytes(make([]byte, dataAt-32))
	s.u64(dataAt+16, 0, heteroMagic)
	s.metagraph()
	s.u64(1, unitMagic, 1, 0) // pairs; all allowed
	s.metagraph()
	s.u64(cooMagic, uint64(g.nodes), uint64(g.nodes))
	s.ints(g.src)
	s.ints(g.dst)
	s.ints(nil)
	s.bytes([]byte{0, 0})
	s.u64(1, uint64(g.nodes), 1, 2)
	ids(g.node["_ID"])
	small("inner_node", 32, g.node["inner_node"])
	s.u64(1, 2)
	ids(g.edge["_ID"])
	small("inner_edge", 8, g.edge["inner_edge"])
	s.u64(1)
	s.text("_N")
	s.u64(1)
	s.text("_E")
	s.u64(16, 1, dataAt+16, 16)
	return out.Bytes()
}

// TestOldTyped reads relations that are named without the types of their ends.
func TestOldTyped(t *testing.T) {
	want, err := shardsOf(open(t, "typed-random-2"), Names{})
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, "typed-random-2")
	canonical := regexp.MustCompile(`\w+:(\w+):\w+`)
	bare := func(name string) string { return canonical.ReplaceAllString(name, "$1") }
	for k := range 2 {
		put(t, filepath.Join(dir, fmt.Sprintf("part%d", k), "edge_feat.dgl"), bare)
	}
	check := func(relation func(string) string) {
		t.Helper()
		p, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if year := p.Parts[0].Edges[3]["year"]; len(year.Shape) != 1 || int64(year.Len()) != year.Shape[0] ||
			year.Len() == 0 {
			t.Errorf("year is %v", year)
		}
		got, err := shardsOf(p, Names{})
		if err != nil {
			t.Fatal(err)
		}
		for k, s := range want {
			for r, name := range s.Typed.Names {
				if got[k].Typed.Names[r] != relation(name) {
					t.Errorf("relation %q, want %q", got[k].Typed.Names[r], relation(name))
				}
			}
			got[k].Typed.Names, got[k].Fingerprint = s.Typed.Names, s.Fingerprint
		}
		if !reflect.DeepEqual(got, want) {
			t.Error("the shards differ")
		}
	}
	// only columns are old, as after DGL's tool changed the description
	check(func(name string) string { return name })
	edit(t, filepath.Join(dir, "small.json"), func(b []byte) []byte { return []byte(bare(string(b))) })
	check(bare)
}

func TestFaults(t *testing.T) {
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				panic(fmt.Sprintf("no %q", old))
			}
			return bytes.Replace(b, []byte(old), []byte(new), 1)
		}
	}
	patch := func(at int, with ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], with); return b }
	}
	for _, c := range []struct {
		name, in, file string
		change         func([]byte) []byte
		want           []string
	}{
		{"GraphBolt", "random-2", "small.json",
			replace(`"part_graph": "part0/graph.dgl"`, `"part_graph_graphbolt": "part0/fused_csc_sampling_graph.pt"`),
			[]string{"small.json", "part-0", "GraphBolt"}},
		{"not JSON", "random-2", "small.json", func(b []byte) []byte { return b[:50] },
			[]string{"small.json", "unexpected end"}},
		{"no parts", "random-2", "small.json", replace(`"num_parts": 2`, `"num_parts": 0`),
			[]string{"num_parts must be 1 to 65536 (got 0)"}},
		{"a part too many", "random-2", "small.json", replace(`"num_parts": 2`, `"num_parts": 3`), []string{"part-2"}},
		{"a path outside", "random-2", "small.json", replace("part0/graph.dgl", "../graph.dgl"),
			[]string{"part_graph", "below the folder"}},
		{"a file that is not there", "random-2", "small.json", replace("part0/graph.dgl", "part0/none.dgl"),
			[]string{"none.dgl"}},
		{"owners in a file", "random-2", "small.json", func(b []byte) []byte {
			var c map[string]any
			if err := json.Unmarshal(b, &c); err != nil {
				panic(err)
			}
			c["node_map"] = "node_map.npy"
			b, _ = json.Marshal(c)
			return b
		}, []string{"node_map", "file of owners"}},
		{"total", "random-2", "small.json", replace(`"num_nodes": 40`, `"num_nodes": 41`),
			[]string{"node_map", "ranges must end at the total, 41 (got 40)"}},
		{"type without a number", "typed-random-2", "small.json", replace(`"venue": 2`, `"venue": 1`),
			[]string{"node_map", `number of type "venue" must be one of 0 to 2 that no other type has (got 1)`}},
		{"type unlike the map", "typed-random-2", "small.json", replace(`"venue": 2`, `"place": 2`), []string{"place"}},
		{"parts exchanged", "random-2", "small.json", func(b []byte) []byte {
			b = bytes.ReplaceAll(b, []byte("part0"), []byte("partX"))
			b = bytes.ReplaceAll(b, []byte("part1"), []byte("part0"))
			return bytes.ReplaceAll(b, []byte("partX"), []byte("part1"))
		}, []string{"part1/graph.dgl", "the part's own nodes, 14 of [0, 14), must come first and in order " +
			"(got local node 0 as node 14, inner 1)"}},
		{"magic", "random-2", "part1/graph.dgl", patch(0, 0), []string{"part1/graph.dgl", "byte 0", "magic"}},
		{"version", "random-2", "part1/graph.dgl", patch(8, 1),
			[]string{"byte 8", "version of DGL's file of graphs must be 2 (got 1)"}},
		{"truncated", "random-2", "part1/graph.dgl", func(b []byte) []byte { return b[:5000] },
			[]string{"part1/graph.dgl", "byte ", "left"}},
		{"appended", "random-2", "part1/graph.dgl", func(b []byte) []byte { return append(b, 0) },
			[]string{"1 bytes after the end"}},
		{"giant array", "random-2", "part1/graph.dgl", patch(4188, 0xff, 0xff, 0xff, 0x7f),
			[]string{"part1/graph.dgl", "byte 4184", "too few"}},
		{"inner node marked halo", "random-2", "part1/graph.dgl", func(b []byte) []byte {
			at := bytes.Index(b, []byte("inner_node"))
			b[at+10+48] = 0
			return b
		}, []string{"local node 0", "inner 0"}},
		{"features truncated", "random-2", "part0/node_feat.dgl", func(b []byte) []byte { return b[:len(b)-1] },
			[]string{"part0/node_feat.dgl", "byte "}},
		{"tensors missing", "random-2", "part0/node_feat.dgl", patch(8, 9), []string{"9 tensors announced"}},
		{"infinite feature", "random-2", "part0/node_feat.dgl", func(b []byte) []byte {
			at := bytes.Index(b, []byte("_N/feat")) + 7 + 56
			return patch(at+4, 0, 0, 0x80, 0x7f)(b)
		}, []string{"part 0", "features", "element", "+Inf"}},
		{"mask of 2", "random-2", "part0/node_feat.dgl", func(b []byte) []byte {
			return patch(bytes.Index(b, []byte("_N/val_mask"))+11+48, 2)(b)
		}, []string{"part 0", "val_mask", "is 2"}},
		{"class of 2⁴⁰", "random-2", "part0/node_feat.dgl", func(b []byte) []byte {
			return patch(bytes.Index(b, []byte("_N/label"))+8+48+8+5, 1)(b)
		}, []string{"part 0", "label", "row 1 must be a class from 0 to 1048575, or -1 for none (got 1.0995116e+12)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, c.in)
			edit(t, filepath.Join(dir, c.file), c.change)
			p, err := Read(dir)
			if err == nil {
				_, err = shardsOf(p, Names{})
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(filepath.ToSlash(err.Error()), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestNameFaults(t *testing.T) {
	p := open(t, "typed-random-2")
	for _, c := range []struct {
		names Names
		want  string
	}{
		{Names{Features: "none"}, `column "none"`},
		{Names{Label: "none"}, `column "none"`},
		{Names{Label: "feat"}, "author/feat"},
		{Names{Weight: "year"}, `have no column "year"`},
	} {
		if _, err := shardsOf(p, c.names); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.names, err, c.want)
		}
	}
	shards, err := shardsOf(p, Names{Features: "paper/feat", Label: "paper/label"})
	if err != nil || shards[0].X.Cols() != 5 || shards[0].Labels.Classes != 4 {
		t.Errorf("features of papers alone: %v", err)
	}
}

// FuzzPart reads any bytes as a description and part 0's graph.
func FuzzPart(f *testing.F) {
	for _, name := range cases {
		dir := filepath.Join("testdata", name)
		config, err := os.ReadFile(filepath.Join(dir, "small.json"))
		if err != nil {
			f.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "part0", "graph.dgl"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(config, b[dataAt:])
	}
	f.Fuzz(func(t *testing.T, config, body []byte) {
		var head bytes.Buffer
		s := &sink{w: &head}
		s.u64(fileMagic, fileVersion, heteroKind, 1)
		s.bytes(make([]byte, dataAt-32))
		g, err := parseGraph("graph.dgl", append(head.Bytes(), body...))
		if err != nil {
			return
		}
		for k := range g.src {
			if g.src[k] < 0 || g.src[k] >= int64(g.nodes) || g.dst[k] < 0 || g.dst[k] >= int64(g.nodes) {
				t.Fatalf("edge %d of %d nodes: %d to %d", k, g.nodes, g.src[k], g.dst[k])
			}
		}
		c, err := parseConfig("small.json", config)
		if err != nil {
			return
		}
		p, err := c.inner(0, g)
		if err != nil {
			return
		}
		for k := range p.Src {
			if int(p.Dst[k]) >= p.Inner || int(p.Type[k]) >= len(c.edges.names) {
				t.Fatalf("edge %d into node %d of %d inner ones, type %d", k, p.Dst[k], p.Inner, p.Type[k])
			}
		}
	})
}

// FuzzTensors reads a file of columns.
func FuzzTensors(f *testing.F) {
	if err := fs.WalkDir(os.DirFS("testdata"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_feat.dgl") {
			return err
		}
		b, err := os.ReadFile(filepath.Join("testdata", path))
		f.Add(b)
		return err
	}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := parseTensors("node_feat.dgl", b)
		if err != nil {
			return
		}
		for name, tensor := range all {
			n := int64(1)
			for _, extent := range tensor.Shape {
				n *= extent
			}
			if int64(tensor.Len()) != n {
				t.Fatalf("column %q: %v of %d elements", name, tensor, tensor.Len())
			}
			if v, err := tensor.floats(true); err == nil && len(v) != tensor.Len() {
				t.Fatalf("column %q: %d numbers", name, len(v))
			}
		}
	})
}

func TestHalf(t *testing.T) {
	for h, want := range map[uint16]float32{0: 0, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14, 0x3c00: 1,
		0xbc01: -(1 + 1.0/1024), 0x7bff: 65504} {
		if got := half(h); got != want {
			t.Errorf("%#x is %v, want %v", h, got, want)
		}
	}
	if h := half(0x7c00); h <= 65504 {
		t.Errorf("infinity is %v", h)
	}
}
