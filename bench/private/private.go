// Package private measures what privacy of edges costs and what it keeps from an attacker.
package private

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/plan"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "private",
	Title: "Private edges",
	Text: `What differential privacy of edges costs, and what it keeps from an attacker
([explanation](../explanation/private-edges.md)). Run k has seed k and, where the data set has
several splits, split k. All choices are made by validation nodes. The noise is drawn from the
machine's own randomness: a repetition gives other figures within their standard errors.`,
}

// delta is the δ of all tables.
const delta = dp.UsualDelta

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	table := f.String("table", "accuracy", "table: accuracy, noise, edges or rows")
	names := f.String("graph", "facebook-pages,coauthor-cs,amazon-computers,cora", "graphs to measure")
	runs := f.Int("runs", 5, "runs of each plan")
	hops := f.Int("hops", 2, "of table accuracy: hops of the private plans")
	validation := f.Bool("validation", false, "accuracy: by validation nodes, not test")
	return func(ctx context.Context, p *page.Page) error {
		of, judged := strings.Split(*names, ","), graph.Test
		if *validation {
			judged = graph.Val
		}
		switch *table {
		case "accuracy":
			return accuracy(ctx, p, *root, of, *runs, *hops, judged)
		case "noise":
			return noise(p)
		case "edges":
			return known(ctx, p, *root, of, *runs)
		case "rows":
			return crossed(ctx, p, *root, of, *runs)
		}
		return fmt.Errorf("table must be accuracy, noise, edges or rows (got %q)", *table)
	}
}

// open returns the graph of run k, from 0, with its split if the data set has several.
func open(root, name string, k int) (*graph.Graph, error) {
	path := filepath.Join(root, name)
	g, err := dataset.Read(path, k)
	if err != nil && k > 0 {
		return dataset.Read(path, 0)
	}
	return g, err
}

// private is the plan whose cost is measured.
func private(epsilon float64, seed int) heddle.Plan {
	p := heddle.Defaults(plan.ClassMeans, "")
	p.ClassMeans.Epsilon, p.Seed, p.Peers, p.Transport = epsilon, uint64(seed), 4, "memory"
	if epsilon > 0 {
		p = p.Usual()
	}
	return p
}

// quiet is an ε whose noise is a tenth of a row's length: as good as none.
const quiet = dp.MaxEpsilon

// accuracy compares plans that differ only in ε, with one without edges and one without privacy.
func accuracy(ctx context.Context, p *page.Page, root string, names []string, runs, hops int,
	judged graph.Split) error {
	p.Text("Accuracy of %s nodes in %%, with the standard error of the mean over %d runs, of four peers; δ is %g.\n"+
		"`frugal` is the plan without privacy; `no edges` is what the private runs have before they use\n"+
		"edges: four rounds without hops, degrees or coarse rows. With ε %g the noise is hardly a fifth of a\n"+
		"row's length. The losses are against `frugal`, run by run.", splitName(judged), runs, delta, float64(quiet))
	p.Table("graph %s", "frugal %s", "no edges %s", "ε 100 %s", "ε 8 %s", "ε 4 %s", "ε 2 %s", "ε 1 %s",
		"lost at ε 4 %s", "lost at ε 1 %s", "ε 4 above no edges %s")
	for _, name := range names {
		plans := []heddle.Plan{private(0, 0), private(0, 0), private(quiet, 0), private(8, 0), private(4, 0),
			private(2, 0), private(1, 0)}
		for i := range plans[2:] {
			plans[2+i].ClassMeans.Hops = hops
		}
		alone := &plans[1]
		alone.ClassMeans.Hops, alone.ClassMeans.ClassRounds, alone.ClassMeans.CoarseRows = 0, 4, false
		figures := make([]figure, len(plans)+3)
		for k := range runs {
			g, err := open(root, name, k)
			if err != nil {
				return err
			}
			test := make([]float64, len(plans))
			for i, plan := range plans {
				plan.Seed = uint64(k + 1)
				r, err := heddle.Train(ctx, g, plan)
				if err != nil {
					return fmt.Errorf("%s, run %d: %w", name, k+1, err)
				}
				if test[i] = 100 * r.Test; judged == graph.Val {
					test[i] = 100 * r.Val
				}
				figures[i] = append(figures[i], test[i])
			}
			for i, pair := range [][2]int{{0, 4}, {0, 6}, {4, 1}} {
				figures[len(plans)+i] = append(figures[len(plans)+i], test[pair[0]]-test[pair[1]])
			}
		}
		row := []any{name}
		for _, f := range figures {
			row = append(row, f)
		}
		p.Row(row...)
	}
	return nil
}

// splitName is the split of the nodes on which a table is measured.
func splitName(of graph.Split) string {
	if of == graph.Val {
		return "validation"
	}
	return "test"
}

// figure is the results of several runs.
type figure []float64

// String writes mean and standard error of the mean.
func (f figure) String() string {
	sum, square := 0.0, 0.0
	for _, v := range f {
		sum += v
	}
	mean := sum / float64(len(f))
	for _, v := range f {
		square += (v - mean) * (v - mean)
	}
	if len(f) < 2 {
		return fmt.Sprintf("%.2f", mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, math.Sqrt(square/float64(len(f)-1)/float64(len(f))))
}

// noise lists how much noise a guarantee needs for several numbers of exchanges.
func noise(p *page.Page) error {
	p.Text("Deviation of the noise in each number of a sum, in units of its sensitivity (√2 rows of length 1), by\n"+
		"the number of exchanges; δ is %g. Two is what one closed form has, 800 what an exchange in every epoch of\n"+
		"two layers and 400 epochs has.", delta)
	p.Table("ε %g", "1 exchange %.3f", "2 %.3f", "4 %.3f", "800 %.1f")
	for _, epsilon := range []float64{1, 2, 4, 8} {
		one := 1 / float64(dp.Within(dp.Guarantee{Epsilon: epsilon, Delta: delta}))
		row := []any{epsilon}
		for _, n := range []float64{1, 2, 4, 800} {
			row = append(row, one*math.Sqrt(n))
		}
		p.Row(row...)
	}
	return nil
}

// secret returns one for a run.
func secret() (s [32]byte) {
	rand.Read(s[:])
	return s
}
