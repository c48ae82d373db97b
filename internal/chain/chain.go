// Package chain keeps files that only grow. Each line has the hash of the line before, so that a change of written
// lines, or a loss at the end, is noticed.
package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// MaxLine is how many bytes a line has at most, its end not counted.
const MaxLine = 8 << 10

// None is the hash in the first line, which has no line before it.
const None = "0000000000000000000000000000000000000000000000000000000000000000"

// Parse takes a line apart: its number, from 1, and the hash that it gives for the line before. It
// must accept nothing but what was written, byte for byte.
type Parse func(line []byte) (seq uint64, before string, err error)

// Head is the end of a file: how many lines it has, and the hash of the last one. Kept
// elsewhere (on paper, in another system), it shows later whether what was there then is unchanged.
type Head struct {
	Seq  uint64 // number of lines
	Hash string // 64 hexadecimal digits
}

// String writes a head as ParseHead reads it: "17:9f86d0…".
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Seq, h.Hash) }

// ParseHead reads what String writes.
func ParseHead(s string) (Head, error) {
	n, hash, ok := strings.Cut(s, ":")
	seq, err := strconv.ParseUint(n, 10, 64)
	h := Head{seq, hash}
	if !ok || err != nil || !IsHash(hash) || h.String() != s {
		return Head{}, fmt.Errorf("head must be SEQ:HASH with 64 hexadecimal digits (got %q)", s)
	}
	return h, nil
}

// The head of a file is a line of one size, so that one write in place replaces it. It is written after the file's line
// is on disk, and so is never ahead of it: at most one line behind, after a crash.
const headSize = 20 + 1 + 64 + 1

func (h Head) encode() []byte { return fmt.Appendf(nil, "%020d %s\n", h.Seq, h.Hash) }

// HeadFile is the name of the file, next to a chain, that has its head.
func HeadFile(path string) string { return path + ".head" }

func readHead(path string) (Head, error) {
	f, err := os.Open(HeadFile(path))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, fmt.Errorf("%s is gone: without it nobody can tell whether records are missing at the end",
			HeadFile(path))
	}
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, headSize+1))
	if err != nil {
		return Head{}, err
	}
	if len(b) == headSize {
		if seq, err := strconv.ParseUint(string(b[:20]), 10, 64); err == nil {
			h := Head{seq, string(b[21 : headSize-1])}
			if IsHash(h.Hash) && bytes.Equal(h.encode(), b) {
				return h, nil
			}
		}
	}
	return Head{}, fmt.Errorf("%s was changed: it is not the line that this program writes", HeadFile(path))
}

// File is a chain that this process writes; one process at a time may, one goroutine at a time too. It
// keeps no line in memory.
type File struct {
	file, head disk.File
	last       Head
	failed     error // the file may end in half a line
	unlock     func()
}

// ErrEnd reports that a chain does not end at the head in its head file.
var ErrEnd = errors.New("records are missing or were changed")

// Open opens the chain at path, or begins one. Next to it are path.head and path.lock. A chain whose end does not agree
// with its head is refused. torn is half a line that a crash left at the end, which Open cuts off.
func Open(on disk.FS, path string, parse Parse) (_ *File, torn []byte, err error) {
	f := &File{}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := disk.MkdirAll(on, filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	if f.unlock, err = disk.Lock(path+".lock", false); err != nil {
		return nil, nil, err
	}
	if err := begin(on, path); err != nil {
		return nil, nil, err
	}
	noted, err := readHead(path)
	if err != nil {
		return nil, nil, err
	}
	if f.head, err = on.OpenFile(HeadFile(path), os.O_WRONLY, 0); err != nil {
		return nil, nil, err
	}
	if f.file, err = on.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	last, before, torn, err := tail(f.file, noted, parse)
	if err != nil {
		return nil, nil, err
	}
	// Verify checks the lines before; here the end must be at the head, or one line after it.
	if last != noted && !(last.Seq == noted.Seq+1 && before == noted.Hash) {
		return nil, nil, fmt.Errorf("it ends with record %d, which is not the end that %s knows, record %d: %w",
			last.Seq, HeadFile(path), noted.Seq, ErrEnd)
	}
	f.last = last
	at, err := f.file.Seek(-int64(len(torn)), io.SeekEnd)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note(); err != nil {
		return nil, nil, err
	}
	if len(torn) > 0 {
		if err := f.file.Truncate(at); err != nil {
			return nil, nil, err
		}
	}
	return f, torn, nil
}

// begin makes the files of a chain if there are none. The head comes first: a chain without one has
// lost it.
func begin(on disk.FS, path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(HeadFile(path)); errors.Is(err, fs.ErrNotExist) {
		if err := disk.WriteFile(on, HeadFile(path), 0o600, Head{0, None}.encode()); err != nil {
			return err
		}
	} else if h, err := readHead(path); err != nil || h.Seq > 0 {
		return errors.Join(err, fmt.Errorf("the file is gone, and %s knows of %d records: bring it back, "+
			"or move that file away to begin another", HeadFile(path), h.Seq))
	}
	return disk.WriteFile(on, path, 0o600, nil)
}

// tail returns the head of the chain in f from its last line, the hash that this line has of the line before it, and
// the bytes behind the last complete line. If a power cut left some sectors of a line behind the noted one unwritten,
// that line is among those bytes.
func tail(f disk.File, noted Head, parse Parse) (last Head, before string, torn []byte, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return last, "", nil, err
	}
	b := make([]byte, min(size, 2*MaxLine+2))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return last, "", nil, err
	}
	end := bytes.LastIndexByte(b, '\n')
	torn = b[end+1:]
	if len(torn) > MaxLine {
		return last, "", nil, fmt.Errorf("its last %d bytes are not a record", len(torn))
	}
	if end < 0 {
		return Head{0, None}, "", torn, nil
	}
	begin := bytes.LastIndexByte(b[:end], '\n') + 1
	line := b[begin:end]
	seq, before, err := parse(line)
	if err != nil && bytes.IndexByte(line, 0) >= 0 && len(b)-begin <= MaxLine {
		at := Head{0, None}
		if begin > 0 {
			at = Head{noted.Seq, hash(b[bytes.LastIndexByte(b[:begin-1], '\n')+1 : begin-1])}
		}
		if at == noted {
			return noted, "", b[begin:], nil
		}
	}
	if err != nil {
		return last, "", nil, fmt.Errorf("its last line: %w", err)
	}
	return Head{seq, hash(line)}, before, torn, nil
}

