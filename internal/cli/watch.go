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
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/heddle-gnn/heddle/train"
)

// Watch shows the progress of a command: a line on a terminal, log lines elsewhere.
type Watch struct {
	Log *slog.Logger

	w       io.Writer
	columns func() int     // of the terminal that w is (nil = it is none)
	mu      sync.Mutex     // of line and of what is written while it is shown
	line    *line          // (nil = none is shown)
	every   time.Duration  // between two log lines of progress
	last    time.Time      // of the progress shown last
	began   time.Time      // when the first round that was seen was done
	from    int            // rounds done then
	events  io.WriteCloser // gets every event as a line (nil = events are not written)
}

// logVariable is the environment variable that makes peers log every round and session if it is
// "debug".
const logVariable = "HEDDLE_LOG"

// WatchFlags set how a run is watched.
type WatchFlags struct {
	quiet         bool
	events        string // file
	format, level string // of log lines (empty level = by quiet and logVariable)
}

// Bind adds the flags.
func (v *WatchFlags) Bind(f *pflag.FlagSet) {
	f.StringVar(&v.events, "events", "", "file for events, a JSON object a line (- = stdout)")
	f.StringVar(&v.format, "log-format", "text", "format of log lines (text, json)")
	f.StringVar(&v.level, "log-level", "", "lowest level of log lines (debug, info, warn, error)")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "no progress display")
}

// Text returns where c writes its messages when its data, the events among them, go to paths: as Text.
func (v WatchFlags) Text(c *cobra.Command, paths ...string) io.Writer {
	return Text(c.OutOrStdout(), c.ErrOrStderr(), append(paths, v.events)...)
}

// Start returns a watch that writes to stderr of c. Its End must be called.
func (v WatchFlags) Start(c *cobra.Command) (*Watch, error) {
	stderr := c.ErrOrStderr()
	level := usualLevel(v.quiet)
	if v.level != "" {
		if err := level.UnmarshalText([]byte(v.level)); err != nil || !slices.Contains([]string{"debug", "info", "warn",
			"error"}, v.level) {
			return nil, Invalidf("--log-level must be debug, info, warn or error (got %q)", v.level)
		}
	}
	if v.format != "text" && v.format != "json" {
		return nil, Invalidf("--log-format must be text or json (got %q)", v.format)
	}
	w := newWatch(stderr, v.quiet || v.format == "json", level, v.format)
	switch {
	case v.events == "":
		return w, nil
	case IsStdout(v.events):
		w.events = kept{c.OutOrStdout()}
		return w, nil
	}
	err := os.MkdirAll(filepath.Dir(v.events), 0o755)
	if err != nil {
		return nil, Invalidf("--events: %w", err)
	}
	f, err := os.Create(v.events)
	if err != nil {
		return nil, Invalidf("--events: %w", err)
	}
	w.events = f
	return w, nil
}

// kept is a writer that stays open.
type kept struct{ io.Writer }

// Close implements io.Closer.
func (kept) Close() error { return nil }

// usualLevel is the level of log lines unless a flag sets another.
func usualLevel(quiet bool) slog.Level {
	switch {
	case os.Getenv(logVariable) == "debug":
		return slog.LevelDebug
	case quiet:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// NewWatch returns a watch that writes to w, a terminal or not.
func NewWatch(w io.Writer, quiet bool) *Watch { return newWatch(w, quiet, usualLevel(quiet), "text") }

func newWatch(w io.Writer, quiet bool, level slog.Level, format string) *Watch {
	v := &Watch{w: w, every: 5 * time.Second, last: time.Now()}
	if f, ok := w.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		v.columns = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
			return 80
		}
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: roundedNumber}
	var lines slog.Handler = slog.NewTextHandler(w, options)
	if format == "json" {
		lines = slog.NewJSONHandler(w, options)
	}
	v.Log = slog.New(&aroundLine{lines, v})
	return v
}

// roundedNumber writes a number with 4 digits, or null if JSON does not have it.
func roundedNumber(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindFloat64 {
		if x := a.Value.Float64(); math.IsNaN(x) || math.IsInf(x, 0) {
			a.Value = slog.AnyValue(nil)
		} else if x, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64); err == nil {
			a.Value = slog.Float64Value(x)
		}
	}
	return a
}

// Due reports whether it is time to show progress again, of total steps. On a terminal it begins a
// line.
func (w *Watch) Due(total int) bool {
	every := w.every
	if w.columns != nil {
		every = 100 * time.Millisecond
		w.mu.Lock()
		if w.line == nil {
			w.line = &line{w: w.w, width: w.columns, total: total, began: time.Now()}
		}
		w.mu.Unlock()
	}
	if time.Since(w.last) < every {
		return false
	}
	w.last = time.Now()
	return true
}

