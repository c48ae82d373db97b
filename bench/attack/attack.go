// Package attack runs our own attacks on our own runs, and prints what they recover.
package attack

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/plan"
)

// About is the introduction of this experiment's page.
var About = page.About{
	Name:  "attacks",
	Title: "Our own attacks",
	Text: `We attack our own program and publish what we recover. *Exact* means that the claimed row equals
the victim's raw row in every column.`,
}

// setting is a plan that is attacked.
type setting struct {
	name  string
	given map[string]string
}

// settings begin with the old plan, which shows in each run that the attacks work.
var settings = []setting{
	{"pca:128, sums in the clear (old)", map[string]string{"method": "layer-wise", "encoder": "pca:128", "rounds": "1",
		"secure_sums": "off"}},
	{"class-means, coarse_rows: false", map[string]string{"coarse_rows": "false"}},
	{"class-means (default)", nil},
	// It is trained in rounds, and sends components and columns of classes.
	{"layer-wise sage, pca:16+classes", map[string]string{"method": "layer-wise", "model": "sage",
		"encoder": "pca:16+classes", "hidden": "64", "lr": "0.01", "decay": "0.0005", "local_steps": "5",
		"rounds": "40", "patience": "8"}},
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	data := f.String("data", "cora,citeseer,facebook-pages,amazon-photo", "data sets, separated by commas")
	peers := f.Int("peers", 3, "number of sites")
	seed := f.Uint64("seed", 1, "random seed of partition and training")
	seeds := f.Int("seeds", 1, "number of seeds for guessed columns, from that of -seed on")
	rows := f.Int("rows", 200, "rows of components, and rows with guessed columns")
	bags := f.Int("bags", 10, "rows of class means searched, of few values and above five")
	only := f.String("only", "", "part of the names of the settings to attack; empty: all")
	tries := f.Int("tries", 10_000_000, "sets compared for each of them")
	return func(ctx context.Context, p *page.Page) error {
		if *peers < 2 {
			return fmt.Errorf("peers must be at least 2 (got %d)", *peers)
		}
		p.Table("data set %s", "setting %s", "rows, up to 5 values: exact/tried %s", "rows, above 5: exact/tried %s",
			"PCA sum: exact rows %s", "columns guessed %.3f", "without a row %s", "gap %s")
		for _, name := range strings.Split(*data, ",") {
			for _, s := range settings {
				if !strings.Contains(s.name, *only) {
					continue
				}
				m := measurement{root: *root, data: name, peers: *peers, seed: *seed, rows: *rows, bags: *bags,
					tries: *tries}
				if err := m.over(ctx, p, s, max(*seeds, 1)); err != nil {
					return fmt.Errorf("%s, %s: %w", name, s.name, err)
				}
			}
		}
		p.Text("Site 0 attacks site 1 and follows the protocol; rows are sent as they are " +
			"(`exchange: halo`). The attack on rows of components begins with the first node of the boundary, the " +
			"attack on class means with the nodes of fewest values, by all rounds of the model together. " +
			"There the search is also given the number of the node's values, its class and its soft labels. " +
			"*Columns guessed* are of as many columns as a node has, over evenly chosen rows. For class means the " +
			"attacker has all rows of the node, the model, the sums, and its own nodes with their rows; " +
			"it is given class, degree and number of values, and guesses by the best linear estimate and by a " +
			"decoder that it learned of its own nodes: the better figure counts. The baseline has all of this but " +
			"rows. The standard error of the gap is that over seeds or, of one seed, over rows.")
		return nil
	}
}

// measurement is the result of one setting on one data set.
type measurement struct {
	root, data string
	peers      int
	seed       uint64
	rows, bags int
	tries      int
}

// found is what was recovered with one seed.
type found struct {
	name           string // of the setting
	few, many, sum string
	guessed        float64
	compared       bool // with base is what is guessed without a row
	base           float64
	gap, deviation float64
}

