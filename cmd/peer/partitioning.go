package main

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph/partition/external"
)

// partitioning shows how far a partition is: a bar on a terminal, log lines elsewhere.
type partitioning struct {
	watch *watch
	ctx   context.Context // what it is about ends the work
	step  int             // at hand
	began time.Time       // when it did
	last  time.Time       // when it was shown
}

// show implements external.Job.Watch.
func (p *partitioning) show(at external.Progress) error {
	now := time.Now()
	if p.watch.fancy && p.watch.bar == nil {
		p.watch.begin(1000 * at.Steps)
	}
	if p.began.IsZero() || at.Step != p.step {
		p.step, p.began = at.Step, now
	}
	every := p.watch.every
	if p.watch.bar != nil {
		every = 100 * time.Millisecond
	}
	if now.Sub(p.last) < every {
		return p.ctx.Err()
	}
	p.last = now
	text, share := at.Phase, 0.0
	if at.Total > 0 {
		share = min(float64(at.Done)/float64(at.Total), 1)
	}
	took := now.Sub(p.began).Seconds()
	if at.Done > 0 && took > 0 {
		switch at.Phase {
		case "cluster", "join clusters", "assign":
			text += fmt.Sprintf(", %.1f M edges/s", float64(at.Done)/1e6/took)
		}
		text += fmt.Sprintf(", %.0f s left of it", took*(1-share)/max(share, 1e-9))
	}
	text += ", " + report.Bytes(heapInUse())
	if p.watch.bar != nil {
		p.watch.bar.Describe(text)
		p.watch.bar.Set(1000*at.Step + int(999*share))
	} else {
		p.watch.log.Info("partitioning", "step", fmt.Sprintf("%d of %d", at.Step+1, at.Steps), "phase", text)
	}
	return p.ctx.Err()
}

// heapInUse returns the memory that the program holds now.
func heapInUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
