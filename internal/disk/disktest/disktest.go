// Package disktest has disks on which writing goes wrong: power is cut in the middle of it, or a
// call fails.
package disktest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/rng"
)

// Recorder is the disk of the machine below one directory, which keeps what it is asked to do. Cut
// then makes the directory anew as a power cut may have left it.
type Recorder struct {
	disk.OS
	root  string
	calls []call
	files int
}

// call is one change of the file system, in the words of a journal.
type call struct {
	kind     string // "create", "write", "truncate", "sync", "mkdir", "rename", "remove", "syncdir"
	name, to string // below root
	file     int    // which file, whatever its name is by now
	off      int64
	data     []byte
}

// NewRecorder returns a disk whose directory root is empty.
func NewRecorder(root string) *Recorder { return &Recorder{root: root} }

// Root is the directory that the recorder keeps.
func (r *Recorder) Root() string { return r.root }

// EachCut calls check for every point at which power may be cut, several times each, with what the
// root may hold then.
func (r *Recorder) EachCut(t *testing.T, check func(t *testing.T, root string, calls int)) {
	t.Helper()
	base := t.TempDir()
	for n := range len(r.calls) + 1 {
		for draw := range uint64(8) {
			root := filepath.Join(base, fmt.Sprintf("%d-%d", n, draw))
			if err := r.Cut(root, n, draw); err != nil {
				t.Fatal(err)
			}
			if check(t, root, n); t.Failed() {
				t.Fatalf("power was cut after call %d of %d, draw %d", n, len(r.calls), draw)
			}
		}
	}
}

// Calls returns how many calls have changed something so far: the number of points after which
// power may be cut.
func (r *Recorder) Calls() int { return len(r.calls) }

func (r *Recorder) below(name string) string {
	rel, err := filepath.Rel(r.root, name)
	if err != nil || strings.HasPrefix(rel, "..") {
		panic(fmt.Sprintf("disktest: %s is not below %s", name, r.root))
	}
	return filepath.ToSlash(rel)
}

func (r *Recorder) note(c call) { r.calls = append(r.calls, c) }

// OpenFile implements disk.FS. A file that was there before is one of the recorder.
func (r *Recorder) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	_, before := os.Stat(name)
	f, err := r.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return r.created(f), nil
	}
	return &file{File: f, on: r, id: r.known(r.below(name))}, nil
}

// CreateTemp implements disk.FS.
func (r *Recorder) CreateTemp(dir, pattern string) (disk.File, error) {
	f, err := r.OS.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return r.created(f), nil
}

func (r *Recorder) created(f disk.File) disk.File {
	r.files++
	r.note(call{kind: "create", name: r.below(f.Name()), file: r.files})
	return &file{File: f, on: r, id: r.files}
}

// known finds the file that has a name now; directories are not renamed.
func (r *Recorder) known(name string) int {
	names := map[string]int{}
	for _, c := range r.calls {
		switch c.kind {
		case "create":
			names[c.name] = c.file
		case "rename":
			names[c.to] = names[c.name]
			delete(names, c.name)
		}
	}
	return names[name]
}

// Mkdir implements disk.FS.
func (r *Recorder) Mkdir(dir string, perm fs.FileMode) error {
	return r.did(r.OS.Mkdir(dir, perm), call{kind: "mkdir", name: r.below(dir)})
}

// did notes a call unless it has failed.
func (r *Recorder) did(err error, c call) error {
	if err == nil {
		r.note(c)
	}
	return err
}

// Rename implements disk.FS.
func (r *Recorder) Rename(from, to string) error {
	id := r.known(r.below(from))
	return r.did(r.OS.Rename(from, to), call{kind: "rename", name: r.below(from), to: r.below(to), file: id})
}

// Remove implements disk.FS.
func (r *Recorder) Remove(name string) error {
	return r.did(r.OS.Remove(name), call{kind: "remove", name: r.below(name)})
}

// SyncDir implements disk.FS. The disk below is not synced: what a recorder keeps is all that
// counts.
func (r *Recorder) SyncDir(dir string) error {
	r.note(call{kind: "syncdir", name: r.below(dir)})
	return nil
}

type file struct {
	disk.File
	on  *Recorder
	id  int
	pos int64
}

func (f *file) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.on.note(call{kind: "write", file: f.id, off: f.pos, data: slices.Clone(b[:n])})
	f.pos += int64(n)
	return n, err
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	f.on.note(call{kind: "write", file: f.id, off: off, data: slices.Clone(b[:n])})
	return n, err
}

func (f *file) Seek(off int64, whence int) (int64, error) {
	at, err := f.File.Seek(off, whence)
	f.pos = at
	return at, err
}

func (f *file) Truncate(size int64) error {
	f.on.note(call{kind: "truncate", file: f.id, off: size})
	return f.File.Truncate(size)
}

func (f *file) Sync() error {
	f.on.note(call{kind: "sync", file: f.id})
	return nil
}

