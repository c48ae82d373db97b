package shard

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/internal/disk"
)

const kind = "shard" // of section files

func partName(rank int) string { return fmt.Sprintf("part-%d", rank) }

// WriteDir writes the shards, all of one partition in order, as dir/part-0 and so on, and
// dir/manifest.json, which it returns. Until all of it is on the disk the directory is called
// dir.incomplete; on an error nothing is left. It refuses a dir that has anything in it.
func WriteDir(dir string, shards []*Shard, meta Meta) (m *Manifest, err error) {
	for _, s := range shards {
		if err := s.Valid(); err != nil {
			return nil, err
		}
	}
	if err := Consistent(shards); err != nil {
		return nil, err
	}
	err = WriteWhole(dir, func(tmp string) (err error) {
		m, err = fill(tmp, shards, meta)
		return err
	})
	return m, err
}

// WriteWhole calls fill to write the files of a partition, and renames their directory when all are complete. Until
// then it is called dir.incomplete; on an error nothing is left. It refuses a dir that is not empty.
func WriteWhole(dir string, fill func(tmp string) error) error {
	dir = filepath.Clean(dir)
	if err := Vacant(dir); err != nil {
		return err
	}
	tmp := Incomplete(dir)
	if err := errors.Join(Discard(tmp), os.MkdirAll(tmp, 0o777)); err != nil {
		return err
	}
	err := fill(tmp)
	if err == nil {
		err = publish(tmp, dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(tmp))
	}
	return err
}

// Incomplete returns the name of a partition's directory until it is complete.
func Incomplete(dir string) string { return dir + ".incomplete" }

// Vacant refuses a directory that is not empty, like all functions that write partitions: for callers that check before
// the work.
func Vacant(dir string) error {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return fmt.Errorf("%s is not empty: remove it or choose another directory", dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// publish renames the complete partition at tmp.
func publish(tmp, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return disk.OS{}.SyncDir(filepath.Dir(dir))
}

// fill writes all parts and the manifest into dir.
func fill(dir string, shards []*Shard, meta Meta) (*Manifest, error) {
	m := Describe(shards, meta)
	for p, s := range shards {
		digest, err := WritePart(dir, p, s.sections())
		if err != nil {
			return nil, err
		}
		m.Parts[p].Digest = digest
	}
	return m, m.Write(dir)
}

// WritePart writes the sections of part rank into dir, and returns the manifest's Part.Digest.
func WritePart(dir string, rank int, sections []section.Section) (digest string, err error) {
	sum, err := section.Write(filepath.Join(dir, partName(rank)), kind, sections)
	return hex.EncodeToString(sum[:]), err
}

// Discard removes what an interrupted write left at dir, and refuses to remove anything else.
func Discard(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		if name := strings.TrimPrefix(e.Name(), "."); !strings.HasPrefix(name, "part-") &&
			!strings.HasPrefix(name, manifestName) {
			return fmt.Errorf("%s has %s, which is no file of a partition: remove it", dir, e.Name())
		}
	}
	return os.RemoveAll(dir)
}

// ReadShard maps the part at path, dir/part-N, into memory. It checks the part, and that the manifest next to it
// describes it. The shard's arrays are read only, and invalid after Close.
func ReadShard(path string) (*Shard, io.Closer, error) {
	if _, err := os.Stat(filepath.Join(path, manifestName)); err == nil {
		return nil, nil, fmt.Errorf("%s is a complete partition: name one part of it, such as %s", path,
			filepath.Join(path, partName(0)))
	}
	m, err := ReadManifest(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	return m.open(path)
}

// open maps one part into memory and checks it against the manifest.
func (m *Manifest) open(path string) (*Shard, io.Closer, error) {
	f, err := section.Open(path, kind)
	if err != nil {
		return nil, nil, err
	}
	s, err := fromSections(f)
	if err == nil {
		err = m.check(s, filepath.Base(path), f.Digest())
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	s.file = f
	return s, f, nil
}

// check returns an error unless s, from the file with that name and digest, is the part of m that it claims to be.
func (m *Manifest) check(s *Shard, file string, digest [32]byte) error {
	if got := hex.EncodeToString(s.Fingerprint[:]); got != m.Fingerprint {
		return fmt.Errorf("a part of another partition: of %q with fingerprint %.12s…, where %s is of %q with %.12s…",
			s.Name, got, manifestName, m.Name, m.Fingerprint)
	}
	if s.Parts != len(m.Parts) || s.Nodes != m.Nodes {
		return fmt.Errorf("part %d of %d of a graph of %d nodes, where %s has %d parts of %d nodes", s.Rank, s.Parts,
			s.Nodes, manifestName, len(m.Parts), m.Nodes)
	}
	if file != partName(s.Rank) {
		return fmt.Errorf("the file of part %d must be named %s", s.Rank, partName(s.Rank))
	}
	want, got := m.Parts[s.Rank], s.describe()
	got.Digest = hex.EncodeToString(digest[:])
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the part must be %+v, as in %s (got %+v)", want, manifestName, got)
	}
	for q, p := range m.Parts {
		if len(s.Boundary[q]) != p.Halo[s.Rank] {
			return fmt.Errorf("the part must send %d rows to part %d (got %d)", p.Halo[s.Rank], q, len(s.Boundary[q]))
		}
	}
	return nil
}

// ReadDir opens all parts of the partition in dir, as ReadShard does, and checks that they fit
// together.
func ReadDir(dir string) ([]*Shard, io.Closer, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, nil, err
	}
	var shards []*Shard
	var open closers
	for p := range m.Parts {
		s, c, err := m.open(filepath.Join(dir, partName(p)))
		if err != nil {
			return nil, nil, errors.Join(err, open.Close())
		}
		shards, open = append(shards, s), append(open, c)
	}
	if err := Consistent(shards); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", dir, err), open.Close())
	}
	return shards, open, nil
}

type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}
