// Package scale trains the default method over four sites on graphs of millions of nodes, one process a site.
package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "scale",
	Title: "Class means on millions of nodes",
	Text: `Class means over four sites on generated graphs of ten classes and ten edges a node, in one process or,
over QUIC on loopback, in one process a site. Data are the features and two numbers an edge. Memory is the sum of
the peaks that the processes report, mapped parts included. Seconds are wall time; training leaves out reading,
connecting and writing. Processor seconds are of all processes, user and system. The formula
of bytes is the rows and sums that the parts' edges need, with a byte for each column that the model's
rounds have, in each hop, and the requests for sums.`,
}

const (
	sites  = 4
	degree = 10 // edges a node
)

// options are the flags.
type options struct {
	dir, program   string // of graphs and parts; heddle
	columns, words int
	memory         int64
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	thousands := f.String("nodes", "1000,2000", "thousands of nodes, with commas between")
	f.IntVar(&o.columns, "columns", 50, "columns of features")
	f.IntVar(&o.words, "words", 0, "instead: words of the vocabulary")
	f.Int64Var(&o.memory, "memory", 1<<30, "bytes for storing and cutting a graph")
	together := f.Bool("together", false, "also train all sites in one process")
	return func(ctx context.Context, p *page.Page) error {
		o.dir = filepath.Join(os.TempDir(), "heddle-scale") // where graphs stay, for the next time
		o.program = filepath.Join(o.dir, "heddle")
		if _, err := o.call(ctx, "go", "build", "-trimpath", "-o", o.program, "./cmd/heddle"); err != nil {
			return err
		}
		p.Table("processes %d", "nodes %d", "edges %d", "data, MB %.0f", "memory, MB %.0f", "memory / data %.1f",
			"seconds %.0f", "training %.0f", "processor seconds %.0f", "sent, MB %.1f", "formula, MB %.1f",
			"test accuracy %.4f")
		for text := range strings.SplitSeq(*thousands, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("nodes must be thousands with commas between (got %q)", *thousands)
			}
			if err := o.one(ctx, p, n*1000, *together); err != nil {
				return err
			}
		}
		return nil
	}
}

// one measures a graph of n nodes.
func (o options) one(ctx context.Context, p *page.Page, n int, together bool) error {
	parts, err := o.parts(ctx, n)
	if err != nil {
		return err
	}
	edges, data, rows, requests, err := needs(parts)
	if err != nil {
		return err
	}
	run, err := os.MkdirTemp(o.dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(run)
	row := func(processes int, all []process, took time.Duration) {
		var memory, processor, training float64
		for _, one := range all {
			processor, training = processor+one.processor, max(training, one.result.Seconds)
			for _, peak := range one.result.Peaks {
				memory += peak
			}
		}
		p.Row(processes, n, edges, data/1e6, memory/1e6, memory/data, took.Seconds(), training, processor,
			all[0].result.Bytes["halo"]/1e6, (rows*all[0].width+requests)/1e6, all[0].result.Test)
	}
	if together {
		start := time.Now()
		out := filepath.Join(run, "together")
		one, err := o.call(ctx, o.program, "train", "--shards", parts, "--quiet", "--out", out)
		if err == nil {
			err = one.read(out)
		}
		if err != nil {
			return err
		}
		row(1, []process{one}, time.Since(start))
	}
	start := time.Now()
	all, err := o.joined(ctx, run, parts)
	if err == nil {
		row(sites, all, time.Since(start))
	}
	return err
}

// parts returns the directory of the parts of a graph of n nodes, and makes them if they are not there.
func (o options) parts(ctx context.Context, n int) (string, error) {
	name := filepath.Join(o.dir, fmt.Sprintf("%d-%d-%d", n, o.columns, o.words))
	parts := name + ".parts"
	if _, err := os.Stat(parts); err == nil {
		return parts, nil
	}
	l := large{nodes: n, edges: degree * n, columns: o.columns, words: o.words}
	if err := l.store(name+".graph", o.memory); err != nil {
		return parts, err
	}
	_, err := o.call(ctx, o.program, "partition", "--data", name+".graph", "--parts", strconv.Itoa(sites), "--policy",
		"contiguous", "--memory", fmt.Sprintf("%dMiB", o.memory>>20), "--out", parts)
	return parts, errors.Join(err, os.Remove(name+".graph")) // twice the space
}

// joined trains with a process a site.
func (o options) joined(ctx context.Context, run, parts string) ([]process, error) {
	plan, secret := filepath.Join(run, "plan.yaml"), filepath.Join(run, "secret")
	if _, err := o.call(ctx, o.program, "plan", "--out", plan); err != nil {
		return nil, err
	}
	if err := os.WriteFile(secret, []byte("the secret of the peers of a benchmark"), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all, ends := make([]process, sites), make(chan error)
	for r := range sites {
		go func() {
			var err error
			all[r], err = o.call(ctx, o.program, "join", "--plan", plan, "--shard", parts, "--secret", secret, "--rank",
				strconv.Itoa(r), "--ranks", strconv.Itoa(sites), "--hosts",
				strings.Repeat(",127.0.0.1", sites)[1:], "--port", "4741", "--quiet", "--out", run)
			if err == nil {
				err = all[r].read(filepath.Join(run, fmt.Sprintf("rank-%d", r)))
			}
			if err != nil {
				cancel()
			}
			ends <- err
		}()
	}
	var err error
	for range sites {
		err = errors.Join(err, <-ends)
	}
	return all, err
}

// needs returns the edges of the parts, the bytes of their data, the rows and sums that each hop sends, and the bytes
// of the requests for sums.
func needs(parts string) (edges int, data, rows, requests float64, err error) {
	for r := range sites {
		s, file, err := shard.ReadShard(filepath.Join(parts, fmt.Sprintf("part-%d", r)))
		if err != nil {
			return 0, 0, 0, 0, err
		}
		edges += s.Adj.NumEdges()
		data += float64(4*s.Adj.NumEdges() + 4*s.X.Dense.Rows*s.X.Dense.Cols)
		if x := s.X.Sparse; x != nil {
			data += float64(8 * x.NNZ())
		}
		for q := range sites {
			if q == r {
				continue
			}
			cover := shard.NewCover(s.From(&s.Adj, q))
			rows, requests = rows+float64(cover.Len()), requests+float64(len(cover.Append(nil)))
		}
		if err := file.Close(); err != nil {
			return 0, 0, 0, 0, err
		}
	}
	return edges / 2, data, rows, requests, nil
}

// process is what a process took.
type process struct {
	processor float64 // seconds
	result    result
	width     float64 // columns of a row of all hops
}

// result is what its result.json has.
type result struct {
	Seconds float64
	Rounds  int
	Test    float64
	Peaks   []float64          `json:"peak_rss_bytes"`
	Bytes   map[string]float64 `json:"bytes_all_peers"`
}

func (p *process) read(out string) error {
	b, err := os.ReadFile(filepath.Join(out, "result.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &p.result); err != nil {
		return err
	}
	model, _, err := modelfile.Read(filepath.Join(out, "model.safetensors"))
	if err != nil {
		return err
	}
	layout, classes := *model.Spec.Closed, model.Spec.Classes
	for r := range p.result.Rounds {
		p.width += float64(layout.HopsOf(r) * layout.MapWidth(r, classes))
		p.width += float64(layout.LogitHopsOf(r) * layout.Width(classes))
	}
	return nil
}

// call runs a program to its end.
func (o options) call(ctx context.Context, program string, args ...string) (p process, err error) {
	c := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		return p, fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), args[0], err, out.Bytes())
	}
	p.processor = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return p, nil
}
