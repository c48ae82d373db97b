package shard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/disk"
)

const (
	manifestName   = "manifest.json"
	manifestFormat = 1
	maxManifest    = 1 << 28 // bytes
)

// Meta records how a partition was made. It is for people, and nothing depends on it.
type Meta struct {
	Policy string   `json:"policy"`          // name of the policy (ParsePolicy), or of another source
	Seed   uint64   `json:"seed"`            // seed of the policy
	Sites  []string `json:"sites,omitempty"` // names of the parts (nil = none)
}

// Manifest describes the parts of a partition without their data. DIR/manifest.json is one.
type Manifest struct {
	Format      int    `json:"format"` // 1
	Name        string `json:"name"`   // the data set's
	Nodes       int64  `json:"nodes"`
	Edges       int64  `json:"edges"`       // stored: both directions of an undirected edge count
	Fingerprint string `json:"fingerprint"` // Shard.Fingerprint in hexadecimal
	Meta
	Parts []Part `json:"parts"`
}

// Part is a part's entry in a manifest.
type Part struct {
	Owned  int    `json:"owned"`            // nodes
	Edges  int    `json:"edges"`            // into owned nodes
	Cut    int    `json:"cut"`              // of them, those from halo nodes
	Halo   []int  `json:"halo"`             // [K] number of halo rows of each part
	Train  int    `json:"train"`            // owned nodes of each split
	Val    int    `json:"val"`              //
	Test   int    `json:"test"`             //
	Bytes  int64  `json:"bytes"`            // stored size of the owned nodes' features: values and, if sparse, columns
	Digest string `json:"digest,omitempty"` // section.Arrays.Digest of its file in hexadecimal; none in memory
}

// Describe returns the manifest of all the shards of one partition, in order.
func Describe(shards []*Shard, meta Meta) *Manifest {
	m := &Manifest{Format: manifestFormat, Name: shards[0].Name, Nodes: shards[0].Nodes,
		Fingerprint: hex.EncodeToString(shards[0].Fingerprint[:]), Meta: meta}
	for _, s := range shards {
		p := s.describe()
		m.Edges += int64(p.Edges)
		m.Parts = append(m.Parts, p)
	}
	return m
}

// describe returns the shard's line in a manifest, without the digest of its file.
func (s *Shard) describe() Part {
	p := Part{Owned: s.Owned, Edges: s.Adj.NumEdges(), Halo: make([]int, s.Parts)}
	if x := s.X.Sparse; x != nil {
		p.Bytes = 8 * x.RowPtr[s.Owned]
	} else {
		p.Bytes = 4 * int64(s.Owned) * int64(s.X.Dense.Cols)
	}
	for _, j := range s.Adj.Col {
		if int(j) >= s.Owned {
			p.Cut++
		}
	}
	for q := range p.Halo {
		p.Halo[q] = s.HaloPtr[q+1] - s.HaloPtr[q]
	}
	for _, split := range s.Split {
		p.CountSplit(split)
	}
	return p
}

// CountSplit counts an owned node in that split.
func (p *Part) CountSplit(s graph.Split) {
	switch s {
	case graph.Train:
		p.Train++
	case graph.Val:
		p.Val++
	case graph.Test:
		p.Test++
	}
}

// Valid returns an error that names the first fault of the manifest, or nil.
func (m *Manifest) Valid() error {
	if m.Format != manifestFormat {
		return fmt.Errorf("format must be %d (got %d)", manifestFormat, m.Format)
	}
	if b, err := hex.DecodeString(m.Fingerprint); err != nil || len(b) != 32 {
		return fmt.Errorf("fingerprint must be 64 hexadecimal digits (got %q)", m.Fingerprint)
	}
	if len(m.Parts) == 0 {
		return fmt.Errorf("no parts")
	}
	if m.Sites != nil && len(m.Sites) != len(m.Parts) {
		return fmt.Errorf("%d names of sites for %d parts", len(m.Sites), len(m.Parts))
	}
	nodes, edges := int64(0), int64(0)
	for r, p := range m.Parts {
		if p.Owned < 0 || int64(p.Owned) > m.Nodes || p.Edges < 0 || p.Cut < 0 || p.Cut > p.Edges || p.Bytes < 0 ||
			p.Train < 0 || p.Val < 0 || p.Test < 0 || p.Train > p.Owned || p.Val > p.Owned-p.Train ||
			p.Test > p.Owned-p.Train-p.Val {
			return fmt.Errorf("part %d: counts %+v do not fit a graph of %d nodes", r, p, m.Nodes)
		}
		if len(p.Halo) != len(m.Parts) {
			return fmt.Errorf("part %d: halo must have one count for each of %d parts (got %d)", r, len(m.Parts),
				len(p.Halo))
		}
		for q, n := range p.Halo {
			if n < 0 || n > m.Parts[q].Owned || q == r && n != 0 {
				return fmt.Errorf("part %d: %d halo rows of part %d, which owns %d", r, n, q, m.Parts[q].Owned)
			}
		}
		if b, err := hex.DecodeString(p.Digest); err != nil || len(b) != 32 && len(b) != 0 {
			return fmt.Errorf("part %d: digest must be 64 hexadecimal digits (got %q)", r, p.Digest)
		}
		nodes, edges = nodes+int64(p.Owned), edges+int64(p.Edges)
	}
	if nodes != m.Nodes || edges != m.Edges {
		return fmt.Errorf("the parts have %d nodes and %d edges, the graph %d and %d", nodes, edges, m.Nodes, m.Edges)
	}
	return nil
}

// encode returns the manifest as it is written.
func (m *Manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "\t")
	return append(b, '\n'), err
}

// Write writes the manifest into dir, in the format of this version.
func (m *Manifest) Write(dir string) error {
	m.Format = manifestFormat
	if err := m.Valid(); err != nil {
		return err
	}
	b, err := m.encode()
	if err != nil {
		return err
	}
	return disk.WriteFile(disk.OS{}, filepath.Join(dir, manifestName), 0o600, b)
}

// decodeManifest reads what encode wrote. Keys that it does not know are refused.
func decodeManifest(b []byte) (*Manifest, error) {
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows at byte %d", d.InputOffset())
	}
	return m, m.Valid()
}

// ReadManifest reads the manifest of the partition in dir.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s must be a partition, as heddle partition or heddle match writes it (%s is missing: "+
			"%w)", dir, manifestName, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxManifest {
		return nil, fmt.Errorf("%s: longer than %d bytes", path, maxManifest)
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
