package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/train"
)

// Watch shows the progress of a command: a bar on a terminal, log lines elsewhere.
type Watch struct {
	Log *slog.Logger

	w      io.Writer
	fancy  bool                     // w is a terminal
	bar    *progressbar.ProgressBar // nil: none is shown
	every  time.Duration            // between two log lines of progress
	last   time.Time                // of the progress shown last
	tries  bool                     // a candidate of preset auto is trained
	events *os.File                 // gets every event as a line; nil: events are not written
}

// logVariable is the environment variable that makes peers log every round and session if it is
// "debug".
const logVariable = "HEDDLE_LOG"

// WatchFlags say how a run is watched.
type WatchFlags struct {
	quiet  bool
	events string // file
}

// Bind adds the flags.
func (v *WatchFlags) Bind(f *pflag.FlagSet) {
	f.StringVar(&v.events, "events", "", "file for the events of the run, a JSON object a line")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "no progress display")
}

// Start returns a watch that writes to stderr. Its End must be called.
func (v WatchFlags) Start(stderr io.Writer) (*Watch, error) {
	w := NewWatch(stderr, v.quiet)
	if v.events == "" {
		return w, nil
	}
	err := os.MkdirAll(filepath.Dir(v.events), 0o755)
	if err != nil {
		return nil, Invalid(err)
	}
	w.events, err = os.Create(v.events)
	return w, Invalid(err)
}

// NewWatch returns a watch that writes to w, a terminal or not.
func NewWatch(w io.Writer, quiet bool) *Watch {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	if os.Getenv(logVariable) == "debug" {
		level = slog.LevelDebug
	}
	f, ok := w.(*os.File)
	v := &Watch{w: w, fancy: ok && !quiet && term.IsTerminal(int(f.Fd())), every: 5 * time.Second, last: time.Now()}
	v.Log = slog.New(&aroundBar{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), v})
	return v
}

// Warn logs a warning.
func (w *Watch) Warn(text string) { w.Log.Warn(text) }

// Due reports whether it is time to show progress again, of total steps. On a terminal it begins a
// bar.
func (w *Watch) Due(total int) bool {
	every := w.every
	if w.fancy {
		every = 100 * time.Millisecond
		if w.bar == nil {
			w.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w.w), progressbar.OptionSetPredictTime(true),
				progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
		}
	}
	if time.Since(w.last) < every {
		return false
	}
	w.last = time.Now()
	return true
}

// Show sets the bar to done steps and describes it by text. Without a bar it logs message with its
// attributes.
func (w *Watch) Show(done int, text, message string, attributes ...any) {
	if w.bar == nil {
		w.Log.Info(message, attributes...)
		return
	}
	w.bar.Describe(text)
	w.bar.Set(done)
}

// End removes the bar and closes the file of events.
func (w *Watch) End() {
	w.clear()
	if w.events != nil {
		w.stopRecording(w.events.Close())
	}
}

// clear removes the bar.
func (w *Watch) clear() {
	if w.bar != nil {
		w.bar.Clear()
		w.bar = nil
	}
}

// record adds an event to the file of events.
func (w *Watch) record(e train.Event) {
	if w.events == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.events.Write(append(line, '\n'))
	}
	if err != nil {
		w.stopRecording(errors.Join(err, w.events.Close()))
	}
}

// stopRecording stops writing events: a run does not fail for them.
func (w *Watch) stopRecording(err error) {
	if w.events = nil; err != nil {
		w.Log.Warn("the file of events is not complete", "error", err)
	}
}

// aroundBar clears the bar before a line is logged; the bar comes back with the next progress.
type aroundBar struct {
	slog.Handler
	watch *Watch
}

// Handle implements slog.Handler.
func (a *aroundBar) Handle(ctx context.Context, r slog.Record) error {
	if a.watch.bar != nil {
		a.watch.bar.Clear()
	}
	return a.Handler.Handle(ctx, r)
}

