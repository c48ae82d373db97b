package admission

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// Record is one line of the audit log. Fields that say nothing are left out. Fields are only ever
// added, at the end but for Prev.
type Record struct {
	Seq   uint64 `json:"seq"`            // 1, 2, 3, …
	Time  string `json:"time"`           // RFC 3339, UTC, milliseconds
	Event Event  `json:"event"`          //
	Peer  string `json:"peer,omitempty"` // peer ID of whom it is about
	Name  string `json:"name,omitempty"` // that peer's name

	Federation string `json:"federation,omitempty"`
	Roster     uint64 `json:"roster,omitempty"` // serial
	Plan       string `json:"plan,omitempty"`   // fingerprint of the plan's file

	Door  string `json:"door,omitempty"`  // by which bytes left: halo, reduce, control
	Bytes int64  `json:"bytes,omitempty"` // that left since the door's last record
	Rows  int64  `json:"rows,omitempty"`  // of nodes, that left with them
	Stage string `json:"stage,omitempty"` // encoder, layer 1, …
	Round int    `json:"round,omitempty"` // rounds of the stage that were done

	Rule string `json:"rule,omitempty"` // that refused
	Text string `json:"text,omitempty"` // in words; cut after 1024 bytes

	Prev string `json:"prev"` // SHA-256 of the line before, without its end; zeros for the first
}

// Event says what a record is about.
type Event string

// The events. A log begins anywhere with Began; repaired follows a line that a crash cut off.
const (
	Began     Event = "began"     // a run: plan, roster
	Connected Event = "connected" // to a peer
	Left      Event = "left"      // bytes, by a door
	Refused   Event = "refused"   // by a rule
	Lost      Event = "lost"      // a peer
	Ended     Event = "ended"     // the run
	repaired  Event = "repaired"  // the log itself
)

const (
	maxLine = 8 << 10 // bytes
	maxText = 1 << 10 // bytes
	none    = "0000000000000000000000000000000000000000000000000000000000000000"
)

// Head is the end of a log: how many records it has, and the hash of the last one's line. Kept
// elsewhere (on paper, in another system), it shows later whether what was there then is unchanged.
type Head struct {
	Seq  uint64
	Hash string // 64 hexadecimal digits
}

// String writes a head as ParseHead reads it: "17:9f86d0…".
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Seq, h.Hash) }

// ParseHead reads what String writes.
func ParseHead(s string) (Head, error) {
	n, hash, ok := strings.Cut(s, ":")
	seq, err := strconv.ParseUint(n, 10, 64)
	h := Head{seq, hash}
	if !ok || err != nil || !isFingerprint(hash) || h.String() != s {
		return Head{}, fmt.Errorf("head must be SEQ:HASH with 64 hexadecimal digits (got %q)", s)
	}
	return h, nil
}

// The head beside a log is a line of one size, so that one write in place replaces it. It is
// written after the log's line is on disk, and so is never ahead of it: at most one record behind,
// after a crash.
const headSize = 20 + 1 + 64 + 1

func (h Head) encode() []byte { return fmt.Appendf(nil, "%020d %s\n", h.Seq, h.Hash) }

var errLocked = errors.New("in use by another process")

func headFile(log string) string { return log + ".head" }

func readHead(log string) (Head, error) {
	f, err := os.Open(headFile(log))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, fmt.Errorf("%s is gone: without it nobody can tell whether records are missing at the end", headFile(log))
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
			if isFingerprint(h.Hash) && bytes.Equal(h.encode(), b) {
				return h, nil
			}
		}
	}
	return Head{}, fmt.Errorf("%s was changed: it is not the line that this program writes", headFile(log))
}

// Log is an audit log that this process writes; one process at a time may, one goroutine at a time
// too. It keeps no record in memory.
type Log struct {
	file, head disk.File
	last       Head
	failed     error // the log may end in half a line
	unlock     func()
}

// OpenLog opens the log at path, or begins one. Beside it lie path.head and path.lock. A log whose
// end does not agree with its head is refused; one that a crash left with half a line is cut there
// and says so in a record.
func OpenLog(path string) (*Log, error) { return openLog(disk.OS{}, path) }

