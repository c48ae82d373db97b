package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// openBinary opens pairs of little-endian integers of 32 or 64 bits (el32, el64), each followed by a float32 in wel32
// and wel64.
func openBinary(c EdgeConfig) (*Edges, error) {
	wide, weighted := c.Format[len(c.Format)-2:] == "64", c.Format[0] == 'w'
	if c.Weight != "" && (c.Weight != "3" || !weighted) {
		return nil, fmt.Errorf("dataset: %s: weight %q of a list in format %s, want 3 in wel32 and wel64, none in others", c.Path, c.Weight, c.Format)
	}
	p, err := unpack(c.Path)
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
			return e, fmt.Errorf("dataset: %s: byte %d: %d bytes of an edge of %d: truncated", c.Path, at, n, size)
		case err != nil:
			return e, fmt.Errorf("dataset: %s: byte %d: %w", c.Path, at, err)
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
	return &Edges{Path: c.Path, Unit: "byte", Nodes: -1, next: next, close: p.close}, nil
}

// openGalois opens a graph of the Galois system, .gr version 1 or 2: four 64-bit words (version, bytes of edge data,
// nodes, edges), the end of each node's out-edges, their targets in 32 bits (version 1, filled up to a multiple of 8
// bytes) or 64 (version 2), the edge data.
func openGalois(c EdgeConfig) (*Edges, error) {
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	e, err := galois(c, f)
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", c.Path, errors.Join(err, f.Close()))
	}
	return e, nil
}

// edgeData holds the types that edge data may have.
var edgeData = map[string]struct {
	size int64
	get  func([]byte) float32
}{
	"u32": {4, func(b []byte) float32 { return float32(binary.LittleEndian.Uint32(b)) }},
	"f32": {4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"u64": {8, func(b []byte) float32 { return float32(binary.LittleEndian.Uint64(b)) }},
	"f64": {8, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }},
}

const galoisHead = 32

func galois(c EdgeConfig, f *os.File) (*Edges, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	var head [galoisHead]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("header of %d bytes: %w", galoisHead, ended(err))
	}
	version, size, nodes, edges := le.Uint64(head[:]), le.Uint64(head[8:]), le.Uint64(head[16:]), le.Uint64(head[24:])
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("byte 0: version %d, want 1 or 2", version)
	}
	left, wide := uint64(info.Size())-galoisHead, 4*version
	if nodes > left/8 || nodes > math.MaxInt32 || edges > (left-8*nodes)/wide || size > 64 {
		return nil, fmt.Errorf("byte 8: %d nodes, %d edges with %d bytes of data each, in a file of %d bytes", nodes, edges, size, info.Size())
	}
	targets := galoisHead + 8*int64(nodes)
	data := targets + (int64(edges*wide)+7)/8*8
	if edges%2 == 1 && version == 1 && size == 0 && info.Size() == data-4 { // some writers leave out the filling
		data -= 4
	}
	if room := info.Size() - data; room < 0 || size > 0 && edges > uint64(room)/size || uint64(room) != size*edges {
		return nil, fmt.Errorf("byte 0: %d nodes and %d edges with %d bytes of data each take %d bytes more than the header and lists, the file holds %d", nodes, edges, size, size*edges, room)
	}
	section := func(from, to int64) *bufio.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 1<<16)
	}
	ends, list, values := section(galoisHead, targets), section(targets, data), section(data, info.Size())
	kind := edgeData[c.Weight]
	if c.Weight != "" && (kind.size == 0 || kind.size != int64(size)) {
		return nil, fmt.Errorf("weights of type %q, want u32, f32, u64 or f64, for edge data of %d bytes", c.Weight, size)
	}
	node, at, end, buf := int64(-1), int64(0), int64(0), make([]byte, 8)
	read := func(r *bufio.Reader, n int64) ([]byte, error) {
		_, err := io.ReadFull(r, buf[:n])
		if err != nil {
			return nil, fmt.Errorf("dataset: %s: %w", c.Path, ended(err))
		}
		return buf[:n], nil
	}
	next := func() (Edge, error) {
		e := Edge{Weight: 1, At: targets + at*int64(wide)}
		for at == end {
			if node++; node == int64(nodes) {
				if at != int64(edges) {
					return e, fmt.Errorf("dataset: %s: byte %d: the last node's edges end at %d of %d", c.Path, targets-8, at, edges)
				}
				return e, io.EOF
			}
			b, err := read(ends, 8)
			if err != nil {
				return e, err
			}
			if v := le.Uint64(b); v < uint64(at) || v > edges {
				return e, fmt.Errorf("dataset: %s: byte %d: edges of node %d end at %d, want %d to %d", c.Path, galoisHead+8*node, node, v, at, edges)
			}
			end = int64(le.Uint64(b))
		}
		b, err := read(list, int64(wide))
		if err != nil {
			return e, err
		}
		e.Source = node
		if wide == 4 {
			e.Target = int64(le.Uint32(b))
		} else {
			e.Target = int64(le.Uint64(b))
		}
		if c.Weight != "" {
			if b, err = read(values, kind.size); err != nil {
				return e, err
			}
			e.Weight = kind.get(b)
		}
		at++
		return e, nil
	}
	return &Edges{Path: c.Path, Unit: "byte", Nodes: int64(nodes), next: next, close: f.Close}, nil
}
