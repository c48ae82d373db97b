package external

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// deal returns the shard of the nodes that this peer owns, whose rows it reads from the file.
func (p *sharing) deal() (*shard.Shard, error) {
	rank, k := p.team.Rank, p.team.Size
	s := &shard.Shard{Rank: rank, Parts: k, Nodes: int64(p.nodes), Boundary: make([][]int32, k)}
	for v, q := range p.owner {
		if int(q) == rank {
			s.Global = append(s.Global, int64(v))
		}
	}
	s.Owned = len(s.Global)
	name, err := p.all("name")
	if err != nil {
		return nil, err
	}
	s.Name = string(name)
	if s.Encoding, err = p.all("encoding"); err != nil {
		return nil, err
	}
	if len(s.Encoding) == 0 {
		s.Encoding = nil
	}
	if s.Split, _, err = ownRows[graph.Split](p, s, "split", "", 1); err != nil {
		return nil, err
	}
	if s.X, err = p.features(s); err != nil {
		return nil, err
	}
	if s.Labels, err = p.labels(s); err != nil {
		return nil, err
	}
	if p.has("ids/ptr", section.I64) {
		text, ends, err := ownRows[uint8](p, s, "ids/text", "ids/ptr", 0)
		if err != nil {
			return nil, err
		}
		s.IDs = cutText(text, ends)
	}
	if err := p.edgesOf(s); err != nil {
		return nil, err
	}
	return s, p.boundary(s)
}

// ownRows reads what a section has of the nodes that s owns: width elements of each or, if ptr names the section of
// their pointers, those between two of them. ends are then the pointers among rows.
func ownRows[T section.Element](p *sharing, s *shard.Shard, name, ptr string,
	width int64) (rows []T, ends []int64, err error) {
	const near, most = 64, 1 << 12 // nodes of others that are read over, and nodes that are read at once
	var buf []T
	rows, ends = make([]T, 0, int64(s.Owned)*width), []int64{0}
	for own := s.Global[:s.Owned]; len(own) > 0; {
		n := 1
		for n < len(own) && own[n]-own[n-1] <= near && own[n]-own[0] < most {
			n++
		}
		first, run := own[0], make([]int64, own[n-1]-own[0]+2)
		for k := range run {
			run[k] = (first + int64(k)) * width
		}
		if ptr != "" {
			if err := section.ReadRange(p.file, ptr, first, run); err != nil {
				return nil, nil, err
			}
		}
		at, size := run[0], run[len(run)-1]-run[0]
		if !slices.IsSorted(run) {
			return nil, nil, p.file.Errorf(ptr, "pointers must ascend from node %d to node %d", first, own[n-1]+1)
		}
		if _, err := p.file.Elements(name, at, size); err != nil { // before there is room for them
			return nil, nil, err
		}
		buf = room(buf, int(size))
		if err := section.ReadRange(p.file, name, at, buf); err != nil {
			return nil, nil, err
		}
		for _, v := range own[:n] {
			rows = append(rows, buf[run[v-first]-at:run[v-first+1]-at]...)
			ends = append(ends, int64(len(rows)))
		}
		own = own[n:]
	}
	return rows, ends, nil
}

// features returns the features of the nodes that s owns.
func (p *sharing) features(s *shard.Shard) (x graph.Features, err error) {
	at := "x/dense"
	switch {
	case p.sparse:
		at = "x/val"
		x.Sparse = &mat.Sparse{Rows: s.Owned, Cols: p.xcols}
		if x.Sparse.Col, x.Sparse.RowPtr, err = ownRows[int32](p, s, "x/col", "x/row_ptr", 0); err != nil {
			return x, err
		}
		if x.Sparse.Val, _, err = ownRows[float32](p, s, "x/val", "x/row_ptr", 0); err != nil {
			return x, err
		}
	case p.xcols > 0:
		rows, _, err := ownRows[float32](p, s, at, "", int64(p.xcols))
		if err != nil {
			return x, err
		}
		x.Dense = mat.View(s.Owned, p.xcols, rows)
	}
	if err := x.Valid(); err != nil {
		return x, p.file.Errorf(at, "%w", err)
	}
	return x, nil
}

