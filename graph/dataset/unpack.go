package dataset

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// packed is an open file with what unpacks it.
type packed struct {
	io.Reader
	path  string
	plain string // the name without .gz or .zst
	files []io.Closer
}

// zstdMemory bounds what a zstd stream may ask for to be unpacked: its window.
const zstdMemory = 1 << 28

// unpack opens path and unpacks it by its suffix, .gz or .zst.
func unpack(path string) (*packed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	p := &packed{Reader: f, path: path, plain: path, files: []io.Closer{f}}
	var z io.ReadCloser
	if plain, ok := strings.CutSuffix(path, ".gz"); ok {
		p.plain = plain
		z, err = gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	} else if plain, ok := strings.CutSuffix(path, ".zst"); ok {
		p.plain = plain
		var d *zstd.Decoder
		if d, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMemory), zstd.WithDecoderMaxWindow(zstdMemory)); err == nil {
			z = d.IOReadCloser()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", path, errors.Join(err, p.close()))
	}
	if z != nil {
		p.Reader, p.files = z, append(p.files, z)
	}
	return p, nil
}

func (p *packed) close() (err error) {
	for k := len(p.files) - 1; k >= 0; k-- {
		err = errors.Join(err, p.files[k].Close())
	}
	p.files = nil
	return err
}

// maxLine bounds a line of text.
const maxLine = 1 << 24

// lines reads a text line by line.
type lines struct {
	*packed
	in *bufio.Scanner
	n  int // of the line that was read last, from 1
}

func openLines(path string) (*lines, error) {
	p, err := unpack(path)
	if err != nil {
		return nil, err
	}
	l := &lines{packed: p, in: bufio.NewScanner(p)}
	l.in.Buffer(make([]byte, 1<<16), maxLine)
	return l, nil
}

// next returns the next line, valid until the one after it is read, or io.EOF.
func (l *lines) next() ([]byte, error) {
	if !l.in.Scan() {
		if err := l.in.Err(); err != nil {
			return nil, fmt.Errorf("dataset: %s: after line %d: %w", l.path, l.n, err)
		}
		return nil, io.EOF
	}
	l.n++
	return l.in.Bytes(), nil
}

func (l *lines) fault(format string, args ...any) error {
	return fmt.Errorf("dataset: %s: line %d: %w", l.path, l.n, fmt.Errorf(format, args...))
}
