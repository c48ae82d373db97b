package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/plan"
)

// record is a finished run: what was trained, and what came of it. It is a line of a log.
type record struct {
	Data   string            `json:"data"`
	Seed   uint64            `json:"seed"`
	Skew   float64           `json:"skew,omitempty"`
	Labels int               `json:"labels,omitempty"`
	Alone  bool              `json:"alone,omitempty"`
	Pooled bool              `json:"pooled,omitempty"`
	Plan   map[string]string `json:"plan"`

	Refused string    `json:"refused,omitempty"` // why the plan does not fit the data; the fields below are zero
	Test    measure   `json:"test"`
	Val     measure   `json:"val"`
	Stages  []measure `json:"stages,omitempty"` // metric of the test nodes after each
	Halo    int64     `json:"halo"`             // bytes that all peers sent, by purpose
	Reduce  int64     `json:"reduce"`
	Control int64     `json:"control"`
	Trips   int64     `json:"trips"` // messages that follow one another
	Seconds float64   `json:"seconds"`
	Version string    `json:"version"` // of the program
}

func (r record) megabytes() float64 { return float64(r.Halo+r.Reduce+r.Control) / 1e6 }

// measure is a metric in [0, 1], or NaN, which JSON knows as null.
type measure float64

// MarshalJSON implements json.Marshaler.
func (m measure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(m)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *measure) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*m = measure(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(m))
}

// unrecorded are the settings that do not affect a run's outcome, or are recorded otherwise.
var unrecorded = []string{"seed", "transport"}

// asked is the record of e's run with that seed, before it has run.
func (e experiment) asked(seed uint64) record {
	r := record{Data: e.Data, Seed: seed, Skew: e.Skew, Labels: e.Labels, Alone: e.Alone,
		Pooled: e.Pooled, Plan: map[string]string{}}
	for _, s := range plan.Settings(e.Method) {
		if s.Only != "join" && !slices.Contains(unrecorded, s.Name) {
			r.Plan[s.Name] = e.Get(s)
		}
	}
	return r
}

// answers reports whether r is a run that was asked for. A setting that r's program did not know must
// have its default.
func (r record) answers(ask record) bool {
	if r.Data != ask.Data || r.Seed != ask.Seed || r.Skew != ask.Skew || r.Labels != ask.Labels ||
		r.Alone != ask.Alone || r.Pooled != ask.Pooled {
		return false
	}
	for name, value := range ask.Plan {
		was, ok := r.Plan[name]
		if !ok {
			s, _ := plan.Lookup(ask.Plan["method"], name)
			if was = s.Default; was == "" {
				was = (&plan.Plan{}).Get(s)
			}
		}
		if was != value {
			return false
		}
	}
	for name := range r.Plan {
		if _, ok := ask.Plan[name]; !ok {
			return false // the setting was removed
		}
	}
	return true
}

// book has the runs that have finished, and trains those that have not. Its log, if it has one, is a file of a record a
// line, which a later program reads: a table of many hours is made in pieces.
type book struct {
	root    string // of the data sets
	jobs    int    // runs at the same time
	version string // of the program

	data   string // set whose splits were read last
	splits []*graph.Graph

	mu   sync.Mutex
	done []record
	used map[string]bool // versions of the runs that were asked for
	log  *os.File        // (nil = none)
}

// openBook reads the log at path (empty = there is none).
func openBook(path, root string, jobs int) (*book, error) {
	b := &book{root: root, jobs: jobs, version: page.Version(), used: map[string]bool{}}
	if path == "" {
		return b, nil
	}
	log, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	b.log = log
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		var r record
		if err == nil && json.Unmarshal(line, &r) == nil { // else a program was killed while it wrote
			b.done = append(b.done, r)
		}
		if errors.Is(err, io.EOF) {
			if err = nil; len(line) > 0 {
				_, err = log.WriteString("\n")
			}
			return b, err
		} else if err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
}

func (b *book) close() error {
	if b.log == nil {
		return nil
	}
	return b.log.Close()
}

// find returns the run that was asked for.
func (b *book) find(ask record) (record, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range slices.Backward(b.done) {
		if r.answers(ask) {
			b.used[r.Version] = true
			return r, true
		}
	}
	return record{}, false
}

// add keeps a run.
func (b *book) add(r record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = append(b.done, r)
	b.used[r.Version] = true
	if b.log == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = b.log.Write(append(line, '\n'))
	}
	return err
}