func hash(line []byte) string {
	h := sha256.Sum256(line)
	return hex.EncodeToString(h[:])
}

// IsHash reports whether s is a hash as lines have it: 64 hexadecimal digits, in small letters.
func IsHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// Head returns the end of the chain.
func (f *File) Head() Head { return f.last }

// Append adds the line that write makes for its place behind the last one, without its end. The line is
// on disk when Append returns. After an error of the disk the file takes no more: what cannot be recorded
// should not go on.
func (f *File) Append(write func(after Head) ([]byte, error)) error {
	if f.failed != nil {
		return f.failed
	}
	line, err := write(f.last)
	if err != nil {
		return err
	}
	if len(line) > MaxLine {
		return fmt.Errorf("a line must have at most %d bytes (got %d)", MaxLine, len(line))
	}
	if _, err = f.file.Write(append(line, '\n')); err == nil {
		err = f.file.Sync()
	}
	if err == nil {
		f.last = Head{f.last.Seq + 1, hash(line)}
		err = f.note()
	}
	f.failed = err
	return err
}

// note writes the head down. It is never ahead of the file, whose line is on disk by now, and is on disk
// itself before the next line goes there.
func (f *File) note() error {
	if _, err := f.head.WriteAt(f.last.encode(), 0); err != nil {
		return err
	}
	return f.head.Sync()
}

// Close releases the chain for other processes.
func (f *File) Close() error {
	var errs []error
	for _, one := range []disk.File{f.file, f.head} {
		if one != nil {
			errs = append(errs, one.Close())
		}
	}
	if f.unlock != nil {
		f.unlock()
	}
	return errors.Join(errs...)
}

// Verify reads the whole chain at path, with one line at a time in memory, and gives each line to visit unless that is
// nil. It returns the chain's head, or what was changed: every line must follow from the one before, the end must be at
// the head in the head file, and the chain must have gone through each head in known. It may grow meanwhile.
func Verify(path string, parse Parse, visit func(line []byte) error, known ...Head) (Head, error) {
	f, err := os.Open(path)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	noted, err := readHead(path)
	if err != nil {
		return Head{}, err
	}
	known = append(known, noted)
	last, err := Walk(f, parse, func(line []byte, at Head) error {
		for _, h := range known {
			if h.Seq == at.Seq && h != at {
				return fmt.Errorf("record %d is not the one that was known as %s: it or one before was changed", at.Seq,
					h)
			}
		}
		if visit == nil {
			return nil
		}
		return visit(line)
	})
	if err != nil {
		return last, fmt.Errorf("%s: %w", path, err)
	}
	for _, h := range known {
		if h.Seq > last.Seq || h.Seq == 0 && h.Hash != None {
			return last, fmt.Errorf("%s: it ends with record %d, and there was a record %d: the end was cut off", path,
				last.Seq, h.Seq)
		}
	}
	// A writer notes the head after each line, so at most one line follows it.
	if noted, err = readHead(path); err == nil && last.Seq > noted.Seq+1 {
		err = fmt.Errorf("records %d to %d were added by another program", noted.Seq+1, last.Seq)
	}
	if err != nil {
		return last, fmt.Errorf("%s: %w", path, err)
	}
	return last, nil
}

// Walk reads the lines of a chain and gives each to visit, with the head that the chain had after it. A
// line is valid until visit returns.
func Walk(chain io.Reader, parse Parse, visit func(line []byte, at Head) error) (last Head, err error) {
	last = Head{0, None}
	lines := bufio.NewReaderSize(chain, MaxLine+1)
	for {
		line, err := lines.ReadSlice('\n')
		n := last.Seq + 1
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return last, nil
		case errors.Is(err, io.EOF):
			return last, fmt.Errorf("line %d is cut off; if a crash did it, the next run repairs it and reports it", n)
		case errors.Is(err, bufio.ErrBufferFull):
			return last, fmt.Errorf("line %d is longer than %d bytes", n, MaxLine)
		case err != nil:
			return last, err
		}
		line = line[:len(line)-1]
		seq, before, err := parse(line)
		if err != nil {
			return last, fmt.Errorf("line %d: %w", n, err)
		}
		if seq != n || before != last.Hash {
			return last, fmt.Errorf("line %d does not follow from the one before: it, or that one, "+
				"was changed, added or removed", n)
		}
		last = Head{n, hash(line)}
		if err := visit(line, last); err != nil {
			return last, err
		}
	}
}