// inode is a file as the disk has it, and what has been asked of it since it was synced.
type inode struct {
	data    []byte
	pending []call
}

// state is the content of a disk: durable names, and changes of names that no SyncDir followed.
type state struct {
	files   map[int]*inode
	names   map[string]int // (0 = a directory)
	pending []call
}

// Cut makes dir what the recorder's root may be when power fails after the first n calls. It has what was synced. With
// draw 0 it has nothing else, with draw 1 everything. With any other draw, a random generator seeded by it decides: a
// call that changed names took place or did not, even if earlier ones did not; a write arrived or did not, by sectors
// of 512 bytes, and if a later one made the file longer there are zeros.
func (r *Recorder) Cut(dir string, n int, draw uint64) error {
	s := state{files: map[int]*inode{}, names: map[string]int{".": 0}}
	for _, c := range r.calls[:n] {
		s.apply(c)
	}
	key := rng.New(draw).FoldString("power cut")
	count := uint64(0)
	happens := func() bool {
		count++
		return draw != 0 && (draw == 1 || key.Float64(count) < 0.5)
	}
	for _, c := range s.pending {
		if happens() {
			s.rename(c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.files)) {
		s.files[id].flush(happens)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return s.write(dir)
}

// flush does what was asked of the file, as far as it happens, and writes sector by sector.
func (f *inode) flush(happens func() bool) {
	for _, c := range f.pending {
		if c.kind == "truncate" {
			if happens() {
				f.data = sized(f.data, int(c.off))
			}
			continue
		}
		for at := 0; at < len(c.data); {
			end := min(len(c.data), at+sector-int(c.off+int64(at))%sector)
			if happens() {
				f.data = sized(f.data, max(len(f.data), int(c.off)+end))
				copy(f.data[int(c.off)+at:], c.data[at:end])
			}
			at = end
		}
	}
	f.pending = nil
}

const sector = 512

func sized(b []byte, n int) []byte {
	out := make([]byte, n)
	copy(out, b)
	return out
}

func (s *state) apply(c call) {
	switch c.kind {
	case "create":
		s.files[c.file] = &inode{}
		s.pending = append(s.pending, c)
	case "mkdir", "rename", "remove":
		s.pending = append(s.pending, c)
	case "write", "truncate":
		f := s.files[c.file]
		f.pending = append(f.pending, c)
	case "sync":
		s.files[c.file].flush(func() bool { return true })
	case "syncdir":
		var left []call
		for _, p := range s.pending {
			if name := p.name; parent(name) == c.name || p.kind == "rename" && parent(p.to) == c.name {
				s.rename(p)
			} else {
				left = append(left, p)
			}
		}
		s.pending = left
	}
}

func parent(name string) string { return filepath.ToSlash(filepath.Dir(name)) }

// rename does one change of names. A rename carries the file whatever became of the name that it
// had before.
func (s *state) rename(c call) {
	switch c.kind {
	case "mkdir":
		s.names[c.name] = 0
	case "create":
		s.names[c.name] = c.file
	case "remove":
		delete(s.names, c.name)
	case "rename":
		s.names[c.to] = c.file
		delete(s.names, c.name)
	}
}

// write makes s the content of dir. A name in a directory that is not there is lost.
func (s *state) write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(s.names)) { // a directory comes before what is in it
		at := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(filepath.Dir(at)); err != nil {
			continue
		}
		var err error
		if id := s.names[name]; id == 0 {
			err = os.MkdirAll(at, 0o700)
		} else {
			err = os.WriteFile(at, s.files[id].data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Failing is a disk whose call number At, from 0, fails with Err; a write at the end then writes half of what it is
// given, one in place nothing. If Lasts is set, all later ones fail, too: the disk is full.
type Failing struct {
	disk.FS
	At    int
	Err   error
	Lasts bool

	calls int
}

// Reached reports whether the call that fails was made.
func (d *Failing) Reached() bool { return d.calls > d.At }

func (d *Failing) next() error {
	d.calls++
	if d.calls-1 == d.At || d.Lasts && d.calls > d.At {
		return d.Err
	}
	return nil
}

// OpenFile implements disk.FS.
func (d *Failing) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &failing{f, d}, nil
}

// CreateTemp implements disk.FS.
func (d *Failing) CreateTemp(dir, pattern string) (disk.File, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	f, err := d.FS.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return &failing{f, d}, nil
}

// Rename implements disk.FS.
func (d *Failing) Rename(from, to string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

// SyncDir implements disk.FS.
func (d *Failing) SyncDir(dir string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.FS.SyncDir(dir)
}

type failing struct {
	disk.File
	on *Failing
}

func (f *failing) Write(b []byte) (int, error) {
	if err := f.on.next(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *failing) WriteAt(b []byte, off int64) (int, error) {
	if err := f.on.next(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

func (f *failing) Sync() error {
	if err := f.on.next(); err != nil {
		return err
	}
	return f.File.Sync()
}
