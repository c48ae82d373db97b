package cli

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/heddle-gnn/heddle/graph/shard"
)

// ReadParts reads the data of one of `peers` peers: a part or, if there are fewer peers than parts, several with commas
// between them. It closes the files of several parts, since a peer need not keep both them and the shard into which
// they are merged.
func ReadParts(paths string, peers int) (*shard.Shard, io.Closer, error) {
	var parts []*shard.Shard
	var files closers
	for _, path := range partPaths(paths) {
		s, f, err := shard.ReadShard(path)
		if err != nil {
			return nil, nil, errors.Join(Invalid(err), files.Close())
		}
		parts, files = append(parts, s), append(files, f)
	}
	if len(parts) == 1 && parts[0].Parts == peers {
		return parts[0], files, nil
	}
	s, err := shard.Merge(parts, peers)
	if err != nil && len(parts) == 1 { // the caller reports what does not fit
		return parts[0], files, nil
	}
	if err != nil {
		return nil, nil, errors.Join(Invalidf("%s: %w", paths, err), files.Close())
	}
	return s, io.NopCloser(nil), files.Close()
}

// partPaths splits a list of paths at its commas, except at those in the names of existing files.
func partPaths(list string) (paths []string) {
	for rest := strings.Split(list, ","); len(rest) > 0; {
		n := len(rest)
		for ; n > 1; n-- {
			if _, err := os.Stat(strings.Join(rest[:n], ",")); err == nil {
				break
			}
		}
		paths, rest = append(paths, strings.Join(rest[:n], ",")), rest[n:]
	}
	return paths
}

// closers are closed together.
type closers []io.Closer

func (c closers) Close() (err error) {
	for _, f := range c {
		err = errors.Join(err, f.Close())
	}
	return err
}
