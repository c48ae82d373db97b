package external

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

const (
	pieceKind  = "piece"
	pieceBytes = 1 << 26 // of features in a piece, from which on it ends with the node at hand
	maxPiece   = 1 << 30
)

// piece is some nodes that one peer gives another, who owns them, and what is known of their edges'
// sources.
type piece struct {
	node   []int32 // ascending
	source []int32 // ascending
	owner  []int32 // of each source
	split  []graph.Split
	adj    graph.CSR // nodes × sources
	x      graph.Features
	labels graph.Labels
	ids    []string
}

// deal gives every node of the own slice to its owner, with edges, features, labels and name, and
// returns the shard of what comes.
func (p *sharing) deal() (*shard.Shard, error) {
	parts := make([][]piece, p.team.Size)
	swap := func(out [][]byte) (more bool, err error) {
		in, err := p.swap("nodes and their edges", out, maxPiece)
		if err != nil {
			return false, err
		}
		for q, b := range in {
			if len(b) == 0 {
				continue // it has given all
			}
			more = true
			f, err := section.Decode("nodes and their edges", pieceKind, b)
			if err == nil {
				var got piece
				if got, err = p.read(f, q); err == nil {
					parts[q] = append(parts[q], got)
					continue
				}
			}
			return false, fault(q, "nodes and their edges", "%w", err)
		}
		return more, nil
	}
	lo, hi := p.mine()
	err := p.own(lo, hi, true, func(r *partition.Run) error {
		for at := 0; at < r.N(); {
			end, size := at, int64(0)
			for ; end < r.N() && size < pieceBytes; end++ {
				size += r.Bytes(end)
			}
			out, err := p.pieces(r, at, end)
			if err != nil {
				return err
			}
			if _, err := swap(out); err != nil {
				return err
			}
			at = end
		}
		return nil
	})
	for more := true; more && err == nil; {
		more, err = swap(make([][]byte, p.team.Size))
	}
	if err != nil {
		return nil, err
	}
	s, err := p.assemble(slices.Concat(parts...))
	if err != nil {
		return nil, err
	}
	return s, p.boundary(s)
}

// pieces returns the run's nodes [at, end) for their owners.
func (p *sharing) pieces(r *partition.Run, at, end int) ([][]byte, error) {
	first, n := int64(r.First)+int64(at), int64(end-at)
	all, err := p.table(r, at, end)
	if err != nil {
		return nil, err
	}
	var weight []float32
	if p.weighted {
		weight = make([]float32, r.Ptr[end]-r.Ptr[at])
		if err := section.ReadRange(p.file, "adj/0/weight", r.Ptr[at], weight); err != nil {
			return nil, err
		}
	}
	nodes := make([][]int32, p.team.Size)
	for i := range int32(n) {
		q := p.owner[int32(first)+i]
		nodes[q] = append(nodes[q], i)
	}
	out := make([][]byte, p.team.Size)
	for q, rows := range nodes {
		g := graph.CSR{NumDst: len(rows), NumSrc: p.nodes, RowPtr: []int64{0}}
		own := make([]int32, len(rows))
		split := make([]graph.Split, len(rows))
		var ids []string
		if all.IDs != nil {
			ids = make([]string, len(rows))
		}
		for k, i := range rows {
			own[k], split[k] = int32(first)+i, r.Split[at+int(i)]
			g.Col = append(g.Col, r.Sources(at+int(i))...)
			if weight != nil {
				g.Weight = append(g.Weight, weight[r.Ptr[at+int(i)]-r.Ptr[at]:r.Ptr[at+int(i)+1]-r.Ptr[at]]...)
			}
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
			if ids != nil {
				ids[k] = all.IDs[i]
			}
		}
		if weight != nil && g.Weight == nil {
			g.Weight = []float32{}
		}
		source := slices.Clone(g.Col)
		slices.Sort(source)
		source = slices.Compact(source)
		owner := make([]int32, len(source))
		for k, u := range source {
			owner[k] = p.owner[u]
		}
		for k, u := range g.Col {
			j, _ := slices.BinarySearch(source, u)
			g.Col[k] = int32(j)
		}
		g.NumSrc = len(source)
		list := []section.Section{section.Array("node", own), section.Array("source", source), section.Array("owner", owner), section.Array("split", split)}
		list = append(list, g.Sections(0)...)
		if all.X.Cols() > 0 {
			list = append(list, all.X.Select(rows).Sections("x")...)
		}
		list = append(list, all.Labels.Select(rows).Sections()...)
		list = append(list, section.Strings("ids", ids)...)
		var b bytes.Buffer
		if err := section.Encode(&b, pieceKind, list); err != nil {
			return nil, err
		}
		if b.Len() > maxPiece {
			return nil, fmt.Errorf("external: nodes %d to %d must take at most %d bytes (got %d)", first, first+n, maxPiece, b.Len())
		}
		out[q] = b.Bytes()
	}
	return out, nil
}

