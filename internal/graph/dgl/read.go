package dgl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Partition is what DGL stored of a whole graph.
type Partition struct {
	Name      string
	Method    string   // how DGL made it: random, metis
	NodeTypes []string // by number
	EdgeTypes []string // by number, as "source:relation:destination"
	Nodes     int64
	Parts     []*Part
	nodes     types
}

// Part is one part. Its nodes are numbered inner first, by ascending global ID, then the halo in
// the order of the file.
type Part struct {
	Inner    int       // nodes that the part owns
	Global   []int64   // [nodes] global ID; inner nodes have one run of them
	Src, Dst []int32   // [edges] of the inner edges, which end at inner nodes
	EdgeID   []int64   // [edges] global ID
	Type     []int32   // [edges] relation
	Outer    int       // edges that end at halo nodes: read past
	Columns  []Columns // [node types] of the part's inner nodes
	Edges    []Columns // [relations] of its inner edges, in their order
}

// Columns are named tensors with one row for each node or edge of a type.
type Columns map[string]Tensor

// Read reads the partition that NAME.json at path describes; path may be its folder if no other one is there.
// Everything that can be compared is: IDs with the maps, counts with the totals, types with the runs, rows with what
// they belong to. An error names the file and, in binary ones, the byte.
func Read(path string) (*Partition, error) {
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	b, err := readFile(path, maxConfig)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(path, b)
	if err != nil {
		return nil, err
	}
	p := &Partition{Name: c.Name, Method: c.Method, NodeTypes: c.nodes.names, EdgeTypes: c.edges.names, Nodes: c.Nodes,
		nodes: c.nodes}
	for k := range c.Parts {
		part, err := c.part(filepath.Dir(path), k)
		if err != nil {
			return nil, err
		}
		p.Parts = append(p.Parts, part)
	}
	return p, nil
}

// locate returns the file NAME.json that path names, or the only such file in the folder path.
func locate(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return path, nil
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".json") || e.IsDir() {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("%s has %s and %s: name the one that describes the partition", path, found,
				e.Name())
		}
		found = e.Name()
	}
	if found == "" {
		return "", fmt.Errorf("%s has no NAME.json, which describes a partition", path)
	}
	return filepath.Join(path, found), nil
}

// readFile reads a regular file of at most `most` bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s: must be a file of at most %d bytes (got %v of %d bytes)", path, most,
			info.Mode().Type(), info.Size())
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

const maxFile = 1 << 40 // bytes of a binary file, which is read into memory whole

// part reads part k.
func (c *config) part(dir string, k int) (*Part, error) {
	path := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	b, err := readFile(path(c.files[k].Graph), maxFile)
	if err != nil {
		return nil, err
	}
	g, err := parseGraph(path(c.files[k].Graph), b)
	if err != nil {
		return nil, err
	}
	p, err := c.inner(k, g)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path(c.files[k].Graph), err)
	}
	edges := make([]int64, len(c.edges.names))
	for _, t := range p.Type {
		edges[t]++
	}
	for t, n := range edges {
		if want := c.edges.ranges[t][k].len(); n != want {
			return nil, fmt.Errorf("%s: there must be %d inner edges of type %s, as in edge_map (got %d)",
				path(c.files[k].Graph), want, c.edges.names[t], n)
		}
	}
	if p.Columns, err = columns(path(c.files[k].Nodes), c.files[k].Nodes != "", c.nodes,
		func(t int) int64 { return c.nodes.ranges[t][k].len() }); err != nil {
		return nil, err
	}
	p.Edges, err = columns(path(c.files[k].Edges), c.files[k].Edges != "", c.edges,
		func(t int) int64 { return edges[t] })
	return p, err
}

// inner takes from g what part k owns.
func (c *config) inner(k int, g *local) (*Part, error) {
	own := c.nodes.of(k)
	p := &Part{Inner: int(own.len())}
	var err error
	if p.Global, err = integers(g.node, "_ID", g.nodes, c.Nodes); err != nil {
		return nil, err
	}
	inside, err := integers(g.node, "inner_node", g.nodes, 2)
	if err != nil {
		return nil, err
	}
	seen := make(map[int64]bool, g.nodes-min(p.Inner, g.nodes))
	for i, id := range p.Global {
		if (inside[i] == 1) != (i < p.Inner) || i < p.Inner && id != own[0]+int64(i) {
			return nil, fmt.Errorf("the part's own nodes, %d of [%d, %d), must come first and in order "+
				"(got local node %d as node %d, inner %d)", p.Inner, own[0], own[1], i, id, inside[i])
		}
		if i < p.Inner {
			continue
		}
		if id >= own[0] && id < own[1] || seen[id] {
			return nil, fmt.Errorf("halo node %d is the part's own, or there twice", id)
		}
		seen[id] = true
	}
	if len(p.Global) < p.Inner {
		return nil, fmt.Errorf("%d nodes are fewer than the %d that the part owns", len(p.Global), p.Inner)
	}
	if err := c.owners(g, p); err != nil {
		return nil, err
	}
	return p, c.innerEdges(k, g, p)
}

