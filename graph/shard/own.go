package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/heddle-gnn/heddle/graph/section"
)

// WriteOwn writes one shard of a partition whose other shards others write at the same time, each
// its own: dir/part-N, and dir/manifest.json, the same for all. gather sends the others some bytes
// and returns what each part's writer sent, in order, with these in their place. The partition's
// fingerprint, which WriteOwn gives the shard, is of the digests of all. On an error nothing is
// left; dir must be empty or absent.
func WriteOwn(dir string, s *Shard, meta Meta, gather func([]byte) ([][]byte, error)) (m *Manifest, err error) {
	err = WriteWhole(dir, func(tmp string) (err error) {
		m, err = fillOwn(tmp, s, meta, gather)
		return err
	})
	return m, err
}

// fillOwn writes this site's part and the manifest of all parts, once the digests of all are known.
func fillOwn(dir string, s *Shard, meta Meta, gather func([]byte) ([][]byte, error)) (*Manifest, error) {
	h := sha256.New()
	if err := section.Encode(h, kind, s.sections()); err != nil {
		return nil, err
	}
	all, err := gather(h.Sum(nil))
	if err != nil {
		return nil, err
	}
	h.Reset()
	for p, digest := range all {
		if len(digest) != sha256.Size {
			return nil, fmt.Errorf("the digest of part %d must have %d bytes (got %d)", p, sha256.Size,
				len(digest))
		}
		h.Write(digest)
	}
	s.Fingerprint = [32]byte(h.Sum(nil))
	if err := s.Valid(); err != nil {
		return nil, err
	}
	own := s.describe()
	if own.Digest, err = WritePart(dir, s.Rank, s.sections()); err != nil {
		return nil, err
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	if all, err = gather(text); err != nil {
		return nil, err
	}
	m := &Manifest{Name: s.Name, Nodes: s.Nodes, Fingerprint: hex.EncodeToString(s.Fingerprint[:]), Meta: meta}
	for p, text := range all {
		var part Part
		if err := json.Unmarshal(text, &part); err != nil {
			return nil, fmt.Errorf("the description of part %d: %w", p, err)
		}
		m.Edges += int64(part.Edges)
		m.Parts = append(m.Parts, part)
	}
	return m, m.Write(dir)
}