// Part returns what shows the events of one of several runs, which name tells: its rounds and what
// goes wrong.
func (w *Watch) Part(name string) func(train.Event) {
	return func(e train.Event) {
		switch e.Kind {
		case train.RoundEnd:
			w.record(e)
			w.round(e, name+": ")
		case train.Warning, train.Resync, train.LostRows:
			w.Event(e)
		default:
			w.record(e)
		}
	}
}

// round shows one round, behind the name of its run.
func (w *Watch) round(e train.Event, of string) {
	if !w.Due(e.Total) {
		return
	}
	bytes := e.Sent.Total()
	text := fmt.Sprintf("%s%s round %d  loss %.4f", of, e.StageName, e.Round, e.Loss)
	if !math.IsNaN(e.Val) {
		text += fmt.Sprintf("  val %s %.4f", e.Metric, e.Val)
	}
	if bytes > 0 {
		text += "  sent " + report.Bytes(bytes)
	}
	w.Show(e.Done, text, of+"round", "stage", e.StageName, "round", e.Round, "loss", e.Loss, "val", e.Val, "bytes", bytes)
}

// Event shows an event of one peer's run.
func (w *Watch) Event(e train.Event) {
	w.record(e)
	switch e.Kind {
	case train.RoundEnd:
		w.Log.Debug("round done", "stage", e.StageName, "round", e.Round)
		w.round(e, "")
	case train.StageEnd:
		level, line := slog.LevelInfo, []any{"stage", e.StageName, "best_round", e.BestRound, "val", e.Val}
		if w.tries {
			level = slog.LevelDebug // the candidate's own line follows
		}
		if !math.IsNaN(e.Test) {
			line = append(line, "test", e.Test)
		}
		w.Log.Log(context.Background(), level, "stage done", append(line, "halo_bytes", e.Sent.Halo, "reduce_bytes", e.Sent.Reduce)...)
	case train.Resync:
		w.Log.Warn("two peers rounded differently; all continue with the parameters of one", "stage", e.StageName,
			"round", e.Round, "from_peer", e.Peer, "other_peer", e.Other, "this_peer_differed", e.Differed, "distance", e.Distance)
	case train.Generation:
		w.Log.Info("generation", "number", e.Number, "members", fmt.Sprint(e.Members), "stage", e.StageName, "round", e.Round)
	case train.LostRows:
		w.Log.Warn("rows of a failed peer", "peer", e.Peer, "stage", e.StageName, "hop", e.Hop, "rows", e.Rows,
			"action", e.Action)
	case train.ShareSet:
		w.Log.Info("local work of a peer", "peer", e.Peer, "stage", e.StageName, "round", e.Round, "share", e.Share)
	case train.HaloPlan:
		if e.Rows > 0 {
			w.Log.Info("halo", "layer", e.Layer, "rows", e.Rows, "width", e.Width, "fetched_again", e.Refetched,
				"kept", report.Bytes(e.Kept), "why", e.Text)
		}
	case train.Restored:
		w.Log.Info("resumed from a checkpoint", "stage", e.StageName, "round", e.Round, "peer", e.Peer)
	case train.CandidateBegin:
		w.clear() // each candidate has rounds of its own
		w.tries = true
		w.Log.Debug("candidate", "plan", e.Candidate, "bytes_at_most", e.Limit)
	case train.CandidateEnd:
		w.clear()
		w.tries = false
		line := []any{"plan", e.Candidate, "val", e.Val, "standard_error", e.StandardError, "bytes", e.SentByAll}
		if e.Text != "" {
			line = append(line, "ended", e.Text)
		}
		w.Log.Info("candidate done", line...)
	case train.Trace:
		w.Log.Debug(e.Text)
	case train.Connection:
		if e.Members != nil {
			w.Log.Debug("connected", "members", fmt.Sprint(e.Members))
		} else {
			w.Log.Info(e.Text)
		}
	case train.Note:
		w.Log.Info(e.Text)
	case train.Warning:
		if e.StageName == "" {
			w.Log.Warn(e.Text)
		} else {
			w.Log.Warn(e.Text, "stage", e.StageName, "round", e.Round)
		}
	}
}