// table reads features, labels and names of the run's nodes [at, end).
func (p *sharing) table(r *partition.Run, at, end int) (g graph.Graph, err error) {
	first, n := int64(r.First)+int64(at), end-at
	if p.xcols > 0 {
		g.X.Dense = mat.New(n, p.xcols)
		if err := section.ReadRange(p.file, "x/dense", first*int64(p.xcols), g.X.Dense.Data); err != nil {
			return g, err
		}
	}
	if p.sparse {
		var shape [2]int64
		if err := section.ReadRange(p.file, "x/shape", 0, shape[:]); err != nil {
			return g, err
		}
		x := &mat.Sparse{Rows: n, Cols: int(shape[1]), RowPtr: make([]int64, n+1)}
		lo, hi := r.XPtr[at], r.XPtr[end]
		if lo < 0 || lo > hi || hi-lo > maxPiece {
			return g, p.file.Errorf("x/row_ptr", "nodes %d to %d have values %d to %d", first, first+int64(n), lo, hi)
		}
		for k := range x.RowPtr {
			x.RowPtr[k] = r.XPtr[at+k] - lo
		}
		x.Col, x.Val = make([]int32, hi-lo), make([]float32, hi-lo)
		if err := section.ReadRange(p.file, "x/col", lo, x.Col); err != nil {
			return g, err
		}
		if err := section.ReadRange(p.file, "x/val", lo, x.Val); err != nil {
			return g, err
		}
		g.X.Sparse = x
	}
	if err := g.X.Valid(); err != nil {
		return g, p.file.Errorf("x", "nodes %d to %d: %w", first, first+int64(n), err)
	}
	if g.Labels, err = p.labels(first, n); err != nil {
		return g, err
	}
	if shape, err := p.file.Shape("ids/ptr", section.I64); err != nil || shape == nil {
		return g, err
	}
	g.IDs, err = p.strings("ids", first, n)
	return g, err
}

func (p *sharing) labels(first int64, n int) (l graph.Labels, err error) {
	var classes [1]int64
	if err := section.ReadRange(p.file, "y/classes", 0, classes[:]); err != nil {
		return l, err
	}
	if l.Classes = int(classes[0]); classes[0] < 0 || classes[0] > maxPiece {
		return l, p.file.Errorf("y/classes", "%d classes", classes[0])
	}
	if shape, _ := p.file.Shape("y/class", section.I32); shape != nil {
		l.Class = make([]int32, n)
		if err := section.ReadRange(p.file, "y/class", first, l.Class); err != nil {
			return l, err
		}
	}
	if shape, _ := p.file.Shape("y/bits", section.U8); shape != nil {
		l.Bits = make([]uint8, n*l.Classes)
		if err := section.ReadRange(p.file, "y/bits", first*int64(l.Classes), l.Bits); err != nil {
			return l, err
		}
	}
	if shape, _ := p.file.Shape("y/values", section.F32); shape != nil {
		l.Values = make([]float32, n*l.Classes)
		if err := section.ReadRange(p.file, "y/values", first*int64(l.Classes), l.Values); err != nil {
			return l, err
		}
	}
	if shape, _ := p.file.Shape("y/names/ptr", section.I64); shape != nil {
		if l.Names, err = p.strings("y/names", 0, l.Classes); err != nil {
			return l, err
		}
	}
	if err := l.Valid(n); err != nil {
		return l, p.file.Errorf("y", "nodes %d to %d: %w", first, first+int64(n), err)
	}
	return l, nil
}

