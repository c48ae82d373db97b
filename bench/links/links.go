// Package links compares link prediction with PyTorch Geometric, on the same held-out links and the same sampled pairs.
package links

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/baselines"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "links",
	Title: "Link prediction",
	Text: `Links that are held out, ranked among 100 drawn pairs each, beside PyTorch Geometric: GCN with an inner
product (GAE) and GraphSAGE with an MLP. 5 % of the links validate, 10 % test; messages run along the
others, in both systems. Both rank the same links among the same pairs. Of each model the epoch is chosen
by validation MRR, and width, dropout and learning rate by the validation MRR of the first seed, from one
grid for both.`,
}

// method is what is compared.
type method struct{ name, model, decoder string }

var methods = []method{{"GAE", "gcn", "dot"}, {"SAGE + MLP", "sage", "mlp"}}

// point is one of the settings to choose from.
type point struct{ hidden, dropout, lr string }

func (p point) String() string { return p.hidden + ", " + p.dropout + ", " + p.lr }

// options are those of all runs.
type options struct {
	seeds, rounds int
	grid          []point
	methods       string
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := f.String("root", cmp.Or(os.Getenv("HEDDLE_DATA"), "../shared/data"),
		"folder of the data sets; default: $HEDDLE_DATA")
	names := f.String("graph", "cora,citeseer,lastfm-asia,dblp-citation", "graphs to measure")
	python := f.String("python", "python3", "Python with torch_geometric; none: Heddle alone")
	o := options{}
	f.IntVar(&o.seeds, "seeds", 5, "seeds: of split, pairs and parameters")
	f.IntVar(&o.rounds, "rounds", 200, "epochs")
	hidden := f.String("hidden", "64,128", "widths of all layers to choose from")
	dropouts := f.String("dropout", "0,0.5", "dropout probabilities to choose from")
	f.StringVar(&o.methods, "method", "GAE,SAGE + MLP", "methods to compare")
	threads := f.Int("threads", 2, "threads of PyTorch")
	rates := f.String("lr", "0.01,0.003", "learning rates to choose from")
	return func(ctx context.Context, p *page.Page) error {
		heads := []string{"graph %s", "method %s", "system %s"}
		for h := range strings.SplitSeq(*hidden, ",") {
			for d := range strings.SplitSeq(*dropouts, ",") {
				for lr := range strings.SplitSeq(*rates, ",") {
					o.grid = append(o.grid, point{h, d, lr})
					heads = append(heads, o.grid[len(o.grid)-1].String()+" %.3f")
				}
			}
		}
		about := "Heddle alone"
		var py *baselines.Process
		if *python != "none" {
			var err error
			if py, err = baselines.Start(*python, "bench/baselines/links_pyg.py", *threads); err != nil {
				return err
			}
			defer py.Stop()
			about = py.About
		}
		p.Table("graph %s", "method %s", "system %s", "width, dropout, rate %s", "validation MRR %.3f", "MRR %.3f",
			"± %.3f", "hits@10 %.3f", "± %.3f", "AUC %.3f", "± %.3f")
		var tried [][]any
		for name := range strings.SplitSeq(*names, ",") {
			if err := compare(ctx, p, py, filepath.Join(*root, name), o, &tried); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		p.Text("%s. %d seeds; ± is the deviation over seeds. Validation MRR of the first seed, by width, "+
			"dropout and learning rate:", about, o.seeds)
		p.Table(heads...)
		for _, row := range tried {
			p.Row(row...)
		}
		return nil
	}
}

// run trains by a point of the grid and measures.
type run func(at point, seed int) (val, test eval.Ranks, err error)

// compare measures both systems on a data set.
func compare(ctx context.Context, p *page.Page, py *baselines.Process, data string, o options, tried *[][]any) error {
	g, err := dataset.Read(data, 0)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "links")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for seed := range o.seeds {
		if err := export(filepath.Join(dir, fmt.Sprint(seed+1)), g, uint64(seed+1)); err != nil {
			return err
		}
	}
	for _, m := range methods {
		if !slices.Contains(strings.Split(o.methods, ","), m.name) {
			continue
		}
		systems := map[string]run{"Heddle": func(at point, seed int) (val, test eval.Ranks, err error) {
			return own(ctx, g, m, o, at, seed)
		}}
		if py != nil {
			systems["PyG"] = func(at point, seed int) (val, test eval.Ranks, err error) {
				return theirs(py, data, filepath.Join(dir, fmt.Sprint(seed)), m, o, at, seed)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(systems)) {
			best, err := choose(o, systems[name])
			if err != nil {
				return err
			}
			row := []any{g.Name, m.name, name}
			*tried = append(*tried, append(slices.Clone(row), best.all...))
			if err := measure(p, o, best, systems[name], row); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen is the point of the grid that validates best on the first seed, with its figures.
type chosen struct {
	at        point
	val, test eval.Ranks
	all       []any // validation MRR of every point
}

// choose tries all points.
func choose(o options, by run) (best chosen, err error) {
	for k, at := range o.grid {
		val, test, err := by(at, 1)
		if err != nil {
			return best, err
		}
		if k == 0 || val.MRR > best.val.MRR {
			best.at, best.val, best.test = at, val, test
		}
		best.all = append(best.all, val.MRR)
	}
	return best, nil
}

// measure prints the test links of all seeds, behind the first cells of the row.
func measure(p *page.Page, o options, best chosen, by run, row []any) error {
	var mrr, hits, auc, validation sample
	val, test := best.val, best.test
	for seed := range o.seeds {
		if seed > 0 {
			var err error
			if val, test, err = by(best.at, seed+1); err != nil {
				return err
			}
		}
		mrr, hits, auc, validation = append(mrr, test.MRR), append(hits, test.Hits[10]), append(auc, test.AUC),
			append(validation, val.MRR)
	}
	p.Row(append(row, best.at, validation.mean(), mrr.mean(), mrr.deviation(), hits.mean(), hits.deviation(),
		auc.mean(), auc.deviation())...)
	return nil
}

// sample is a figure of each seed.
type sample []float64

func (s sample) mean() (m float64) {
	for _, x := range s {
		m += x / float64(len(s))
	}
	return m
}

func (s sample) deviation() float64 {
	m, sum := s.mean(), 0.0
	for _, x := range s {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(max(len(s)-1, 1)))
}

// own trains with Heddle.
func own(ctx context.Context, g *graph.Graph, m method, o options, at point,
	seed int) (val, test eval.Ranks, err error) {
	text := fmt.Sprintf("method: full-batch\npeers: 1\ntask: links\nmodel: %s\ndecoder: %s\nhidden: %s\ndropout: %s\n"+
		"lr: %s\nrounds: %d\nseed: %d\nexperimental: {eval_every: 5}\n", m.model, m.decoder, at.hidden, at.dropout,
		at.lr, o.rounds, seed)
	settings, err := plan.Read([]byte(text), nil, nil)
	if err != nil {
		return val, test, err
	}
	r, err := heddle.Train(ctx, g, *settings)
	if err != nil {
		return val, test, err
	}
	return *r.Links.Val, *r.Links.Test, nil
}

// theirs trains with PyTorch Geometric.
func theirs(py *baselines.Process, data, file string, m method, o options, at point,
	seed int) (val, test eval.Ranks, err error) {
	line, err := py.Ask(strings.Join([]string{data, file, m.model, m.decoder, at.hidden, fmt.Sprint(o.rounds),
		at.dropout, at.lr, fmt.Sprint(seed)}, "\t"))
	if err != nil {
		return val, test, err
	}
	var out struct{ Val, Test eval.Ranks }
	err = json.Unmarshal([]byte(line), &out)
	return out.Val, out.Test, err
}

// export writes the links of a seed as lines: the split, the two ends and, for held-out links, the nodes that they are
// ranked among.
func export(path string, g *graph.Graph, seed uint64) error {
	s := shard.Whole(g.Numbered())
	c, err := links.Rule{Seed: seed, Val: 0.05, Test: 0.1}.Cut(s)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	d := links.NewDrawer(links.NewPool(make([]uint8, g.N()), 1, func(int64) bool { return true }), c, s)
	names := map[graph.Split]string{graph.Train: "train", graph.Val: "val", graph.Test: "test"}
	for _, l := range c.Links {
		fmt.Fprint(w, names[l.Split], " ", l.At, " ", l.Other)
		if l.Split != graph.Train {
			for _, id := range d.Rivals(nil, links.HeldOut(seed), l, links.Rivals) {
				fmt.Fprint(w, " ", id)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
