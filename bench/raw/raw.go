// Package raw writes numbers to files for programs in Python.
package raw

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Write writes lists of numbers to files of dir, named as the map says, little-endian and without a header. Lists are
// of int32 or int64.
func Write(dir string, lists map[string]any) error {
	for name, list := range lists {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		switch list := list.(type) {
		case []int64:
			err = inPieces(w, list)
		case []int32:
			err = inPieces(w, list)
		default:
			err = fmt.Errorf("%s: numbers must be int32 or int64 (got %T)", name, list)
		}
		if err := errors.Join(err, w.Flush(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// inPieces writes numbers some at a time: encoding/binary makes a copy of what it writes.
func inPieces[T any](w io.Writer, list []T) error {
	for part := range slices.Chunk(list, 1<<16) {
		if err := binary.Write(w, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	return nil
}
