// Package fullbatch measures the memory and the traffic of a worker of exact full-batch training.
package fullbatch

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// About is the introduction of this experiment's page.
var About = page.About{
	Name:  "fullbatch",
	Title: "Memory and traffic of full-batch training",
	Text: `What a worker of exact full-batch training holds and sends: a dense graph that no partition
helps, cut into K parts, is trained for a few steps by K workers, for every way to fetch halo
rows. What a worker holds is counted, array by array, and does not depend on the machine;
seconds do. With -processes each worker is a process, and the operating system tells what it
holds as well.`,
}

// settings describe the graph and the training.
type settings struct {
	Nodes, Degree, Features, Hidden, Classes int
	Model                                    string
	Batch                                    bool
	Prefetch, Steps                          int
	Memory                                   int64
	Late                                     bool
}

// options are the flags that are not settings.
type options struct {
	workers, fetches, link, machines, child string
	processes                               bool
	total                                   int
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var s settings
	var o options
	f.IntVar(&s.Nodes, "nodes", 50_000, "nodes")
	f.IntVar(&s.Degree, "degree", 400, "edges into each node, even")
	f.IntVar(&s.Features, "features", 100, "columns of the features")
	f.IntVar(&s.Hidden, "hidden", 0, "hidden columns; 0: 256, or 512 for gat")
	f.IntVar(&s.Classes, "classes", 40, "classes")
	f.StringVar(&s.Model, "model", "sage", "sage, gat or gcn, of 3 layers with LayerNorm")
	f.BoolVar(&s.Batch, "batchnorm", false, "BatchNorm instead of LayerNorm")
	f.StringVar(&o.workers, "workers", "1,2,4,8", "numbers of workers")
	f.StringVar(&o.fetches, "fetch", "sar,sa,oneshot", "ways to fetch halo rows")
	f.IntVar(&s.Prefetch, "prefetch", 0, "blocks of rows fetched ahead")
	f.Int64Var(&s.Memory, "memory", 0, "MiB of rows kept that could be fetched again; 0: all")
	f.IntVar(&s.Steps, "steps", 2, "steps, at least 2")
	f.BoolVar(&s.Late, "late", false, "gradients summed in one piece, after the backward pass")
	f.StringVar(&o.link, "link", "", "simulated network, such as latency=5ms,rate=100Mbit")
	f.BoolVar(&o.processes, "processes", false, "one process a worker")
	f.IntVar(&o.total, "total", 0, "nodes of a larger graph whose memory is estimated")
	f.StringVar(&o.machines, "machines", "32,64,128", "numbers of machines for -total")
	f.StringVar(&o.child, "child", "", "internal: worker R of those in a folder, as DIR:R")
	return func(ctx context.Context, p *page.Page) error {
		switch {
		case o.child != "":
			return work(ctx, o.child)
		case o.total > 0:
			return scale(ctx, p, s, o.total, o.machines)
		default:
			return compare(ctx, p, s, o)
		}
	}
}

// traits returns what the model's convolution needs.
func (s settings) traits() nn.Traits {
	c, _ := nn.ConvolutionNamed(s.Model)
	return c.Traits
}

// plan returns what is trained.
func (s settings) plan(fetch, link string) heddle.Plan {
	p := heddle.Defaults(plan.FullBatch, s.Model)
	p.Gradient().Layers, p.Gradient().Hidden, p.Gradient().Dropout, p.Gradient().AttentionDropout, p.Joint().Norm = 3,
		s.Hidden, 0, 0, "layer"
	if s.Hidden == 0 {
		p.Gradient().Hidden = 256
	}
	if s.traits().Heads {
		p.Gradient().Heads = 4
		if s.Hidden == 0 {
			p.Gradient().Hidden = 512
		}
	}
	if s.Batch {
		p.Joint().Norm = "batch"
	}
	p.Gradient().Rounds, p.Gradient().EvalEvery, p.FullBatch.Fetch, p.FullBatch.Prefetch, p.Joint().Memory =
		max(s.Steps, 2), 1<<30, fetch, s.Prefetch, plan.Mebibytes(s.Memory)
	p.Transport, p.Link = "memory", link
	return p
}

// compare prints memory and traffic for each number of workers and each way to fetch rows.
func compare(ctx context.Context, p *page.Page, s settings, o options) error {
	g := ring(s.Nodes, s.Degree, s.Features, s.Classes)
	p.Text("%d nodes, %d edges, %s. MB are those of the worker that holds most.", g.N(), g.Adj.NumEdges(), s.Model)
	p.Table("workers %d", "fetch %s", "layers, MB %.1f", "aggregates %.1f", "halo rows %.1f",
		"kept of layer 1 %.1f", "all four %.1f", "× workers / one worker %.2f", "edges and transposes %.0f",
		"resident %.0f", "rows sent a step, values/(halo·width) %.0f", "s a step %.2f", "processor s %.2f")
	var one float64
	for _, list := range strings.Split(o.workers, ",") {
		k, err := strconv.Atoi(list)
		if err != nil || k < 1 {
			return fmt.Errorf("workers must be numbers of at least 1 (got %q)", o.workers)
		}
		shards, err := cut(g, k)
		if err != nil {
			return err
		}
		for i, fetch := range strings.Split(o.fetches, ",") {
			if k == 1 && i > 0 {
				continue
			}
			var r []measured
			if o.processes {
				r, err = apart(ctx, s, fetch, shards)
			} else {
				r, err = inMemory(ctx, s, s.plan(fetch, o.link), shards)
			}
			if err != nil {
				return err
			}
			f := sum(r)
			act := f.rows + f.aggregates + f.halo + f.first
			if k == 1 {
				one, fetch = act, "–"
			}
			p.Row(k, fetch, f.rows, f.aggregates, f.halo, f.first, act, act*float64(k)/max(one, 1), f.edges,
				f.resident, f.sent, f.seconds, f.busy)
		}
	}
	return nil
}