// strings reads n strings of a list from the first-th on.
func (p *sharing) strings(name string, first int64, n int) ([]string, error) {
	ptr := make([]int64, n+1)
	if err := section.ReadRange(p.file, name+"/ptr", first, ptr); err != nil {
		return nil, err
	}
	if ptr[0] < 0 || !slices.IsSorted(ptr) || ptr[n]-ptr[0] > maxPiece {
		return nil, p.file.Errorf(name+"/ptr", "strings %d to %d are bytes %d to %d", first, first+int64(n), ptr[0], ptr[n])
	}
	text := make([]byte, ptr[n]-ptr[0])
	if err := section.ReadRange(p.file, name+"/text", ptr[0], text); err != nil {
		return nil, err
	}
	list := make([]string, n)
	for k := range list {
		list[k] = string(text[ptr[k]-ptr[0] : ptr[k+1]-ptr[0]])
	}
	return list, nil
}

// read checks what peer q gives: nodes of its slice.
func (p *sharing) read(f *section.Arrays, q int) (g piece, err error) {
	if g.node, err = section.Values[int32](f, "node"); err != nil {
		return g, err
	}
	n := len(g.node)
	if k := shard.FirstBad(g.node, p.first[q], p.first[q+1]); k >= 0 {
		return g, f.Errorf("node", "node %d is not ascending, or not of slice %d", g.node[k], q)
	}
	if g.source, err = section.Values[int32](f, "source"); err != nil {
		return g, err
	}
	if k := shard.FirstBad(g.source, 0, int32(p.nodes)); k >= 0 {
		return g, f.Errorf("source", "source %d is not ascending, or no node", g.source[k])
	}
	if g.owner, err = section.Values[int32](f, "owner", len(g.source)); err != nil {
		return g, err
	}
	for k, o := range g.owner {
		if o < 0 || int(o) >= p.team.Size {
			return g, f.Errorf("owner", "owner of node %d is %d, of %d parts", g.source[k], o, p.team.Size)
		}
	}
	if g.split, err = section.Values[graph.Split](f, "split", n); err != nil {
		return g, err
	}
	if g.adj, err = graph.ReadCSR(f, 0, n, len(g.source)); err != nil {
		return g, err
	}
	if g.x, err = graph.ReadFeatures(f, "x", n); err != nil {
		return g, err
	}
	if g.labels, err = graph.ReadLabels(f, n); err != nil {
		return g, err
	}
	g.ids, err = f.Strings("ids", n)
	return g, err
}

// assemble puts the pieces, in the order of their nodes, together to the shard, but for its
// boundary lists.
func (p *sharing) assemble(pieces []piece) (*shard.Shard, error) {
	rank, k := p.team.Rank, p.team.Size
	s := &shard.Shard{Rank: rank, Parts: k, Nodes: int64(p.nodes), Boundary: make([][]int32, k), Split: []graph.Split{}}
	name, err := p.all("name")
	if err != nil {
		return nil, err
	}
	encoding, err := p.all("encoding")
	if err != nil {
		return nil, err
	}
	if s.Name = string(name); len(encoding) > 0 {
		s.Encoding = encoding
	}
	owner := make([]int32, p.nodes)
	for v := range owner {
		owner[v] = -1
	}
	g := graph.CSR{NumSrc: p.nodes, RowPtr: []int64{0}}
	if p.weighted {
		g.Weight = []float32{}
	}
	for _, one := range pieces {
		for i, v := range one.node {
			s.Global = append(s.Global, int64(v))
			col, _ := one.adj.Row(i)
			for _, j := range col {
				g.Col = append(g.Col, one.source[j])
			}
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		}
		if p.weighted {
			if one.adj.Weight == nil && len(one.adj.Col) > 0 {
				return nil, fmt.Errorf("external: edges without weights, where the graph has them")
			}
			g.Weight = append(g.Weight, one.adj.Weight...)
		}
		for j, u := range one.source {
			if owner[u] >= 0 && owner[u] != one.owner[j] {
				return nil, fmt.Errorf("external: node %d is reported as part %d's and as part %d's", u, owner[u], one.owner[j])
			}
			owner[u] = one.owner[j]
		}
		s.Split = append(s.Split, one.split...)
	}
	if s.X, err = p.stack(pieces); err != nil {
		return nil, err
	}
	if s.Labels, s.IDs, err = p.marks(pieces); err != nil {
		return nil, err
	}
	s.Owned = len(s.Global)
	g.NumDst = s.Owned
	to := appendHalo(s, owner)
	rows := make([]int32, s.Owned)
	for i := range rows {
		rows[i] = int32(i)
	}
	s.Adj = *g.Relabel(rows, to, len(s.Global))
	return s, nil
}

