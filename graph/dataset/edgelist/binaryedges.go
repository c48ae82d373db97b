package edgelist

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// openBinary opens pairs of little-endian integers of 32 or 64 bits (el32, el64), each followed by
// a float32 in wel32 and wel64.
func openBinary(c Config) (*List, error) {
	wide, weighted := c.Format[len(c.Format)-2:] == "64", c.Format[0] == 'w'
	if c.Weight != "" && (c.Weight != "3" || !weighted) {
		return nil, fmt.Errorf("edgelist: %s: weight must be 3 in the formats wel32 and wel64, and not given in others (got %q in %s)", c.Path, c.Weight, c.Format)
	}
	p, err := table.Unpack(c.Path)
	if err != nil {
		return nil, err
	}
	size := 8
	if wide {
		size = 16
	}
	if weighted {
		size += 4
	}
	r, buf, le, at := bufio.NewReaderSize(p, 1<<18), make([]byte, size), binary.LittleEndian, int64(0)
	next := func() (Edge, error) {
		e := Edge{Weight: 1, At: at}
		n, err := io.ReadFull(r, buf)
		switch {
		case err == io.EOF:
			return e, err
		case errors.Is(err, io.ErrUnexpectedEOF):
			return e, fmt.Errorf("edgelist: %s: byte %d: %d bytes of an edge of %d: truncated", c.Path, at, n, size)
		case err != nil:
			return e, fmt.Errorf("edgelist: %s: byte %d: %w", c.Path, at, err)
		}
		if wide {
			e.Source, e.Target = int64(le.Uint64(buf)), int64(le.Uint64(buf[8:]))
		} else {
			e.Source, e.Target = int64(int32(le.Uint32(buf))), int64(int32(le.Uint32(buf[4:])))
		}
		if c.Weight != "" {
			e.Weight = math.Float32frombits(le.Uint32(buf[size-4:]))
		}
		at += int64(size)
		return e, nil
	}
	return &List{Path: c.Path, Unit: "byte", Nodes: -1, next: next, close: p.Close}, nil
}

// openGalois opens a graph of the Galois system, .gr version 1 or 2: four 64-bit words (version,
// bytes of edge data, nodes, edges), the end of each node's out-edges, their targets in 32 bits
// (version 1, filled up to a multiple of 8 bytes) or 64 (version 2), the edge data.
func openGalois(c Config) (*List, error) {
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, fmt.Errorf("edgelist: %w", err)
	}
	e, err := galois(c, f)
	if err != nil {
		return nil, fmt.Errorf("edgelist: %s: %w", c.Path, errors.Join(err, f.Close()))
	}
	return e, nil
}

// edgeType is a type of edge data: its bytes, and how they are read.
type edgeType struct {
	size int64
	get  func([]byte) float32
}

// edgeData holds the types that edge data may have.
var edgeData = map[string]edgeType{
	"u32": {4, func(b []byte) float32 { return float32(binary.LittleEndian.Uint32(b)) }},
	"f32": {4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"u64": {8, func(b []byte) float32 { return float32(binary.LittleEndian.Uint64(b)) }},
	"f64": {8, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }},
}

const galoisHead = 32

// galoisFile is a graph of the Galois system while its edges are read, node by node.
type galoisFile struct {
	path         string
	nodes, edges int64
	wide         int64 // bytes of a target
	data         edgeType
	weighted     bool
	targets      int64 // where they begin

	ends, list, values *bufio.Reader // of the three sections
	buf                [8]byte
	node, at, end      int64 // the node whose edges are read, the next edge, the node's last one
}

func galois(c Config, f *os.File) (*List, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	var head [galoisHead]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("header of %d bytes: %w", galoisHead, table.Ended(err))
	}
	version, size, nodes, edges := le.Uint64(head[:]), le.Uint64(head[8:]), le.Uint64(head[16:]), le.Uint64(head[24:])
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("byte 0: version must be 1 or 2 (got %d)", version)
	}
	left, wide := uint64(info.Size())-galoisHead, 4*version
	if nodes > left/8 || nodes > math.MaxInt32 || edges > (left-8*nodes)/wide || size > 64 {
		return nil, fmt.Errorf("byte 8: %d nodes, %d edges with %d bytes of data each, in a file of %d bytes", nodes,
			edges, size, info.Size())
	}
	targets := galoisHead + 8*int64(nodes)
	data := targets + (int64(edges*wide)+7)/8*8
	if edges%2 == 1 && version == 1 && size == 0 && info.Size() == data-4 { // some writers leave out the filling
		data -= 4
	}
	if room := info.Size() - data; room < 0 || size > 0 && edges > uint64(room)/size || uint64(room) != size*edges {
		return nil, fmt.Errorf("byte 0: edge data of %d edges must have %d bytes (got %d after the header and lists of %d nodes)",
			edges, size*edges, room, nodes)
	}
	kind := edgeData[c.Weight]
	if c.Weight != "" && (kind.size == 0 || kind.size != int64(size)) {
		return nil, fmt.Errorf("weights of %d bytes must be of type u32, f32, u64 or f64 and of that size (got %q)",
			size, c.Weight)
	}
	section := func(from, to int64) *bufio.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 1<<16)
	}
	g := &galoisFile{
		path: c.Path, nodes: int64(nodes), edges: int64(edges), wide: int64(wide), data: kind, weighted: c.Weight != "",
		targets: targets, node: -1,
		ends: section(galoisHead, targets), list: section(targets, data), values: section(data, info.Size()),
	}
	return &List{Path: c.Path, Unit: "byte", Nodes: int64(nodes), next: g.next, close: f.Close}, nil
}

// read returns the next n bytes of a section.
func (g *galoisFile) read(r *bufio.Reader, n int64) ([]byte, error) {
	if _, err := io.ReadFull(r, g.buf[:n]); err != nil {
		return nil, fmt.Errorf("edgelist: %s: %w", g.path, table.Ended(err))
	}
	return g.buf[:n], nil
}

// next returns the next edge, io.EOF after the last one.
func (g *galoisFile) next() (Edge, error) {
	e := Edge{Weight: 1, At: g.targets + g.at*g.wide}
	if err := g.advance(); err != nil {
		return e, err
	}
	b, err := g.read(g.list, g.wide)
	if err != nil {
		return e, err
	}
	e.Source = g.node
	if g.wide == 4 {
		e.Target = int64(binary.LittleEndian.Uint32(b))
	} else {
		e.Target = int64(binary.LittleEndian.Uint64(b))
	}
	if g.weighted {
		if b, err = g.read(g.values, g.data.size); err != nil {
			return e, err
		}
		e.Weight = g.data.get(b)
	}
	g.at++
	return e, nil
}

// advance goes to the node of the next edge.
func (g *galoisFile) advance() error {
	for g.at == g.end {
		if g.node++; g.node == g.nodes {
			if g.at != g.edges {
				return fmt.Errorf("edgelist: %s: byte %d: the last node's edges must end at %d (got %d)", g.path,
					g.targets-8, g.edges, g.at)
			}
			return io.EOF
		}
		b, err := g.read(g.ends, 8)
		if err != nil {
			return err
		}
		v := binary.LittleEndian.Uint64(b)
		if v < uint64(g.at) || v > uint64(g.edges) {
			return fmt.Errorf("edgelist: %s: byte %d: edges of node %d must end at %d to %d (got %d)", g.path,
				galoisHead+8*g.node, g.node, g.at, g.edges, v)
		}
		g.end = int64(v)
	}
	return nil
}