// cut returns the graph in k parts of consecutive nodes.
func cut(g *graph.Graph, k int) ([]*shard.Shard, error) {
	if k == 1 {
		return []*shard.Shard{shard.Whole(g)}, nil
	}
	return partition.Partition(g, partition.Contiguous{}, k, 1)
}

// measured is what one worker reports.
type measured struct {
	Memory   fullbatch.StepMemory
	Resident int64 // bytes of the process, less the bytes before (0 = workers share a process)
	Halo     int64 // rows
	Sent     int64 // bytes of the last step
	Seconds  float64
	Busy     float64 // seconds of processor of a step (0 = another worker of the process reports them)
}

// figures are MB of the worker with the most memory, what all send a step for each halo row, and seconds a step.
type figures struct{ rows, aggregates, halo, first, edges, resident, sent, seconds, busy float64 }

func sum(all []measured) (f figures) {
	var sent, halo int64
	for _, r := range all {
		m := r.Memory
		f.rows, f.aggregates = max(f.rows, mb(m.Tape.Rows)), max(f.aggregates, mb(m.Tape.Aggregates))
		f.halo, f.first = max(f.halo, mb(m.Halo)), max(f.first, mb(m.First))
		f.edges, f.resident = max(f.edges, mb(m.Edges+m.Tape.Transposes)), max(f.resident, mb(r.Resident))
		f.seconds, f.busy = max(f.seconds, r.Seconds), f.busy+r.Busy
		sent += r.Sent
		halo += r.Halo
	}
	f.sent = float64(sent) / 4 / float64(max(halo, 1))
	return f
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// late hides from the trainer that it is a group: sums are made when no rows are sent.
type late struct{ *comm.Group }

// trainOne is one worker.
func trainOne(ctx context.Context, p heddle.Plan, own *shard.Shard, group *comm.Group,
	behind bool) (measured, error) {
	method, err := p.Configure(own)
	if err != nil {
		return measured{}, err
	}
	c := method.(fullbatch.Config)
	m, err := c.NewModel()
	if err != nil {
		return measured{}, err
	}
	trainer, err := fullbatch.New(c, own, m)
	if err != nil {
		return measured{}, err
	}
	var start, steps measure.Cost // steps: all but the first
	trainer.OnEvent = func(e train.Event) {
		if e.Kind != train.RoundEnd {
			return
		}
		if e.Round == 0 {
			start = measure.Now()
		}
		steps = measure.Since(start)
	}
	var r comm.Reducer = group
	if behind {
		r = late{group}
	}
	err = trainer.Run(ctx, group, r)
	epochs := trainer.Result().Curve()
	n := len(epochs)
	if err != nil || n < 2 {
		return measured{}, err
	}
	return measured{
		Memory: trainer.Memory(), Halo: int64(own.Halo()), Sent: epochs[n-1].Sent.Halo - epochs[n-2].Sent.Halo,
		Seconds: steps.Wall.Seconds() / float64(n-1), Busy: steps.Processor.Seconds() / float64(n-1),
	}, nil
}

// inMemory trains with all workers in this process.
func inMemory(ctx context.Context, s settings, p heddle.Plan, shards []*shard.Shard) (results []measured, err error) {
	results = make([]measured, len(shards))
	return results, disclosure.Groups(ctx, p, len(shards), func(ctx context.Context, group *comm.Group) (err error) {
		r := group.Rank()
		results[r], err = trainOne(ctx, p, shards[r], group, s.Late)
		if r > 0 {
			results[r].Busy = 0
		}
		return err
	})
}

// scale prints the memory of a machine for a graph of total nodes on some numbers of machines. It scales the bytes of
// one worker for each node of the graph that s describes.
func scale(ctx context.Context, p *page.Page, s settings, total int, machines string) error {
	plan, whole := s.plan("sar", ""), shard.Whole(ring(s.Nodes, s.Degree, s.Features, s.Classes))
	method, err := plan.Configure(whole)
	if err != nil {
		return err
	}
	c := method.(fullbatch.Config)
	r, err := inMemory(ctx, s, plan, []*shard.Shard{whole})
	if err != nil {
		return err
	}
	f, n := sum(r), float64(s.Nodes)/1e6
	widest := 0
	for _, l := range c.Spec.Layers {
		widest = max(widest, l.Out)
	}
	block := 4 * float64(widest*(1+s.Prefetch))
	if s.traits().NeedsSource {
		block *= 2
	}
	layers, features, edges := (f.rows+f.aggregates+f.first)/n, float64(4*s.Features), f.edges/n/float64(s.Degree)
	p.Text("%s; bytes a node: %.0f of layers, at most %.0f of a block of halo rows and gradients, "+
		"%.0f of features; bytes an edge: %.1f with transposes.", s.Model, layers, block, features, edges)
	p.Table("machines %d", "layers, GB %.1f", "with a block of halo rows %.1f", "with features %.1f")
	for _, list := range strings.Split(machines, ",") {
		k, err := strconv.Atoi(list)
		if err != nil || k < 1 {
			return fmt.Errorf("machines must be numbers of at least 1 (got %q)", machines)
		}
		gb := func(bytes float64) float64 { return bytes * float64(total) / float64(k) / 1e9 }
		p.Row(k, gb(layers), gb(layers+block), gb(layers+block+features))
	}
	return nil
}
