package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/graph/shard"
)

// Scratch is what a run that reads or writes objects has of them on this machine: copies in a temporary directory, below
// TMPDIR. Paths of files it returns as they are. The zero value is ready; Close removes the copies.
type Scratch struct {
	dir   string
	named map[string]string // address of each path
	out   *tree
	files string // of out
	state *mirror
}

// Named returns the address of a copy, and any other path as it is.
func (s *Scratch) Named(path string) string { return cmp.Or(s.named[path], path) }

// name remembers the address of a copy.
func (s *Scratch) name(path, address string) {
	if s.named == nil {
		s.named = map[string]string{}
	}
	s.named[path] = address
}

// make returns a new directory of that name.
func (s *Scratch) make(name string) (string, error) {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "heddle-")
		if err != nil {
			return "", fmt.Errorf("objects: %w", err)
		}
		s.dir = dir
	}
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("objects: %w", err)
	}
	return dir, nil
}

// manifest is the file of a partition that says which parts there are.
const manifest = "manifest.json"

// Partition fetches the parts [lo, hi) of the partition at an address, as parts says, and returns their directory.
func (s *Scratch) Partition(ctx context.Context, address string, parts func(count int) (lo, hi int)) (string, error) {
	if !Is(address) {
		return address, nil
	}
	t, err := open(address, os.Getenv)
	if err != nil {
		return "", err
	}
	dir, err := s.make("parts")
	if err != nil {
		return "", err
	}
	if err := t.Fetch(ctx, manifest, filepath.Join(dir, manifest)); err != nil {
		return "", err
	}
	m, err := shard.ReadManifest(dir)
	if err != nil {
		return "", fmt.Errorf("objects: %s: %w", t.At(manifest), err)
	}
	lo, hi := parts(len(m.Parts))
	var list, from []string
	for k := lo; k < hi; k++ {
		name := fmt.Sprintf("part-%d", k)
		if err := t.Fetch(ctx, name, filepath.Join(dir, name)); err != nil {
			return "", err
		}
		list, from = append(list, filepath.Join(dir, name)), append(from, t.At(name))
	}
	s.name(strings.Join(list, ","), strings.Join(from, ","))
	return dir, nil
}

// Parts fetches those of the parts, with commas between them, that are addresses, and returns where they are. They are
// parts of one partition.
func (s *Scratch) Parts(ctx context.Context, paths string) (string, error) {
	if !Is(paths) {
		return paths, nil
	}
	dir, err := s.make("parts")
	if err != nil {
		return "", err
	}
	var local []string
	for _, address := range strings.Split(paths, ",") {
		at, name := path.Split(strings.TrimPrefix(address, scheme))
		t, err := open(scheme+at, os.Getenv)
		if err != nil {
			return "", err
		}
		if local == nil {
			err = t.Fetch(ctx, manifest, filepath.Join(dir, manifest))
		}
		local = append(local, filepath.Join(dir, name))
		if err == nil {
			err = t.Fetch(ctx, name, local[len(local)-1])
		}
		if err != nil {
			return "", err
		}
	}
	s.name(strings.Join(local, ","), paths)
	return strings.Join(local, ","), nil
}

// State returns the directory for the state of a run at an address, with what is there already.
func (s *Scratch) State(ctx context.Context, address string) (string, error) {
	if !Is(address) {
		return address, nil
	}
	t, err := open(address, os.Getenv)
	if err != nil {
		return "", err
	}
	dir, err := s.make("state")
	if err != nil {
		return "", err
	}
	s.name(dir, address)
	s.state = newMirror(t, dir)
	return dir, s.state.Restore(ctx)
}

// saving is how long copying a state may take. An interrupted run still copies its last one.
const saving = 5 * time.Minute

// SaveState copies the state to its address, also when ctx has ended.
func (s *Scratch) SaveState(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saving)
	defer cancel()
	return s.state.Save(ctx)
}

// Out returns the directory for what is written to an address by SaveOut.
func (s *Scratch) Out(address string) (dir string, err error) {
	if !Is(address) {
		return address, nil
	}
	if s.out, err = open(address, os.Getenv); err == nil {
		s.files, err = s.make("out")
	}
	return s.files, err
}

// SaveOut copies the files of the output to its address, those that complete it last, and says so. Without an address it
// does nothing.
func (s *Scratch) SaveOut(ctx context.Context, text io.Writer) error {
	if s.out == nil {
		return nil
	}
	if err := s.out.PutDir(ctx, s.files, manifest, "result.json"); err != nil {
		return err
	}
	_, err := fmt.Fprintf(text, "copied: all of it to %s\n", s.out.At(""))
	return err
}

// Close removes the copies.
func (s *Scratch) Close() error {
	if s.dir == "" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("objects: %w", err)
	}
	return nil
}
