package main

import (
	"context"
	"time"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
)

// atOnce trains all layers at once.
func (w work) atOnce(ctx context.Context, group *comm.Group) (*outcome, error) {
	c, err := w.settings.endToEnd(taskOf(w.shard))
	if err != nil {
		return nil, err
	}
	m, err := fullbatch.NewModel(c)
	if err != nil {
		return nil, badInput{err}
	}
	t, err := fullbatch.New(c, w.shard, m)
	if err != nil {
		return nil, badInput{err}
	}
	t.Checkpoints, t.Observer = w.store, w.site.observeEpochs(w.watch.endToEnd(c, w.shard.Rank))
	if end := t.Observer.EpochEnd; w.advanced != nil {
		t.Observer.EpochEnd = func(i fullbatch.EpochInfo) {
			w.advanced()
			if end != nil {
				end(i)
			}
		}
	}
	if err := t.Run(ctx, group, group); err != nil {
		return nil, err
	}
	r := t.Result()
	w.site.leftAll(r)
	stage := report.Stage{Name: allLayers, BestRound: r.BestEpoch, Val: r.Val, Test: r.Test}
	for _, q := range r.Epochs {
		stage.Curve = append(stage.Curve, report.Point{Round: q.Epoch, Loss: q.Loss, Val: q.Val})
	}
	return &outcome{Model: m, Config: c, Sent: r.Bytes, Metric: c.Metric, Stages: []report.Stage{stage}, Val: r.Val, Test: r.Test, Rounds: len(r.Epochs)}, nil
}

// fingerprint names what the peers of a run of t must agree on, or returns all faults of s.
func (s Settings) fingerprint(t task) ([32]byte, error) {
	if s.Mode == "retexo" {
		c, err := s.plan(t)
		if err != nil {
			return [32]byte{}, err
		}
		return c.Fingerprint(), nil
	}
	c, err := s.endToEnd(t)
	if err != nil {
		return [32]byte{}, err
	}
	return c.Fingerprint(), nil
}

// observeEpochs records, every minute, what leaves.
func (s *site) observeEpochs(o fullbatch.Observer) fullbatch.Observer {
	if s == nil || s.log == nil {
		return o
	}
	s.written = time.Now()
	shown := o.EpochEnd
	o.EpochEnd = func(i fullbatch.EpochInfo) {
		if time.Since(s.written) >= time.Minute {
			s.left(i.Bytes, allLayers, i.Epoch+1)
		}
		if shown != nil {
			shown(i)
		}
	}
	return o
}

// leftAll records what has left at the end of a run.
func (s *site) leftAll(r fullbatch.Result) {
	if s != nil && s.log != nil {
		s.left(r.Bytes, allLayers, len(r.Epochs))
	}
}

// allLayers is what the one stage of training all layers at once is called.
const allLayers = "all layers"
