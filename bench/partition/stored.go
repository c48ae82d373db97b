package partition

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// stream stores generated graphs, if they are not there, and partitions them from there in bounded memory. It prints a
// row for each phase, then one for all of them, then the partition.
func (o options) stream(p *page.Page) error {
	debug.SetMemoryLimit(o.memory * 3 / 4)
	var rows [][]any
	p.Text("%d undirected edges, %d MB of memory.", o.edges, o.memory>>20)
	p.Table("graph %s", "policy %s", "k %d", "phase %s", "seconds %.1f", "processor seconds %.1f", "M edges %.1f",
		"peak, MB %d")
	for _, name := range strings.Split(o.graphs, ",") {
		path := filepath.Join(o.stored, fmt.Sprintf("%s-%d.graph", name, o.edges))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			start := measure.Now()
			n, batches, err := graphs.Draw(name, o.edges)
			if err != nil {
				return err
			}
			if err := external.WriteNodes(path, &graph.Graph{Name: name}, nil, n, batches, graph.Build{},
				o.memory/4); err != nil {
				return err
			}
			took := measure.Since(start)
			p.Row(name, "", 0, "ingest", took.Wall.Seconds(), took.Processor.Seconds(), float64(o.edges)/1e6, peak())
		}
		for _, policy := range strings.Split(o.policies, ",") {
			for _, list := range strings.Split(o.parts, ",") {
				k, err := strconv.Atoi(list)
				if err != nil {
					return err
				}
				out := filepath.Join(o.stored, fmt.Sprintf("%s-%d-%s-%d", name, o.edges, policy, k))
				r, err := o.streamOne(p, name, path, out, policy, k, o.memory)
				if err != nil {
					return err
				}
				rows = append(rows, []any{name, policy, k, r.Nodes, r.Edges, r.CutShare, r.Replication, r.NodeBalance,
					r.EdgeBalance})
			}
		}
	}
	p.Table("graph %s", "policy %s", "k %d", "nodes %d", "stored edges %d", "cut %.4f", "replication %.3f",
		"node balance %.3f", "edge balance %.3f")
	for _, row := range rows {
		p.Row(row...)
	}
	return nil
}

// peak is the most memory that this process has used, in MB.
func peak() int64 { return measure.Resident("VmHWM", false) >> 20 }

func (o options) streamOne(p *page.Page, name, path, out, policy string, k int,
	memory int64) (r partition.Quality, err error) {
	by, err := o.policy(policy)
	if err != nil {
		return r, err
	}
	s, err := external.OpenGraph(path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	debug.FreeOSMemory()
	measure.Resident("VmRSS", true)
	start := measure.Now()
	last, lastBusy := "", time.Duration(0)
	took := make(map[string]time.Duration) // processor time of each phase
	watch := func(p external.Progress) error {
		if p.Phase != last {
			now := measure.Since(start).Processor
			took[last] += now - lastBusy
			last, lastBusy = p.Phase, now
		}
		return nil
	}
	meta := shard.Meta{Policy: policy, Seed: 1}
	m, phases, err := s.Write(out, external.Job{Policy: by, Parts: k, Memory: memory, Meta: meta, Watch: watch})
	if err != nil {
		return r, err
	}
	all := measure.Since(start)
	took[last] += all.Processor - lastBusy
	for _, t := range phases {
		p.Row(name, policy, k, t.Phase, t.Seconds, took[t.Phase].Seconds(), float64(t.Edges)/1e6, peak())
	}
	p.Row(name, policy, k, "all", all.Wall.Seconds(), all.Processor.Seconds(),
		float64(partition.Measure(m).Edges)/1e6, peak())
	return partition.Measure(m), nil
}
