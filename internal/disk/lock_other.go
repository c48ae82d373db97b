//go:build !unix && !windows

package disk

import (
	"errors"
	"os"
)

// Lock returns an error: a browser has no locks of files.
func Lock(path string, _ bool) (release func(), err error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}

// lockFile returns an error, so that RemoveTemporary removes nothing.
func lockFile(*os.File) error { return errors.ErrUnsupported }

func holdTemporary(string) (release func()) { return func() {} }
