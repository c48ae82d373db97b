package sampled

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	_ "embed"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/clock"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/bench/raw"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/plan"
)

//go:embed distdgl.py
var distdgl string

const (
	besideHidden = 256
	besideEpochs = 4 // the first of which does not count
)

// cost is what an epoch takes.
type cost struct{ wall, processor, megabytes float64 }

// besideDistDGL prints the time and the bytes of an epoch of two peers and of DistDGL itself on two machines, on the
// same parts. Peers are in one process and count the bytes of their messages. DistDGL's machines are network
// namespaces, and its bytes are counted on the link between them.
func besideDistDGL(ctx context.Context, p *page.Page, root, names string, share float64, python string) error {
	p.Table("graph %s", "program %s", "s an epoch %.2f", "processor seconds an epoch %.2f", "MB an epoch %.1f")
	for name := range strings.SplitSeq(names, ",") {
		g, err := graphs.Open(root, name)
		if err != nil {
			return err
		}
		g = split(featured(g), share, 1)
		plan := heddle.Defaults(plan.MiniBatch, "sage")
		plan.Transport, plan.Peers, plan.Gradient().EvalEvery, plan.Gradient().Layers, plan.Gradient().Hidden =
			"memory", 2, 1<<30, len(bytesFanouts), besideHidden
		plan.MiniBatch.Fanouts, plan.MiniBatch.BatchSize = bytesFanouts, bytesBatch
		plan.Gradient().Rounds, plan.Gradient().Dropout, plan.Joint().Norm = besideEpochs, 0, "none"
		shards, err := heddle.Split(g, plan)
		if err != nil {
			return err
		}
		ours, err := ofPeers(ctx, plan, shards)
		if err != nil {
			return err
		}
		p.Row(name, "Heddle, two peers in a process", ours.wall, ours.processor, ours.megabytes)
		theirs, err := ofDistDGL(ctx, g, shards, python)
		if err != nil {
			return err
		}
		p.Row(name, "DistDGL, two machines", theirs.wall, theirs.processor, theirs.megabytes)
	}
	return nil
}

// ofPeers returns the fastest epoch after the first, and the bytes of a mean one.
func ofPeers(ctx context.Context, p heddle.Plan, shards []*shard.Shard) (best cost, err error) {
	best = cost{math.Inf(1), math.Inf(1), 0}
	var before float64
	err = clock.Epochs(ctx, p, shards, func(e heddle.Event, took measure.Cost) {
		sent := 2 * float64(e.Sent.Total()) / 1e6 // of both peers: parts are alike
		if e.Round == 0 {
			before = sent
			return
		}
		best.wall, best.processor = min(best.wall, took.Wall.Seconds()), min(best.processor, took.Processor.Seconds())
		best.megabytes = (sent - before) / float64(e.Round)
	})
	return best, err
}

// ofDistDGL returns the same of DistDGL.
func ofDistDGL(ctx context.Context, g *graph.Graph, shards []*shard.Shard, python string) (best cost, err error) {
	dir, err := os.MkdirTemp("", "bench-distdgl")
	if err != nil {
		return best, err
	}
	defer os.RemoveAll(dir)
	owner := make([]int32, g.N())
	for q, s := range shards {
		for _, id := range s.Global[:s.Owned] {
			owner[id] = int32(q)
		}
	}
	err = raw.Write(dir, map[string]any{"indptr": g.Adj.RowPtr, "indices": g.Adj.Col, "train": g.InSplit(graph.Train),
		"owner": owner})
	if err != nil {
		return best, err
	}
	program := filepath.Join(dir, "distdgl.py")
	if err := os.WriteFile(program, []byte(distdgl), 0o600); err != nil {
		return best, err
	}
	fanouts := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(bytesFanouts)), ","), "[]")
	c := exec.CommandContext(ctx, python, program, dir, strconv.Itoa(g.X.Cols()), fanouts, strconv.Itoa(bytesBatch),
		strconv.Itoa(besideHidden), strconv.Itoa(besideEpochs))
	out, err := c.CombinedOutput()
	if err != nil {
		return best, fmt.Errorf("%s: %w\n%s", python, err, out)
	}
	best = cost{math.Inf(1), math.Inf(1), 0}
	epochs := 0.0
	for line := range strings.Lines(string(out)) {
		var one cost
		if _, err := fmt.Sscanf(line, "epoch %g %g %g", &one.wall, &one.processor, &one.megabytes); err != nil {
			continue
		}
		if epochs++; epochs > 1 {
			best.wall, best.processor = min(best.wall, one.wall), min(best.processor, one.processor)
			best.megabytes += one.megabytes / (besideEpochs - 1)
		}
	}
	if epochs != besideEpochs {
		return best, fmt.Errorf("%s: %g epochs of DistDGL, must be %d\n%s", python, epochs, besideEpochs, out)
	}
	return best, nil
}