// over prints what is recovered over several seeds.
func (m *measurement) over(ctx context.Context, p *page.Page, s setting, seeds int) error {
	var all []found
	for range seeds {
		one, err := m.run(ctx, s)
		if err != nil {
			return err
		}
		all = append(all, one)
		m.seed, m.bags = m.seed+1, 0
	}
	f, n := all[0], float64(seeds)
	f.guessed, f.base, f.gap = 0, 0, 0
	for _, one := range all {
		f.guessed, f.base, f.gap = f.guessed+one.guessed/n, f.base+one.base/n, f.gap+one.gap/n
	}
	if seeds > 1 {
		square := 0.0
		for _, one := range all {
			square += (one.gap - f.gap) * (one.gap - f.gap)
		}
		f.deviation = math.Sqrt(square / (n - 1) / n)
	}
	base, gap := "–", "–"
	if f.compared {
		base, gap = fmt.Sprintf("%.3f", f.base), fmt.Sprintf("%.3f ± %.3f", f.gap, f.deviation)
	}
	p.Row(m.data, f.name, f.few, f.many, f.sum, f.guessed, base, gap)
	return nil
}

// run attacks the victim of one seed.
func (m *measurement) run(ctx context.Context, s setting) (f found, err error) {
	g, err := graphs.Open(m.root, m.data)
	if err != nil {
		return f, err
	}
	given := map[string]string{"exchange": "halo", "seed": fmt.Sprint(m.seed)}
	for k, v := range s.given {
		given[k] = v
	}
	one, err := plan.Read(nil, given, nil)
	if err != nil {
		return f, err
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		return f, err
	}
	shards, err := partition.Partition(g.Numbered(), policy, m.peers, m.seed)
	if err != nil {
		return f, err
	}
	r, err := recorded.Train(ctx, *one, shards, 0)
	if err != nil {
		return f, err
	}
	if one.LayerWise.Encoder.Kind == "pca" {
		return m.components(ctx, s, r)
	}
	return m.classes(ctx, s, r)
}

// components attacks rows of components and the sum that finds them.
func (m *measurement) components(ctx context.Context, s setting, r *recorded.Run) (f found, err error) {
	rows, err := r.ComponentRows(ctx, 1, m.rows)
	if err != nil {
		return f, err
	}
	sum, err := r.ComponentSum(ctx, 1)
	if err != nil {
		return f, err
	}
	f = found{name: s.name, few: fmt.Sprintf("%d/%d", rows.Exact-rows.Many, rows.Tried-rows.Tested),
		many: fmt.Sprintf("%d/%d", rows.Many, rows.Tested), sum: fmt.Sprint(sum.Exact)}
	f.guessed, _ = rows.Share()
	if r.Model.Encoder.Classes != nil { // columns of classes are sent, too
		columns, err := r.ClassColumns(ctx, 1, m.rows)
		if err != nil {
			return f, err
		}
		f.compare(columns)
	}
	return f, nil
}

// compare takes over the numbers of columns that were guessed with rows and without.
func (f *found) compare(r recorded.Recovery) {
	f.compared = true
	f.guessed, f.base = r.Share()
	f.gap, f.deviation = r.Gap()
}

// searched searches rows of class means, of few values and of more.
func (m *measurement) searched(ctx context.Context, r *recorded.Run) (few, many string, err error) {
	if m.bags == 0 {
		return "–", "–", nil
	}
	one, err := r.ClassRows(ctx, 1, recorded.Effort{Rows: m.bags, Tries: m.tries, Least: 1})
	if err != nil {
		return "", "", err
	}
	other, err := r.ClassRows(ctx, 1, recorded.Effort{Rows: m.bags, Tries: m.tries, Least: attack.Few + 1})
	return fmt.Sprintf("%d/%d", one.Exact-one.Many, one.Tried-one.Tested),
		fmt.Sprintf("%d/%d", other.Many, other.Tested), err
}

// classes attacks rows of class means.
func (m *measurement) classes(ctx context.Context, s setting, r *recorded.Run) (f found, err error) {
	f = found{name: s.name, sum: "–"}
	if f.few, f.many, err = m.searched(ctx, r); err != nil {
		return f, err
	}
	columns, err := r.ClassColumns(ctx, 1, m.rows)
	if err == nil {
		f.compare(columns)
	}
	return f, err
}