// Show shows on a terminal that done steps are done, and parts, the most important one first.
// Elsewhere it logs message with its attributes.
func (w *Watch) Show(done int, parts []string, message string, attributes ...any) {
	if w.columns == nil {
		w.Log.Info(message, attributes...)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil {
		w.line.showLine(done, parts)
	}
}

// End removes the line and closes the file of events.
func (w *Watch) End() {
	w.clear()
	if w.events != nil {
		w.stopRecording(w.events.Close())
	}
}

// clear removes the line.
func (w *Watch) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil {
		w.line.clear()
		w.line = nil
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

// aroundLine removes the line of progress before another is logged; it comes back with the next
// progress.
type aroundLine struct {
	slog.Handler
	watch *Watch
}

// Handle implements slog.Handler.
func (a *aroundLine) Handle(ctx context.Context, r slog.Record) error {
	a.watch.mu.Lock()
	defer a.watch.mu.Unlock()
	if a.watch.line != nil {
		a.watch.line.clear()
	}
	return a.Handler.Handle(ctx, r)
}

// Part returns what shows the events of one of several runs, called name: its rounds and what
// goes wrong.
func (w *Watch) Part(name string) func(train.Event) {
	return func(e train.Event) {
		switch e.Kind {
		case train.RoundEnd:
			w.record(e)
			w.round(e, name+": ")
		case train.Warning, train.Resync:
			w.Event(e)
		default:
			w.record(e)
		}
	}
}

// round shows one round, behind the name of its run.
func (w *Watch) round(e train.Event, of string) {
	if w.began.IsZero() || e.Done < w.from {
		w.began, w.from = time.Now(), e.Done
	}
	if !w.Due(e.Total) {
		return
	}
	bytes := e.Sent.Total()
	parts := []string{fmt.Sprintf("%s%s round %d", of, e.StageName, e.Round)}
	if !math.IsNaN(e.Val) {
		parts = append(parts, fmt.Sprintf("val %s %.4f", e.Metric, e.Val))
	}
	attributes := []any{"stage", e.StageName, "round", e.Round}
	if !math.IsNaN(e.Loss) {
		parts = append(parts, fmt.Sprintf("loss %.4f", e.Loss))
		attributes = append(attributes, "loss", e.Loss)
	}
	if bytes > 0 {
		parts = append(parts, "sent "+Bytes(bytes))
	}
	attributes = append(attributes, "val", e.Val, "bytes", bytes)
	if n := e.Done - w.from; n > 0 && e.Total >= e.Done && of == "" { // runs side by side count their own rounds
		attributes = append(attributes, "left",
			(time.Since(w.began) / time.Duration(n) * time.Duration(e.Total-e.Done)).Round(time.Second))
	}
	w.Show(e.Done, parts, of+"round", attributes...)
}

// Event shows an event of one peer's run.
func (w *Watch) Event(e train.Event) {
	w.record(e)
	switch e.Kind {
	case train.RoundEnd:
		w.Log.Debug("round done", "stage", e.StageName, "round", e.Round)
		w.round(e, "")
	case train.StageEnd:
		line := []any{"stage", e.StageName, "best_round", e.BestRound, "val", e.Val}
		if !math.IsNaN(e.Test) {
			line = append(line, "test", e.Test)
		}
		w.Log.Info("stage done", append(line, "halo_bytes", e.Sent.Halo, "reduce_bytes", e.Sent.Reduce)...)
	case train.Resync:
		w.Log.Warn("two peers rounded differently; all continue with the parameters of one", "stage", e.StageName,
			"round", e.Round, "from_peer", e.Peer, "other_peer", e.Other, "this_peer_differed", e.Differed, "distance",
			e.Distance)
	case train.HaloPlan:
		if e.Rows > 0 {
			w.Log.Info("halo", "layer", e.Layer, "rows", e.Rows, "width", e.Width, "fetched_again", e.Refetched,
				"kept", Bytes(e.Kept), "why", e.Text)
		}
	case train.Restored:
		w.Log.Info("resumed from a checkpoint", "stage", e.StageName, "round", e.Round, "peer", e.Peer)
	case train.Trace:
		w.Log.Debug(e.Text)
	case train.Connection:
		if e.Text == "" {
			w.Log.Debug("connected", "members", fmt.Sprint(e.Members))
		} else {
			w.Log.Info(e.Text)
		}
	case train.Waiting:
		w.Log.Debug("waiting for messages", "members", fmt.Sprint(e.Members))
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
