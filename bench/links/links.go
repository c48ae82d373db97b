// Package links compares link prediction with PyTorch Geometric, on the same held-out links and the same drawn pairs.
package links

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/baselines"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/links"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
	training "github.com/heddle-gnn/heddle/train/links"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "links",
	Title: "Link prediction",
	Text: `Links that are held out, ranked among 100 drawn pairs each, beside PyTorch Geometric: GCN with an inner
product (GAE) and GraphSAGE with an MLP. 5 % of the links validate, 10 % test; messages run along the
others, in both systems. Both rank the same links among the same pairs. Of each model the epoch is chosen
by validation MRR, and dropout by the validation MRR of the first seed.`,
}

// method is what is compared.
type method struct{ name, model, decoder string }

var methods = []method{{"GAE", "gcn", "dot"}, {"SAGE + MLP", "sage", "mlp"}}

// options are those of all runs.
type options struct {
	seeds, rounds, hidden int
	dropouts              []string
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := f.String("root", cmp.Or(os.Getenv("HEDDLE_DATA"), "../shared/data"), "folder of the data sets; default: $HEDDLE_DATA")
	names := f.String("graph", "cora,citeseer,lastfm-asia,dblp-citation", "graphs to measure")
	python := f.String("python", "python3", "Python with torch and torch_geometric")
	o := options{}
	f.IntVar(&o.seeds, "seeds", 5, "seeds: of split, pairs and parameters")
	f.IntVar(&o.rounds, "rounds", 200, "epochs")
	f.IntVar(&o.hidden, "hidden", 64, "width of all layers")
	dropouts := f.String("dropout", "0,0.5", "dropout probabilities to choose from")
	return func(ctx context.Context, p *page.Page) error {
		o.dropouts = strings.Split(*dropouts, ",")
		py, err := baselines.Start(*python, "bench/baselines/links_pyg.py", 2)
		if err != nil {
			return err
		}
		defer py.Stop()
		p.Table("graph %s", "method %s", "system %s", "seeds %d", "dropout %s", "MRR %.3f", "± %.3f", "hits@10 %.3f", "± %.3f", "AUC %.3f", "± %.3f", "validation MRR %.3f")
		for name := range strings.SplitSeq(*names, ",") {
			if err := compare(ctx, p, py, filepath.Join(*root, name), o); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		p.Text("%s. ± is the deviation over seeds.", py.About)
		return nil
	}
}

// compare measures both systems on a data set.
func compare(ctx context.Context, p *page.Page, py *baselines.Process, data string, o options) error {
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
		for _, system := range []struct {
			name string
			run  func(dropout string, seed int) (val, test eval.Ranks, err error)
		}{
			{"Heddle", func(dropout string, seed int) (val, test eval.Ranks, err error) {
				return own(ctx, g, m, o, dropout, seed)
			}},
			{"PyG", func(dropout string, seed int) (val, test eval.Ranks, err error) {
				return theirs(py, data, filepath.Join(dir, fmt.Sprint(seed)), m, o, dropout, seed)
			}},
		} {
			if err := measure(p, g.Name, system.name, m, o, system.run); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure chooses the dropout on the first seed, and prints the test links of all.
func measure(p *page.Page, data, system string, m method, o options, run func(dropout string, seed int) (val, test eval.Ranks, err error)) error {
	best, at := "", -1.0
	for _, d := range o.dropouts {
		val, _, err := run(d, 1)
		if err != nil {
			return err
		}
		if val.MRR > at {
			best, at = d, val.MRR
		}
	}
	var mrr, hits, auc, chosen sample
	for seed := range o.seeds {
		val, test, err := run(best, seed+1)
		if err != nil {
			return err
		}
		mrr, hits, auc, chosen = append(mrr, test.MRR), append(hits, test.Hits[10]), append(auc, test.AUC), append(chosen, val.MRR)
	}
	p.Row(data, m.name, system, o.seeds, best, mrr.mean(), mrr.deviation(), hits.mean(), hits.deviation(), auc.mean(), auc.deviation(), chosen.mean())
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
func own(ctx context.Context, g *graph.Graph, m method, o options, dropout string, seed int) (val, test eval.Ranks, err error) {
	text := fmt.Sprintf("mode: standalone\ntask: links\nmodel: %s\ndecoder: %s\nhidden: %d\nrounds: %d\ndropout: %s\nseed: %d\n", m.model, m.decoder, o.hidden, o.rounds, dropout, seed)
	settings, _, err := plan.Read([]byte(text), nil, nil)
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
func theirs(py *baselines.Process, data, file string, m method, o options, dropout string, seed int) (val, test eval.Ranks, err error) {
	line, err := py.Ask(strings.Join([]string{data, file, m.model, m.decoder, fmt.Sprint(o.hidden), fmt.Sprint(o.rounds), dropout, fmt.Sprint(seed)}, "\t"))
	if err != nil {
		return val, test, err
	}
	var out struct{ Val, Test eval.Ranks }
	err = json.Unmarshal([]byte(line), &out)
	return out.Val, out.Test, err
}

// export writes the links of a seed as lines: the split, the two ends, and of links that are held out the nodes that they are
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
			for _, id := range d.Rivals(nil, training.HeldOut(seed), l, training.Rivals) {
				fmt.Fprint(w, " ", id)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
