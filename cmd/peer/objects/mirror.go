package objects

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mirror keeps a copy of a directory, such as that of a run's checkpoints, in object storage: first the contents as objects
// named by their SHA-256, then the list of files, a small object that replaces the one before. So whoever reads it finds a
// whole directory, the old one or the new. One process at a time may write to it.
type mirror struct {
	tree *tree
	dir  string
	held map[string]file // by name
}

// list is the name of the object with the list of files.
const list = "files.json"

// file is one of the list.
type file struct {
	Name   string `json:"name"`   // below the directory, with slashes
	Object string `json:"sha256"` // hexadecimal; the content is the object data/SHA256
	Size   int64  `json:"size"`

	changed time.Time // of the file here
}

// newMirror returns the mirror of a directory at an address.
func newMirror(t *tree, dir string) *mirror { return &mirror{t, dir, map[string]file{}} }

// Restore writes the files of the list into the directory. Without a list there are none.
func (m *mirror) Restore(ctx context.Context) error {
	text, err := m.tree.Read(ctx, list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var all []file
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("objects: %s: %w", m.tree.At(list), err)
	}
	for _, f := range all {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return fmt.Errorf("objects: %s: file must lie in the directory (got %q)", m.tree.At(list), f.Name)
		}
		path := filepath.Join(m.dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("objects: %w", err)
		}
		if err := m.tree.Fetch(ctx, "data/"+f.Object, path); err != nil {
			return err
		}
		got, err := describe(m.dir, f.Name)
		if err != nil {
			return err
		}
		if got.Object != f.Object {
			return fmt.Errorf("objects: %s: content must have its name as SHA-256 (got %s)", m.tree.At("data/"+f.Object), got.Object)
		}
		m.held[f.Name] = got
	}
	return nil
}

// Save copies what has changed in the directory since the last time.
func (m *mirror) Save(ctx context.Context) error {
	names, err := filesBelow(m.dir)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(m.held))
	for _, f := range m.held {
		there[f.Object] = true
	}
	now, all, stale := map[string]file{}, []file{}, len(names) != len(m.held)
	for _, name := range names {
		f := m.held[name]
		info, err := os.Stat(filepath.Join(m.dir, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("objects: %w", err)
		}
		if f.Name == "" || f.Size != info.Size() || !f.changed.Equal(info.ModTime()) {
			if f, err = describe(m.dir, name); err != nil {
				return err
			}
			stale = stale || m.held[name].Object != f.Object
		}
		if !there[f.Object] {
			if err := m.tree.PutFile(ctx, "data/"+f.Object, filepath.Join(m.dir, filepath.FromSlash(name))); err != nil {
				return err
			}
			there[f.Object] = true
		}
		now[name], all = f, append(all, f)
	}
	if !stale {
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := m.tree.Put(ctx, list, text); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, f := range now {
		used[f.Object] = true
	}
	old := m.held
	m.held = now
	for _, f := range old { // files that are gone or have another content
		if !used[f.Object] {
			used[f.Object] = true // two files may have had it
			if err := m.tree.remove(ctx, "data/"+f.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe reads a file below dir.
func describe(dir, name string) (file, error) {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return file{}, fmt.Errorf("objects: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return file{}, fmt.Errorf("objects: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return file{}, fmt.Errorf("objects: %w", err)
	}
	return file{name, fmt.Sprintf("%x", sum.Sum(nil)), n, info.ModTime()}, nil
}

// filesBelow returns the files of a directory by name, with slashes, but for those that are being written (.NAME.tmp). A
// directory that does not exist has none.
func filesBelow(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	return names, nil
}
