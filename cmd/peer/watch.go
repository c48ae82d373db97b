package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/retexo"
)

// watch shows how a run goes: a bar on a terminal, log lines elsewhere. A nil watch shows nothing.
type watch struct {
	log   *slog.Logger
	w     io.Writer
	bar   *progressbar.ProgressBar // nil: not on a terminal, or nothing is trained
	fancy bool
	every time.Duration // between two log lines of rounds
	last  time.Time
}

// newWatch returns a watch that writes to w, a terminal or not.
func newWatch(w io.Writer, quiet bool) *watch {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	f, ok := w.(*os.File)
	fancy := ok && !quiet && term.IsTerminal(int(f.Fd()))
	return &watch{log: slog.New(&aroundBar{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), nil}), w: w, fancy: fancy, every: 5 * time.Second, last: time.Now()}
}

// begin shows a bar of total rounds where there is a terminal.
func (w *watch) begin(total int) {
	if !w.fancy {
		return
	}
	w.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w.w), progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(80*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionFullWidth())
	w.log = slog.New(&aroundBar{w.log.Handler().(*aroundBar).Handler, w.bar})
}

// end takes the bar away.
func (w *watch) end() {
	if w != nil && w.bar != nil {
		w.bar.Clear()
		w.bar = nil
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

// round shows one round; done counts those of all stages so far.
func (w *watch) round(stage string, round, done int, loss, val float64, metric string, sent comm.Counts) {
	bytes := sent.Halo + sent.Reduce + sent.Control
	if w.bar != nil {
		text := fmt.Sprintf("%s round %d  loss %.4f", stage, round, loss)
		if !math.IsNaN(val) {
			text += fmt.Sprintf("  val %s %.4f", metric, val)
		}
		if bytes > 0 {
			text += "  sent " + report.Bytes(bytes)
		}
		w.bar.Describe(text)
		w.bar.Set(done)
		return
	}
	if time.Since(w.last) >= w.every {
		w.last = time.Now()
		w.log.Info("round", "stage", stage, "round", round, "loss", loss, "val", val, "bytes", bytes)
	}
}

// layerwise watches one peer of a layer-wise run.
func (w *watch) layerwise(c retexo.Config, rank int) retexo.Observer {
	if w == nil {
		return retexo.Observer{}
	}
	first := 1 // stage that has rounds
	if c.Spec.Encoder.Kind == "mlp" {
		first = 0
	}
	if c.Solver != "ridge" {
		w.begin((c.Stages() - first) * c.Rounds)
	}
	return retexo.Observer{
		RoundEnd: func(i retexo.RoundInfo) {
			w.round(stageName(i.Stage), i.Round, (i.Stage-first)*c.Rounds+i.Round+1, i.Loss, i.Val, string(c.Metric), i.Bytes)
		},
		StageEnd: func(i retexo.StageInfo) {
			w.log.Info("stage done", "stage", stageName(i.Stage), "best_round", i.BestRound, "val", i.Val, "test", i.Test,
				"halo_bytes", i.Bytes.Halo, "reduce_bytes", i.Bytes.Reduce)
		},
		Sync: func(stage, round, from int, differed bool) {
			w.log.Warn("parameters differed between peers and were fetched again", "stage", stageName(stage), "round", round, "from_peer", from, "this_peer_differed", differed)
		},
		Generation: func(g retexo.GenerationInfo) {
			w.log.Info("generation", "number", g.Number, "members", fmt.Sprint(g.Members), "stage", stageName(g.Stage), "round", g.Round)
		},
		LostRows: func(l retexo.LostRowsInfo) {
			w.log.Warn("rows of a lost peer", "peer", l.Peer, "stage", stageName(l.Stage), "hop", l.Hop, "rows", l.Rows, "did", l.Did)
		},
		Share: func(s retexo.ShareInfo) {
			w.log.Info("local work of a peer", "peer", s.Peer, "stage", stageName(s.Stage), "round", s.Round, "share", s.Share)
		},
		Restored: func(p retexo.Position) {
			w.log.Info("resumed from a checkpoint", "stage", stageName(p.Stage), "round", p.Round, "peer", rank)
		},
	}
}

// endToEnd watches one peer of a run that trains all layers at once.
func (w *watch) endToEnd(c fullbatch.Config, rank int) fullbatch.Observer {
	if w == nil {
		return fullbatch.Observer{}
	}
	w.begin(c.Epochs)
	return fullbatch.Observer{
		EpochEnd: func(i fullbatch.EpochInfo) {
			w.round("all layers", i.Epoch, i.Epoch+1, i.Loss, i.Val, string(c.Metric), i.Bytes)
		},
		Planned: func(p fullbatch.Plan) {
			if p.Rows > 0 {
				w.log.Info("halo", "layer", p.Layer, "rows", p.Rows, "width", p.Width, "fetched_again", p.Again, "kept", report.Bytes(p.Kept), "why", p.Why)
			}
		},
		Restored: func(epoch int) { w.log.Info("resumed from a checkpoint", "epoch", epoch, "peer", rank) },
	}
}
