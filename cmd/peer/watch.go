package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/train"
)

// watch shows how a run goes: a bar on a terminal, log lines elsewhere. A nil watch shows nothing.
type watch struct {
	log   *slog.Logger
	w     io.Writer
	bar   *progressbar.ProgressBar // nil: not on a terminal, or nothing is trained
	fancy bool
	every time.Duration // between two log lines of rounds
	last  time.Time

	events *os.File // gets every event as a line; nil: nobody asked for them
}

// logVariable names the environment variable that makes peers log every round and session where it is "debug".
const logVariable = "HEDDLE_LOG"

// watchFlags say how the run of a command is watched.
type watchFlags struct {
	quiet  bool
	events string // file
}

func (v *watchFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&v.events, "events", "", "file for the events of the run, a JSON object a line")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "no progress display")
}

// start returns a watch that writes to stderr. Its end must be called.
func (v watchFlags) start(stderr io.Writer) (w *watch, err error) {
	w = newWatch(stderr, v.quiet)
	if v.events != "" {
		if err := writable(v.events); err != nil {
			return nil, err
		}
		if w.events, err = os.Create(v.events); err != nil {
			return nil, badInput{err}
		}
	}
	return w, nil
}

// newWatch returns a watch that writes to w, a terminal or not.
func newWatch(w io.Writer, quiet bool) *watch {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	if os.Getenv(logVariable) == "debug" {
		level = slog.LevelDebug
	}
	f, ok := w.(*os.File)
	fancy := ok && !quiet && term.IsTerminal(int(f.Fd()))
	return &watch{log: slog.New(&aroundBar{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), nil}), w: w, fancy: fancy, every: 5 * time.Second, last: time.Now()}
}

// warn shows what a user should change.
func (w *watch) warn(text string) { w.log.Warn(text) }

// begin shows a bar of total rounds where there is a terminal and no bar yet.
func (w *watch) begin(total int) {
	if !w.fancy || w.bar != nil {
		return
	}
	w.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w.w), progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(80*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionFullWidth())
	w.log = slog.New(&aroundBar{w.log.Handler().(*aroundBar).Handler, w.bar})
}

// end takes the bar away and closes the file of events.
func (w *watch) end() {
	if w == nil {
		return
	}
	if w.bar != nil {
		w.bar.Clear()
		w.bar = nil
	}
	if w.events != nil {
		w.stopRecording(w.events.Close())
	}
}

// record adds an event to the file of events.
func (w *watch) record(e train.Event) {
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

// stopRecording forgets the file of events: a run does not end for it.
func (w *watch) stopRecording(err error) {
	if w.events = nil; err != nil {
		w.log.Warn("the file of events is not complete", "error", err)
	}
}

// aroundBar clears the bar before a line is logged; the bar comes back with its next round.
type aroundBar struct {
	slog.Handler
	bar *progressbar.ProgressBar
}

// Handle implements slog.Handler.
func (a *aroundBar) Handle(ctx context.Context, r slog.Record) error {
	if a.bar != nil {
		a.bar.Clear()
	}
	return a.Handler.Handle(ctx, r)
}

// round shows one round.
func (w *watch) round(e train.Event) {
	bytes := e.Sent.Total()
	if w.bar != nil {
		text := fmt.Sprintf("%s round %d  loss %.4f", e.StageName, e.Round, e.Loss)
		if !math.IsNaN(e.Val) {
			text += fmt.Sprintf("  val %s %.4f", e.Metric, e.Val)
		}
		if bytes > 0 {
			text += "  sent " + report.Bytes(bytes)
		}
		w.bar.Describe(text)
		w.bar.Set(e.Done)
		return
	}
	if time.Since(w.last) >= w.every {
		w.last = time.Now()
		w.log.Info("round", "stage", e.StageName, "round", e.Round, "loss", e.Loss, "val", e.Val, "bytes", bytes)
	}
}

// event shows an event of one peer's run.
func (w *watch) event(e train.Event) {
	if w == nil {
		return
	}
	w.record(e)
	switch e.Kind {
	case train.RoundEnd:
		w.log.Debug("round done", "stage", e.StageName, "round", e.Round)
		w.begin(e.Total)
		w.round(e)
	case train.StageEnd:
		w.log.Info("stage done", "stage", e.StageName, "best_round", e.BestRound, "val", e.Val, "test", e.Test,
			"halo_bytes", e.Sent.Halo, "reduce_bytes", e.Sent.Reduce)
	case train.Resync:
		w.log.Warn("two peers rounded apart; all continue with the parameters of one", "stage", e.StageName, "round", e.Round,
			"from_peer", e.Peer, "other_peer", e.Other, "this_peer_differed", e.Differed, "distance", e.Distance)
	case train.Generation:
		w.log.Info("generation", "number", e.Number, "members", fmt.Sprint(e.Members), "stage", e.StageName, "round", e.Round)
	case train.LostRows:
		w.log.Warn("rows of a failed peer", "peer", e.Peer, "stage", e.StageName, "hop", e.Hop, "rows", e.Rows, "action", e.Action)
	case train.ShareSet:
		w.log.Info("local work of a peer", "peer", e.Peer, "stage", e.StageName, "round", e.Round, "share", e.Share)
	case train.HaloPlan:
		if e.Rows > 0 {
			w.log.Info("halo", "layer", e.Layer, "rows", e.Rows, "width", e.Width, "fetched_again", e.Refetched, "kept", report.Bytes(e.Kept), "why", e.Text)
		}
	case train.Restored:
		w.log.Info("resumed from a checkpoint", "stage", e.StageName, "round", e.Round, "peer", e.Peer)
	case train.Trace:
		w.log.Debug(e.Text)
	case train.Note:
		w.log.Info(e.Text)
	case train.Warning:
		if e.StageName == "" {
			w.log.Warn(e.Text)
		} else {
			w.log.Warn(e.Text, "stage", e.StageName, "round", e.Round)
		}
	}
}