// owners compares the columns part_id and _TYPE of the nodes, if there are any, with the map.
func (c *config) owners(g *local, p *Part) error {
	for name, of := range map[string]func(part, kind int) int{
		"part_id": func(part, _ int) int { return part },
		"_TYPE":   func(_, kind int) int { return kind },
	} {
		if _, ok := g.node[name]; !ok {
			continue
		}
		have, err := integers(g.node, name, g.nodes, maxParts)
		if err != nil {
			return err
		}
		for i, id := range p.Global {
			if want := of(c.nodes.place(id)); int64(want) != have[i] {
				return fmt.Errorf("node column %s: node %d must have %d, as in node_map (got %d)", name, id, want,
					have[i])
			}
		}
	}
	return nil
}

// innerEdges keeps the edges that end at inner nodes.
func (c *config) innerEdges(k int, g *local, p *Part) error {
	own := c.edges.of(k)
	ids, err := integers(g.edge, "_ID", len(g.src), c.Edges)
	if err != nil {
		return err
	}
	inside, err := integers(g.edge, "inner_edge", len(g.src), 2)
	if err != nil {
		return err
	}
	var kinds []int64
	if _, ok := g.edge["_TYPE"]; ok {
		if kinds, err = integers(g.edge, "_TYPE", len(g.src), int64(len(c.edges.names))); err != nil {
			return err
		}
	}
	seen := make([]bool, min(own.len(), int64(len(ids))))
	for e, id := range ids {
		if inside[e] == 0 {
			p.Outer++
			continue
		}
		at := id - own[0]
		if at < 0 || at >= int64(len(seen)) || seen[at] || g.dst[e] >= int64(p.Inner) {
			return fmt.Errorf("each of the part's own edges, [%d, %d), must occur once and end in the part "+
				"(got local edge %d as edge %d, into local node %d)", own[0], own[1], e, id, g.dst[e])
		}
		seen[at] = true
		_, kind := c.edges.place(id)
		if kinds != nil && kinds[e] != int64(kind) {
			return fmt.Errorf("edge column _TYPE: edge %d must have %d, as in edge_map (got %d)", id, kind, kinds[e])
		}
		p.Src, p.Dst = append(p.Src, int32(g.src[e])), append(p.Dst, int32(g.dst[e]))
		p.EdgeID, p.Type = append(p.EdgeID, id), append(p.Type, int32(kind))
	}
	return nil
}

// place returns the part and the type of an ID that is in some run.
func (t types) place(id int64) (part, kind int) {
	first := t.ranges[0]
	part, _ = slices.BinarySearchFunc(first, id, func(r Range, id int64) int {
		if r[0] <= id {
			return -1
		}
		return 1
	})
	// If empty parts begin at the same ID, the last of them is found, which is not empty.
	part--
	for kind = range t.ranges {
		if r := t.ranges[kind][part]; id < r[1] {
			return part, kind
		}
	}
	return part, kind
}

// integers returns a column of n integers in [0, limit).
func integers(columns Columns, name string, n int, limit int64) ([]int64, error) {
	t, ok := columns[name]
	if !ok {
		return nil, fmt.Errorf("no column %s", name)
	}
	v, err := t.vector(n, limit)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", name, err)
	}
	return v, nil
}

// columns reads a file of tensors "type/name", each with a row for every thing of its type.
func columns(path string, given bool, t types, rows func(int) int64) ([]Columns, error) {
	out := make([]Columns, len(t.names))
	for k := range out {
		out[k] = Columns{}
	}
	if !given {
		return out, nil
	}
	b, err := readFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	all, err := parseTensors(path, b)
	if err != nil {
		return nil, err
	}
	for key, tensor := range all {
		kind, name := 0, key
		if at := strings.IndexByte(key, '/'); at >= 0 {
			kind, name = t.find(key[:at]), key[at+1:]
		} else if len(t.names) != 1 { // old files leave the type out if there is one
			kind = -1
		}
		if kind < 0 {
			return nil, fmt.Errorf("%s: a column must be named TYPE/NAME with one of the types %s (got %q)", path,
				strings.Join(t.names, ", "), key)
		}
		if len(tensor.Shape) == 0 || tensor.Shape[0] != rows(kind) {
			return nil, fmt.Errorf("%s: column %q must have %d rows (got %v)", path, key, rows(kind), tensor)
		}
		if _, ok := out[kind][name]; ok {
			return nil, errors.New(path + ": column " + key + " occurs twice")
		}
		out[kind][name] = tensor
	}
	return out, nil
}
