// Package checkpoint keeps the durable state of a run: what it needs to go on as if it had not
// stopped.
package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// Store keeps the states of one peer's run in its own directory: one file for each of the two newest states, and notes
// that outlive them. It is not safe for concurrent use, nor for two processes.
type Store struct {
	Dir string  // made at the first Save, only for its owner: states may include rows of features
	on  disk.FS // (nil = the machine's)
}

const kept = 2

// Save writes st under the number seq, durably: when it returns nil, the state survives a power cut; when it returns an
// error, the states saved before are unchanged. Afterwards the store has seq and the state before it; it removes
// numbers above seq, which only a run that went back can leave.
func (s *Store) Save(seq uint64, st *State) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if err := disk.WriteStream(s.disk(), s.Path(seq), func(w io.Writer) error { return st.write(w, seq) }); err != nil {
		return err
	}
	all, err := s.List()
	if err != nil {
		return err
	}
	var errs []error
	at := slices.Index(all, seq)
	for i, old := range all {
		if i < at || i >= at+kept {
			errs = append(errs, s.disk().Remove(s.Path(old)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove an old state: %w", err)
	}
	return nil
}

// makeDir makes the directory, and removes files of a process that ended while it wrote.
func (s *Store) makeDir() error {
	if err := disk.MkdirAll(s.disk(), s.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory of states: %w", err)
	}
	return s.removeLeftovers()
}

// Restore returns state seq for a run that goes on from it, as Load does, and removes the states
// above it: not all peers have those, and among the two that a store keeps one has to be that all
// have.
func (s *Store) Restore(seq uint64, fp Fingerprints) (*State, error) {
	st, err := s.Load(seq, fp)
	if err != nil {
		return nil, err
	}
	return st, s.rewind(seq)
}

// rewind removes the states above seq.
func (s *Store) rewind(seq uint64) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	for _, newer := range all {
		if newer > seq {
			if err := s.disk().Remove(s.Path(newer)); err != nil {
				return fmt.Errorf("remove a state that the run goes back from: %w", err)
			}
		}
	}
	return nil
}

// Note returns what KeepNote kept last under a name, nil if there is nothing.
func (s *Store) Note(name string) ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", name, err)
	}
	return b, nil
}

// KeepNote keeps a short text durably in a file of the given name: states come and go, notes stay.
func (s *Store) KeepNote(name string, text []byte) error {
	if s == nil {
		return nil
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	return disk.WriteFile(s.disk(), filepath.Join(s.Dir, name), 0o600, text)
}

// Readable returns the numbers of the states that can be read, the newest first, and the first of
// them, nil if there is none. Damaged ones are skipped; one of another run is a *MismatchError.
func (s *Store) Readable(fp Fingerprints) (seqs []uint64, newest *State, err error) {
	all, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	for _, seq := range all {
		st, err := s.Load(seq, fp)
		if other := (*MismatchError)(nil); errors.As(err, &other) {
			return nil, nil, err
		}
		if err != nil {
			continue
		}
		if newest == nil {
			newest = st
		}
		seqs = append(seqs, seq)
	}
	return seqs, newest, nil
}

// Load returns state seq. The error names the file and what is wrong with it, and is a *MismatchError if the state
// belongs to another run.
func (s *Store) Load(seq uint64, fp Fingerprints) (*State, error) {
	path := s.Path(seq)
	st, err := readState(path)
	if err != nil {
		return nil, err
	}
	if st.Seq != seq {
		return nil, fmt.Errorf("%s must hold state %d (got %d)", path, seq, st.Seq)
	}
	if which := st.Fingerprints.differ(fp); which != nil {
		return nil, &MismatchError{Path: path, Which: which}
	}
	return st, nil
}

// List returns the numbers of the states, the newest first. A directory that does not exist has
// none.
func (s *Store) List() ([]uint64, error) {
	files, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list states: %w", err)
	}
	var all []uint64
	for _, f := range files {
		digits, ok := strings.CutPrefix(f.Name(), statePrefix)
		digits, ok2 := strings.CutSuffix(digits, stateSuffix)
		if seq, err := strconv.ParseUint(digits, 10, 64); ok && ok2 && err == nil &&
			f.Name() == filepath.Base(s.Path(seq)) {
			all = append(all, seq)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}

const (
	statePrefix = "state-"
	stateSuffix = ".ckpt"
)

// Path returns the file of state seq.
func (s *Store) Path(seq uint64) string {
	return filepath.Join(s.Dir, fmt.Sprintf("%s%020d%s", statePrefix, seq, stateSuffix))
}

func (s *Store) disk() disk.FS {
	if s.on == nil {
		return disk.OS{}
	}
	return s.on
}

// removeLeftovers removes temporary files of a process that ended while it wrote: they may be what
// fills the disk.
func (s *Store) removeLeftovers() error {
	files, err := os.ReadDir(s.Dir)
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") && strings.HasSuffix(f.Name(), ".tmp") {
			err = errors.Join(err, s.disk().Remove(filepath.Join(s.Dir, f.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove a half-written state: %w", err)
	}
	return nil
}

// Fingerprints identify the run of a state: a run goes on only if all of them are its own.
type Fingerprints struct {
	Config, Model, Shard [32]byte
}

func (f Fingerprints) differ(want Fingerprints) (which []string) {
	for _, p := range []struct {
		name  string
		equal bool
	}{{"config", f.Config == want.Config}, {"model", f.Model == want.Model}, {"shard", f.Shard == want.Shard}} {
		if !p.equal {
			which = append(which, p.name)
		}
	}
	return which
}

// MismatchError reports that a state was saved by a run with another config, model or shard, or by another version.
type MismatchError struct {
	Path  string
	Which []string // such as "config", "model", "shard"
}

func (e *MismatchError) Error() string {
	// The config of another version differs, too, since it has other fields.
	return fmt.Sprintf("%s was saved with another %s; use the same, the version of Heddle that saved it, "+
		"or another directory of states", e.Path, strings.Join(e.Which, ", another "))
}

// Find returns the stores in dir and below it that hold states, by path. A directory that does not
// exist has none.
func Find(dir string) (all []*Store, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		s := &Store{Dir: path}
		seqs, err := s.List()
		if len(seqs) > 0 {
			all = append(all, s)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// Lock makes a directory of states, and refuses one that another process uses, until release or the end of the process.
// It removes temporary files, which a killed process left there. If the file system has no locks, it refuses nothing
// and removes nothing. An empty dir needs no lock.
func Lock(dir string) (release func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	release, err = disk.Lock(filepath.Join(dir, ".lock"), false)
	if errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%s must be the directory of only one peer (got one %w)", dir, err)
	}
	if err != nil {
		return func() {}, nil
	}
	if err := (&Store{Dir: dir}).removeLeftovers(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