// labels returns the labels of the nodes that s owns.
func (p *sharing) labels(s *shard.Shard) (l graph.Labels, err error) {
	l.Classes = p.classes
	if p.has("y/class", section.I32) {
		if l.Class, _, err = ownRows[int32](p, s, "y/class", "", 1); err != nil {
			return l, err
		}
	}
	if p.has("y/bits", section.U8) {
		if l.Bits, _, err = ownRows[uint8](p, s, "y/bits", "", int64(l.Classes)); err != nil {
			return l, err
		}
	}
	if p.has("y/values", section.F32) {
		if l.Values, _, err = ownRows[float32](p, s, "y/values", "", int64(l.Classes)); err != nil {
			return l, err
		}
	}
	if l.Names, err = p.names("y/names", l.Classes); err != nil {
		return l, err
	}
	if err := l.Valid(s.Owned); err != nil {
		return l, p.file.Errorf("y", "%w", err)
	}
	return l, nil
}

// edgesOf gives s the edges into its nodes, and behind its own nodes those of other parts that these come from, part
// after part.
func (p *sharing) edgesOf(s *shard.Shard) (err error) {
	g := graph.CSR{NumDst: s.Owned, NumSrc: p.nodes}
	if g.Col, g.RowPtr, err = ownRows[int32](p, s, "adj/0/col", "adj/0/row_ptr", 0); err != nil {
		return err
	}
	if p.weighted {
		if g.Weight, _, err = ownRows[float32](p, s, "adj/0/weight", "adj/0/row_ptr", 0); err != nil {
			return err
		}
	}
	if err := g.Valid(); err != nil {
		return p.file.Errorf("adj/0/col", "part %d: %w", s.Rank, err)
	}
	to, rows := slices.Repeat([]int32{-1}, p.nodes), make([]int32, s.Owned)
	for i, v := range s.Global {
		to[v], rows[i] = int32(i), int32(i)
	}
	halo := make([][]int32, s.Parts)
	for _, u := range g.Col {
		if to[u] < 0 {
			to[u] = 0
			halo[p.owner[u]] = append(halo[p.owner[u]], u)
		}
	}
	s.HaloPtr = []int{s.Owned}
	for _, nodes := range halo {
		slices.Sort(nodes)
		for _, v := range nodes {
			to[v] = int32(len(s.Global))
			s.Global = append(s.Global, int64(v))
		}
		s.HaloPtr = append(s.HaloPtr, len(s.Global))
	}
	s.Adj = *g.Relabel(rows, to, len(s.Global))
	return nil
}

// boundary tells every peer which of its nodes the shard has as halo, and notes what the others say
// of this one's.
func (p *sharing) boundary(s *shard.Shard) error {
	out := make([][]byte, p.team.Size)
	for q := range out {
		var nodes []int32
		for _, v := range s.Global[s.HaloPtr[q]:s.HaloPtr[q+1]] {
			nodes = append(nodes, int32(v))
		}
		out[q] = appendCounted(nil, nodes)
	}
	in, err := p.swap("halo", out, 16+5*p.nodes)
	if err != nil {
		return err
	}
	for q, b := range in {
		s.Boundary[q] = []int32{}
		if q == p.team.Rank {
			continue
		}
		nodes, err := countedGaps(b, p.nodes)
		if err != nil {
			return fault(q, "halo", "%w", err)
		}
		for _, v := range nodes {
			i, ok := slices.BinarySearch(s.Global[:s.Owned], int64(v))
			if !ok {
				return fault(q, "halo", "it has node %d as halo of part %d, which does not own it", v, p.team.Rank)
			}
			s.Boundary[q] = append(s.Boundary[q], int32(i))
		}
	}
	return nil
}
