package shard

import (
	"bytes"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
)

// sections returns the shard as the sections of its file.
func (s *Shard) sections() []section.Section {
	list := []section.Section{
		section.Array("shard", []int64{int64(s.Rank), int64(s.Parts), int64(s.Owned), int64(len(s.Global)), s.Nodes}),
		section.Array("fingerprint", s.Fingerprint[:]),
		section.Array("name", []byte(s.Name)),
	}
	if s.Encoding != nil {
		list = append(list, section.Array("encoding", s.Encoding))
	}
	if s.Import != nil {
		list = append(list, section.Array("import", s.Import))
	}
	haloPtr, boundaryPtr := make([]int64, s.Parts+1), make([]int64, s.Parts+1)
	var boundary []int32
	for q := range s.Parts + 1 {
		haloPtr[q] = int64(s.HaloPtr[q])
	}
	for q, nodes := range s.Boundary {
		boundary = append(boundary, nodes...)
		boundaryPtr[q+1] = int64(len(boundary))
	}
	list = append(list, section.Array("global", s.Global), section.Array("halo_ptr", haloPtr),
		section.Array("boundary/ptr", boundaryPtr), section.Array("boundary/node", boundary),
		section.Array("split", s.Split))
	list = append(list, s.Adj.Sections(0)...)
	list = append(list, s.Typed.Sections()...)
	list = append(list, s.X.Sections("x")...)
	list = append(list, s.Types.Sections()...)
	if s.EdgeX.Cols > 0 {
		list = append(list, graph.Features{Dense: s.EdgeX}.Sections("edge")...)
		list = append(list, section.Array("edge/global", s.EdgeGlobal))
	}
	list = append(list, s.Labels.Sections()...)
	return append(list, section.Strings("ids", s.IDs)...)
}

// fromSections returns the shard in f, whose arrays share f's memory, and checks all of it.
func fromSections(f *section.Arrays) (*Shard, error) {
	size, err := section.Values[int64](f, "shard", 5)
	if err != nil {
		return nil, err
	}
	for _, v := range size[:4] {
		if v < 0 || v > math.MaxInt32 {
			return nil, f.Errorf("shard", "rank, parts, owned and sources must be 0 to %d (got %v)", math.MaxInt32,
				size[:4])
		}
	}
	s := &Shard{Rank: int(size[0]), Parts: int(size[1]), Owned: int(size[2]), Nodes: size[4]}
	sources := int(size[3])
	print, err := section.Values[uint8](f, "fingerprint", len(s.Fingerprint))
	if err != nil {
		return nil, err
	}
	copy(s.Fingerprint[:], print)
	name, err := section.Values[uint8](f, "name")
	if err != nil {
		return nil, err
	}
	s.Name = string(name)
	if s.Encoding, err = text(f, "encoding"); err != nil {
		return nil, err
	}
	if s.Import, err = text(f, "import"); err != nil {
		return nil, err
	}
	if s.Global, err = section.Values[int64](f, "global", sources); err != nil {
		return nil, err
	}
	if s.HaloPtr, err = pointers(f, "halo_ptr", s.Parts, sources); err != nil {
		return nil, err
	}
	if s.Boundary, err = boundaryLists(f, s.Parts); err != nil {
		return nil, err
	}
	if s.Split, err = section.Values[graph.Split](f, "split", s.Owned); err != nil {
		return nil, err
	}
	g := graph.Graph{Split: s.Split}
	if err := g.ReadTables(f, s.Owned, sources); err != nil {
		return nil, err
	}
	s.setTables(&g)
	if s.Adj, s.Typed, s.EdgeX = g.Adj, g.Typed, g.EdgeX; s.EdgeX.Cols > 0 {
		if s.EdgeGlobal, err = section.Values[int64](f, "edge/global", s.EdgeX.Rows); err != nil {
			return nil, err
		}
	}
	if err := s.Valid(); err != nil {
		return nil, err
	}
	// Any other section of the file would be lost, although its writer expected it to be read.
	var known []string
	for _, one := range s.sections() {
		known = append(known, one.Name)
	}
	for _, one := range f.Sections() {
		if one.Name == "degree" { // of every source: parts were written with it once, and nothing reads it
			continue
		}
		if len(known) == 0 || known[0] != one.Name {
			return nil, f.Errorf(one.Name, "not a section of this version, or not in its place")
		}
		known = known[1:]
	}
	return s, nil
}

// text returns a copy of a section of bytes (nil = there is none).
func text(f *section.Arrays, name string) ([]byte, error) {
	b, err := section.Optional[uint8](f, name)
	return bytes.Clone(b), err
}

// boundaryLists returns the boundary nodes towards each part.
func boundaryLists(f *section.Arrays, parts int) ([][]int32, error) {
	node, err := section.Values[int32](f, "boundary/node")
	if err != nil {
		return nil, err
	}
	ptr, err := pointers(f, "boundary/ptr", parts, len(node))
	if err != nil {
		return nil, err
	}
	if ptr[0] != 0 || ptr[parts] != len(node) {
		return nil, f.Errorf("boundary/ptr", "pointers must go from 0 to %d (got %d to %d)", len(node), ptr[0],
			ptr[parts])
	}
	var lists [][]int32
	for q := range parts {
		lists = append(lists, node[ptr[q]:ptr[q+1]:ptr[q+1]])
	}
	return lists, nil
}

// pointers returns n+1 ascending numbers in [0, most].
func pointers(f *section.Arrays, name string, n, most int) ([]int, error) {
	ptr, err := section.Values[int64](f, name, n+1)
	if err != nil {
		return nil, err
	}
	out := make([]int, n+1)
	for k, v := range ptr {
		if v < 0 || v > int64(most) || k > 0 && v < ptr[k-1] {
			return nil, f.Errorf(name, "pointer %d is %d, not ascending or out of [0, %d]", k, v, most)
		}
		out[k] = int(v)
	}
	return out, nil
}
