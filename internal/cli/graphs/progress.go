package graphs

import (
	"context"
	"fmt"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
)

// progress shows how far the partitioning of a stored graph is.
type progress struct {
	watch *cli.Watch
	ctx   context.Context // its end stops the work
	step  int             // the present one
	began time.Time       // of that step
}

// show implements external.Job.Watch.
func (p *progress) show(at external.Progress) error {
	if p.began.IsZero() || at.Step != p.step {
		p.step, p.began = at.Step, time.Now()
	}
	if !p.watch.Due(1000 * at.Steps) {
		return p.ctx.Err()
	}
	parts, done := []string{at.Phase}, 0.0
	if at.Total > 0 {
		done = min(float64(at.Done)/float64(at.Total), 1)
	}
	took := time.Since(p.began).Seconds()
	if at.Done > 0 && took > 0 {
		switch at.Phase {
		case "cluster", "join clusters", "assign":
			parts = append(parts, fmt.Sprintf("%.1f M edges/s", float64(at.Done)/1e6/took))
		}
		parts = append(parts, fmt.Sprintf("%.0f s of the step left", took*(1-done)/max(done, 1e-9)))
	}
	parts = append(parts, cli.Bytes(memoryInUse()))
	p.watch.Show(1000*at.Step+int(999*done), parts, "partitioning", "step", fmt.Sprintf("%d of %d", at.Step+1,
		at.Steps),
		"phase", strings.Join(parts, ", "))
	return p.ctx.Err()
}

// memoryInUse returns the bytes that the program uses now.
func memoryInUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
