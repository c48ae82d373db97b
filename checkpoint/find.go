package checkpoint

import (
	"errors"
	"io/fs"
	"path/filepath"
)

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