// appendHalo appends the nodes that other parts own, part after part, to the shard's own, and
// returns the source that each node of the graph is.
func appendHalo(s *shard.Shard, owner []int32) (to []int32) {
	to = make([]int32, len(owner))
	for i, v := range s.Global {
		to[v] = int32(i)
		owner[v] = int32(s.Rank)
	}
	halo := make([][]int64, s.Parts)
	for v, q := range owner {
		if q >= 0 && int(q) != s.Rank {
			halo[q] = append(halo[q], int64(v))
		}
	}
	s.HaloPtr = []int{s.Owned}
	for _, nodes := range halo {
		for _, v := range nodes {
			to[v] = int32(len(s.Global))
			s.Global = append(s.Global, v)
		}
		s.HaloPtr = append(s.HaloPtr, len(s.Global))
	}
	return to
}

// stack returns the features of the pieces, one below the other.
func (p *sharing) stack(pieces []piece) (x graph.Features, err error) {
	if !p.sparse && p.xcols == 0 {
		return x, nil
	}
	if p.sparse {
		var shape [2]int64
		if err := section.ReadRange(p.file, "x/shape", 0, shape[:]); err != nil {
			return x, err
		}
		x.Sparse = &mat.Sparse{Cols: int(shape[1]), RowPtr: []int64{0}, Col: []int32{}, Val: []float32{}}
	} else {
		x.Dense = mat.Dense{Cols: p.xcols, Stride: p.xcols, Data: []float32{}}
	}
	for _, one := range pieces {
		if one.x.Cols() != x.Cols() || (one.x.Sparse == nil) != (x.Sparse == nil) {
			return x, fmt.Errorf("external: features must have %d columns (got %d)", x.Cols(), one.x.Cols())
		}
		if s := one.x.Sparse; s != nil {
			for _, end := range s.RowPtr[1:] {
				x.Sparse.RowPtr = append(x.Sparse.RowPtr, int64(len(x.Sparse.Col))+end)
			}
			x.Sparse.Rows += s.Rows
			x.Sparse.Col, x.Sparse.Val = append(x.Sparse.Col, s.Col...), append(x.Sparse.Val, s.Val...)
			continue
		}
		x.Dense.Rows += one.x.Dense.Rows
		x.Dense.Data = append(x.Dense.Data, one.x.Dense.Data...)
	}
	return x, nil
}

// marks returns labels and names of the pieces' nodes.
func (p *sharing) marks(pieces []piece) (l graph.Labels, ids []string, err error) {
	if l, err = p.labels(0, 0); err != nil {
		return l, nil, err
	}
	if shape, _ := p.file.Shape("ids/ptr", section.I64); shape != nil {
		ids = []string{}
	}
	for _, one := range pieces {
		if one.labels.Classes != l.Classes || (one.labels.Class == nil) != (l.Class == nil) || (one.labels.Bits == nil) != (l.Bits == nil) ||
			(one.labels.Values == nil) != (l.Values == nil) || (one.ids == nil) != (ids == nil) {
			return l, nil, fmt.Errorf("external: labels or names of another kind than the graph's")
		}
		l.Values = append(l.Values, one.labels.Values...)
		l.Class, l.Bits, ids = append(l.Class, one.labels.Class...), append(l.Bits, one.labels.Bits...), append(ids, one.ids...)
	}
	return l, ids, nil
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
		out[q] = shard.AppendGaps(nil, nodes)
	}
	in, err := p.swap("halo", out, 5*p.nodes+1)
	if err != nil {
		return err
	}
	for q, b := range in {
		s.Boundary[q] = []int32{}
		if q == p.team.Rank {
			continue
		}
		nodes, rest, err := shard.ParseGaps(b, uvarints(b), p.nodes)
		if err == nil && len(rest) > 0 {
			err = errors.New("it ends within a number")
		}
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

// uvarints returns how many uvarints b is: each ends in its only byte below 0x80.
func uvarints(b []byte) (n uint64) {
	for _, c := range b {
		n += uint64(c>>7 ^ 1)
	}
	return n
}
