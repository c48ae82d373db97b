package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heddle-gnn/heddle/internal/chain"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// Record is one line of the audit log. Empty fields are left out. Fields are only ever added, at the end except Prev.
type Record struct {
	Seq   uint64      `json:"seq"`            // 1, 2, 3, …
	Time  string      `json:"time"`           // RFC 3339, UTC, milliseconds
	Event RecordEvent `json:"event"`          //
	Peer  string      `json:"peer,omitempty"` // peer ID of the member that the record is about
	Name  string      `json:"name,omitempty"` // that peer's name

	Federation string `json:"federation,omitempty"`
	Roster     uint64 `json:"roster,omitempty"` // serial
	Plan       string `json:"plan,omitempty"`   // fingerprint of the plan's file

	Door  string `json:"door,omitempty"`  // kind of traffic: halo, reduce, control
	Bytes int64  `json:"bytes,omitempty"` // sent since the last record of this kind
	Rows  int64  `json:"rows,omitempty"`  // of nodes, sent with them
	Stage string `json:"stage,omitempty"` // encoder, layer 1, …
	Round int    `json:"round,omitempty"` // rounds of the stage that were done

	Rule string `json:"rule,omitempty"` // that refused
	Text string `json:"text,omitempty"` // in words; cut after 1024 bytes

	Prev string `json:"prev"` // SHA-256 of the line before, without its end; zeros for the first
}

// RecordEvent is the subject of a record.
type RecordEvent string

// The events. A log begins anywhere with Began; repaired follows a line that a crash cut off.
const (
	Began     RecordEvent = "began"     // a run: plan, roster
	Connected RecordEvent = "connected" // to a peer
	Left      RecordEvent = "left"      // bytes were sent
	Refused   RecordEvent = "refused"   // by a rule
	Lost      RecordEvent = "lost"      // a peer
	Ended     RecordEvent = "ended"     // the run
	repaired  RecordEvent = "repaired"  // the log itself
)

const maxText = 1 << 10 // bytes

// Log is an audit log that this process writes; one process at a time may, one goroutine at a time
// too. It keeps no record in memory.
type Log struct{ lines *chain.File }

// OpenLog opens the log at path, or begins one, with path.head and path.lock next to it. It refuses a log whose end
// does not agree with its head. If a crash left half a line, OpenLog cuts the line off and adds a record of that.
func OpenLog(path string) (*Log, error) { return openLog(disk.OS{}, path) }

func openLog(on disk.FS, path string) (*Log, error) {
	lines, torn, err := chain.Open(on, path, placeOf)
	if errors.Is(err, chain.ErrEnd) {
		err = fmt.Errorf("%w; see heddle audit verify", err)
	}
	if err != nil {
		return nil, fmt.Errorf("audit log %s: %w", path, err)
	}
	l := &Log{lines}
	if len(torn) > 0 {
		sum := sha256.Sum256(torn)
		if err := l.Append(Record{Event: repaired, Text: fmt.Sprintf("a crash left %d bytes of an incomplete line; "+
			"they are cut off; their SHA-256 was %x", len(torn), sum)}); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), l.Close())
		}
	}
	return l, nil
}

// Append adds r to the log; Seq, Time and Prev are filled in. The line is on disk when Append
// returns. After an error of the disk the log takes no more: what cannot be recorded should not go on.
func (l *Log) Append(r Record) error {
	err := l.lines.Append(func(after chain.Head) ([]byte, error) {
		r.Seq, r.Prev = after.Seq+1, after.Hash
		r.Time = time.Now().UTC().Format(timeLayout)
		r.Text = clip(r.Text)
		line := plain(r, false)
		_, err := parseRecord(line)
		return line, err
	})
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// Close releases the log for other processes.
func (l *Log) Close() error { return l.lines.Close() }

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
	if len(line) > chain.MaxLine {
		return r, fmt.Errorf("record of more than %d bytes", chain.MaxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("no record: %w", err)
	}
	if _, err := time.Parse(timeLayout, r.Time); err != nil || r.Seq == 0 || r.Event == "" || !chain.IsHash(r.Prev) ||
		len(r.Text) > maxText {
		return r, errors.New("a record must have seq, time, event and prev, and a text of at most 1024 bytes")
	}
	if !bytes.Equal(plain(r, false), line) {
		return r, errors.New("not written as this program writes it")
	}
	return r, nil
}

// placeOf is the chain.Parse of a log.
func placeOf(line []byte) (uint64, string, error) {
	r, err := parseRecord(line)
	return r.Seq, r.Prev, err
}

// VerifyLog reads the whole log at path, as chain.Verify does, and gives each record to visit unless
// that is nil. It returns the log's head, or what was changed. The log must have gone through each head
// in known. It may grow meanwhile.
func VerifyLog(path string, visit func(Record) error, known ...chain.Head) (chain.Head, error) {
	last, err := chain.Verify(path, placeOf, func(line []byte) error {
		if visit == nil {
			return nil
		}
		r, err := parseRecord(line)
		if err != nil {
			return err
		}
		return visit(r)
	}, known...)
	if err != nil {
		return last, fmt.Errorf("audit log: %w", err)
	}
	return last, nil
}
