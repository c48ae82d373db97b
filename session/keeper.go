package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// Keeper watches over one site's part in a run.
type Keeper struct {
	Policy *admission.Policy // nil: anything goes
	Log    *admission.Log    // nil: none
	Stop   func()            // ends a run that cannot be recorded

	guard   *admission.Guarded // nil: before the run, or no policy
	failed  error              // of the log
	sent    comm.Counts        // up to the last record
	written time.Time          // of the last record of bytes
	rounds  int                // of the stage, completed

	store *checkpoint.Store // that keeps what the guard let through; nil: it is forgotten with the process
	spent int64             // what earlier processes let through

	telling sync.Mutex // events come from several goroutines
	onEvent func(train.Event)
}

// NewKeeper returns a keeper without policy and log, which passes events on; onEvent may be nil.
func NewKeeper(onEvent func(train.Event)) *Keeper {
	return &Keeper{Stop: func() {}, written: time.Now(), onEvent: onEvent}
}

// Failed returns why the log could not be written; nil: it could.
func (k *Keeper) Failed() error { return k.failed }

// Within applies the policy's bounds to t: they count over all sessions.
func (k *Keeper) Within(t comm.Transport) comm.Transport {
	if k.Policy == nil {
		return t
	}
	if k.guard == nil {
		k.guard = k.Policy.Guard(t, k.spent, k.keepSent())
	}
	k.guard.Transport = t
	return k.guard
}

// sentNote is the name under which a store keeps the bytes that the policy let through.
const sentNote = "sent"

// Recall begins with what earlier processes of the run let through. It is kept in a directory of its own below that of
// checkpoints, since bytes are sent while a trainer saves.
func (k *Keeper) Recall(state string) error {
	if state == "" {
		return nil
	}
	k.store = &checkpoint.Store{Dir: filepath.Join(state, "policy")}
	b, err := k.store.Note(sentNote)
	if b == nil || err != nil {
		return err
	}
	if k.spent, err = strconv.ParseInt(strings.TrimSuffix(string(b), "\n"), 10, 64); err != nil || k.spent < 0 {
		return fmt.Errorf("%s must hold a number of bytes (got %q)", filepath.Join(k.store.Dir, sentNote), b)
	}
	return nil
}

// Continues reports whether earlier processes of the run sent rows or sums.
func (k *Keeper) Continues() bool { return k.spent > 0 }

// keepSent returns what keeps the bytes that the policy let through; nil: there is nowhere to keep them.
func (k *Keeper) keepSent() func(int64) error {
	if k.store == nil {
		return nil
	}
	return func(n int64) error { return k.store.KeepNote(sentNote, fmt.Appendln(nil, n)) }
}

// Event passes e on, and records what has left at the end of each stage and every minute.
func (k *Keeper) Event(e train.Event) {
	k.telling.Lock()
	defer k.telling.Unlock()
	if k.onEvent != nil {
		k.onEvent(e)
	}
	if k.Log == nil {
		return
	}
	switch e.Kind {
	case train.RoundEnd:
		if k.rounds = e.Round + 1; time.Since(k.written) >= time.Minute {
			k.Left(e.Sent, e.StageName, k.rounds)
		}
	case train.StageEnd:
		k.Left(e.Sent, e.StageName, k.rounds)
		k.rounds = 0
	case train.Trace:
		if e.Sent != (comm.Counts{}) {
			k.Left(e.Sent, e.Text, 0)
		}
	}
}

// Note and Warn send subscribers a text about the sites' connections.
func (k *Keeper) Note(format string, args ...any) {
	k.Event(train.Event{Kind: train.Note, Text: fmt.Sprintf(format, args...)})
}

func (k *Keeper) Warn(format string, args ...any) {
	k.Event(train.Event{Kind: train.Warning, Text: fmt.Sprintf(format, args...)})
}

// Left records what has left since the last record.
func (k *Keeper) Left(total comm.Counts, stage string, round int) {
	for _, d := range []struct {
		door      comm.Door
		now, then int64
	}{
		{comm.Halo, total.Halo, k.sent.Halo},
		{comm.Reduce, total.Reduce, k.sent.Reduce},
		{comm.Control, total.Control, k.sent.Control},
	} {
		if d.now > d.then {
			k.Record(admission.Record{Event: admission.Left, Door: d.door.String(), Bytes: d.now - d.then,
				Stage: stage, Round: round})
		}
	}
	k.sent, k.written = total, time.Now()
}

// Record adds to the log, if there is one. A run that cannot be recorded ends.
func (k *Keeper) Record(r admission.Record) {
	if k.Log == nil || k.failed != nil {
		return
	}
	if k.failed = k.Log.Append(r); k.failed != nil {
		k.Stop()
	}
}

// End records how the run went and closes the log.
func (k *Keeper) End(run error) (err error) {
	if k.guard != nil {
		err = k.guard.Settle()
	}
	if k.Log == nil {
		return err
	}
	text := "done"
	if run != nil {
		text = run.Error()
	}
	last := admission.Record{Event: admission.Ended, Text: text}
	if k.guard != nil {
		last.Bytes = k.guard.Sent() // of all doors
	}
	if k.Record(last); k.failed != nil && !errors.Is(run, k.failed) {
		err = errors.Join(err, k.failed)
	}
	return errors.Join(err, k.Log.Close())
}
