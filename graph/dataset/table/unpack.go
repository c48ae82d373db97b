package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Packed is an open file with its decompressors.
type Packed struct {
	io.Reader
	Path  string
	Plain string      // the name without .gz or .zst
	files []io.Closer // closed in reverse order
}

// zstdMemory bounds the window of a zstd stream, and so its memory, in bytes.
const zstdMemory = 1 << 28

// Unpack opens path and decompresses it by its suffix, .gz or .zst.
func Unpack(path string) (*Packed, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: must be a file, which is read more than once (got a pipe or a device)", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &Packed{Reader: f, Path: path, Plain: path, files: []io.Closer{f}}
	var z io.ReadCloser
	if plain, ok := strings.CutSuffix(path, ".gz"); ok {
		p.Plain = plain
		z, err = gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	} else if plain, ok := strings.CutSuffix(path, ".zst"); ok {
		p.Plain = plain
		var d *zstd.Decoder
		if d, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMemory),
			zstd.WithDecoderMaxWindow(zstdMemory)); err == nil {
			z = d.IOReadCloser()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, p.Close()))
	}
	if z != nil {
		p.Reader, p.files = z, append(p.files, z)
	}
	return p, nil
}

// Close closes the file. It may be called more than once.
func (p *Packed) Close() (err error) {
	for _, f := range slices.Backward(p.files) {
		err = errors.Join(err, f.Close())
	}
	p.files = nil
	return err
}

// Bounds of a row of text and of a cell, in bytes.
const (
	maxLine = 1 << 24
	maxCell = 1 << 20
)

// Lines reads a text line by line.
type Lines struct {
	*Packed
	in     *bufio.Scanner
	Number int // line that was read last, from 1
}

// OpenLines opens a text, decompressed by its suffix.
func OpenLines(path string) (*Lines, error) {
	p, err := Unpack(path)
	if err != nil {
		return nil, err
	}
	b := bufio.NewReaderSize(p.Reader, 1<<16)
	head, _ := b.Peek(4)
	if p.Reader = b; bytes.Contains(head, []byte("\x00")) || bytes.Contains(head, []byte("\xff")) {
		if err := (&Table{Packed: p}).decode(); err != nil { // UTF-16
			return nil, errors.Join(err, p.Close())
		}
	}
	l := &Lines{Packed: p, in: bufio.NewScanner(p)}
	l.in.Buffer(make([]byte, 1<<16), maxLine)
	return l, nil
}

// Next returns the next line, valid until the one after it is read, or io.EOF.
func (l *Lines) Next() ([]byte, error) {
	if !l.in.Scan() {
		err := l.in.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errLong
		}
		if err != nil {
			return nil, fmt.Errorf("%s: after line %d: %w", l.Path, l.Number, err)
		}
		return nil, io.EOF
	}
	l.Number++
	if l.Number == 1 {
		return bytes.TrimPrefix(l.in.Bytes(), []byte("\ufeff")), nil
	}
	return l.in.Bytes(), nil
}

// Fault names the file and the line that was read last.
func (l *Lines) Fault(format string, args ...any) error {
	return fmt.Errorf("%s: line %d: %w", l.Path, l.Number, fmt.Errorf(format, args...))
}