func openLog(on disk.FS, path string) (_ *Log, err error) {
	l := &Log{}
	defer func() {
		if err != nil {
			l.Close()
			err = fmt.Errorf("audit log %s: %w", path, err)
		}
	}()
	if err := disk.MkdirAll(on, filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if l.unlock, err = lock(path+".lock", false); err != nil {
		return nil, err
	}
	if err := beginLog(on, path); err != nil {
		return nil, err
	}
	noted, err := readHead(path)
	if err != nil {
		return nil, err
	}
	if l.head, err = on.OpenFile(headFile(path), os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if l.file, err = on.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	last, before, torn, err := tail(l.file, noted)
	if err != nil {
		return nil, err
	}
	// What lies before is VerifyLog's to check; here the end must be where the head says, or one
	// record on.
	if last != noted && !(last.Seq == noted.Seq+1 && before == noted.Hash) {
		return nil, fmt.Errorf("it ends with record %d, which is not the end that %s knows, record %d: records are missing or were changed; see peer audit verify", last.Seq, headFile(path), noted.Seq)
	}
	l.last = last
	at, err := l.file.Seek(-int64(len(torn)), io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if err := l.note(); err != nil {
		return nil, err
	}
	if len(torn) > 0 {
		if err := l.file.Truncate(at); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(torn)
		if err := l.Append(Record{Event: repaired, Text: fmt.Sprintf("a crash left %d bytes of an incomplete line; they are cut off; their SHA-256 was %x", len(torn), sum)}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// beginLog makes the files of a log if there are none. The head comes first: a log without one has
// lost it.
func beginLog(on disk.FS, path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(headFile(path)); errors.Is(err, fs.ErrNotExist) {
		if err := disk.WriteFile(on, headFile(path), 0o600, Head{0, none}.encode()); err != nil {
			return err
		}
	} else if h, err := readHead(path); err != nil || h.Seq > 0 {
		return errors.Join(err, fmt.Errorf("the log is gone, and %s knows of %d records: bring it back, or move that file away to begin another", headFile(path), h.Seq))
	}
	return disk.WriteFile(on, path, 0o600, nil)
}

// tail returns the head of the log in f from its last line, the hash that the line gives for the
// one before it, and the bytes behind the last complete line. A line behind the one that was noted,
// of which power failed to leave some sectors, is among those bytes.
func tail(f disk.File, noted Head) (last Head, before string, torn []byte, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return last, "", nil, err
	}
	b := make([]byte, min(size, 2*maxLine+2))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return last, "", nil, err
	}
	end := bytes.LastIndexByte(b, '\n')
	torn = b[end+1:]
	if len(torn) > maxLine {
		return last, "", nil, fmt.Errorf("its last %d bytes are not a record", len(torn))
	}
	if end < 0 {
		return Head{0, none}, "", torn, nil
	}
	begin := bytes.LastIndexByte(b[:end], '\n') + 1
	line := b[begin:end]
	r, err := parseRecord(line)
	if err != nil && bytes.IndexByte(line, 0) >= 0 && len(b)-begin <= maxLine {
		before := Head{0, none}
		if begin > 0 {
			before = Head{noted.Seq, hashLine(b[bytes.LastIndexByte(b[:begin-1], '\n')+1 : begin-1])}
		}
		if before == noted {
			return noted, "", b[begin:], nil
		}
	}
	if err != nil {
		return last, "", nil, fmt.Errorf("its last line: %w", err)
	}
	return Head{r.Seq, hashLine(line)}, r.Prev, torn, nil
}

func hashLine(line []byte) string {
	h := sha256.Sum256(line)
	return hex.EncodeToString(h[:])
}

// Append adds r to the log; Seq, Time and Prev are filled in. The line is on disk when Append
// returns. After an error the log takes no more: what cannot be recorded should not go on.
func (l *Log) Append(r Record) error {
	if l.failed != nil {
		return l.failed
	}
	r.Seq, r.Prev = l.last.Seq+1, l.last.Hash
	r.Time = time.Now().UTC().Format(timeLayout)
	r.Text = clip(r.Text)
	line := plain(r, false)
	if len(line) > maxLine {
		return fmt.Errorf("audit log: a record must have at most %d bytes (got %d)", maxLine, len(line))
	}
	if _, err := parseRecord(line); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	_, err := l.file.Write(append(line, '\n'))
	if err == nil {
		err = l.file.Sync()
	}
	if err == nil {
		l.last = Head{r.Seq, hashLine(line)}
		err = l.note()
	}
	if err != nil {
		l.failed = fmt.Errorf("audit log: %w", err)
	}
	return l.failed
}

// note writes the head down. It is never ahead of the log, whose line is on disk by now, and is on
// disk itself before the next line goes there.
func (l *Log) note() error {
	if _, err := l.head.WriteAt(l.last.encode(), 0); err != nil {
		return err
	}
	return l.head.Sync()
}

// Close releases the log for other processes.
func (l *Log) Close() error {
	var errs []error
	for _, f := range []disk.File{l.file, l.head} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if l.unlock != nil {
		l.unlock()
	}
	return errors.Join(errs...)
}

// clip shortens text to maxText bytes of valid UTF-8: what a peer caused must not fill the disk
// line by line.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxText {
		return text
	}
	n := maxText - len("…")
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// parseRecord takes exactly what Append writes, without the end of the line.
func parseRecord(line []byte) (Record, error) {
	var r Record
	if len(line) > maxLine {
		return r, fmt.Errorf("record of more than %d bytes", maxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("no record: %w", err)
	}
	if _, err := time.Parse(timeLayout, r.Time); err != nil || r.Seq == 0 || r.Event == "" || !isFingerprint(r.Prev) || len(r.Text) > maxText {
		return r, errors.New("a record must have seq, time, event and prev, and a text of at most 1024 bytes")
	}
	if !bytes.Equal(plain(r, false), line) {
		return r, errors.New("not written as this program writes it")
	}
	return r, nil
}

// VerifyLog reads the whole log at path, in memory for one line, and gives each record to visit
// unless that is nil. It returns the log's head, or what was changed: every line must follow from
// the one before, the end must be where the head beside the log says, and the log must have gone
// through each head in known. The log may grow meanwhile.
func VerifyLog(path string, visit func(Record) error, known ...Head) (Head, error) {
	noted, err := readHead(path)
	if err != nil {
		return Head{}, fmt.Errorf("audit log: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return Head{}, fmt.Errorf("audit log: %w", err)
	}
	defer f.Close()
	known = append(known, noted)
	last, err := walk(f, func(r Record, at Head) error {
		for _, h := range known {
			if h.Seq == at.Seq && h != at {
				return fmt.Errorf("record %d is not the one that was known as %s: it or one before was changed", at.Seq, h)
			}
		}
		if visit == nil {
			return nil
		}
		return visit(r)
	})
	if err != nil {
		return last, fmt.Errorf("audit log %s: %w", path, err)
	}
	for _, h := range known {
		if h.Seq > last.Seq || h.Seq == 0 && h.Hash != none {
			return last, fmt.Errorf("audit log %s: it ends with record %d, and there was a record %d: the end was cut off", path, last.Seq, h.Seq)
		}
	}
	// A writer notes the head after each line, so at most one line lies behind it.
	if noted, err = readHead(path); err == nil && last.Seq > noted.Seq+1 {
		err = fmt.Errorf("records %d to %d were added by another program", noted.Seq+1, last.Seq)
	}
	if err != nil {
		return last, fmt.Errorf("audit log %s: %w", path, err)
	}
	return last, nil
}

// walk reads the lines of a log and gives each record to visit, with the head that the log had
// after it.
func walk(log io.Reader, visit func(Record, Head) error) (last Head, err error) {
	last = Head{0, none}
	lines := bufio.NewReaderSize(log, maxLine+1)
	for {
		line, err := lines.ReadSlice('\n')
		n := last.Seq + 1
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return last, nil
		case errors.Is(err, io.EOF):
			return last, fmt.Errorf("line %d is cut off; if a crash did it, the next run repairs it and says so", n)
		case errors.Is(err, bufio.ErrBufferFull):
			return last, fmt.Errorf("line %d is longer than %d bytes", n, maxLine)
		case err != nil:
			return last, err
		}
		line = line[:len(line)-1]
		r, err := parseRecord(line)
		if err != nil {
			return last, fmt.Errorf("line %d: %w", n, err)
		}
		if r.Seq != n || r.Prev != last.Hash {
			return last, fmt.Errorf("line %d does not follow from the one before: it, or that one, was changed, added or removed", n)
		}
		last = Head{n, hashLine(line)}
		if err := visit(r, last); err != nil {
			return last, err
		}
	}
}
