package attack

import (
	"context"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// mostHidden is about how many columns are hidden in turn, since each takes a run.
const mostHidden = 4

// columns attacks rows of nodes that have few numeric columns.
func (b *inference) columns(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Share of the variance of a column that a linear map of all rows of a node explains (R²), "+
		"on average and for\nthe column with the largest gap, and AUC of whether a value is above the mean. "+
		"In brackets: without rows. The attacker is\ngiven class and degree, and learns the map from the rows of its "+
		"own nodes. *Other columns known*: it has all other columns\nof the node, too. *Hidden column*: that column "+
		"is in no table of the run; mean over\nsome columns. `six` and `sixteen` are made\n"+
		"graphs of independent columns. Rows as they are (`exchange: halo`), %d sites at random.", b.sites)
	p.Table("data set %s", "plan %s", "numbers sent, of columns %s", "R² %s", "largest gap %s", "AUC %s",
		"largest gap %s", "other columns known: R² %s", "hidden column: AUC %s", "edges: AUC %s", "validation %.3f")
	for _, g := range all {
		for _, settings := range strings.Split(b.settings, ";") {
			if err := b.column(ctx, p, g, settings); err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name, settings, err)
			}
		}
	}
	return nil
}

// column prints a row of columns.
func (b *inference) column(ctx context.Context, p *page.Page, g *graph.Graph, settings string) error {
	run, err := b.run(ctx, g, settings, b.sites, false)
	if err != nil {
		return err
	}
	found, err := run.FewColumns(1)
	if err != nil {
		return err
	}
	one := func(k int) string { return fmt.Sprintf("%.2f (%.2f)", found[k].Value, found[k].Base) }
	sent, err := run.Sent(1)
	if err != nil {
		return err
	}
	edges := "–"
	if f, err := run.Links(1); err == nil {
		edges = fmt.Sprintf("%.2f (%.2f)", f.Value, f.Base)
	}
	hidden, step := [2]float64{}, max(1, g.X.Cols()/mostHidden)
	for j := 0; j < g.X.Cols(); j += step {
		less := *g
		less.X = graph.Features{Dense: mat.New(g.N(), g.X.Cols()-1)}
		for i := range g.N() {
			row := less.X.Dense.Row(i)
			copy(row, g.X.Dense.Row(i)[:j])
			copy(row[j:], g.X.Dense.Row(i)[j+1:])
		}
		run, err := b.run(ctx, &less, settings, b.sites, false)
		if err != nil {
			return err
		}
		f, err := run.Attribute(1, func(node int64) float32 { return g.X.Dense.At(int(node), j) })
		if err != nil {
			return err
		}
		hidden[0], hidden[1] = hidden[0]+f[1].Value, hidden[1]+f[1].Base
	}
	n := float64((g.X.Cols() + step - 1) / step)
	p.Row(g.Name, settings, fmt.Sprintf("%d of %d", sent, g.X.Cols()), one(0), one(2), one(1), one(3), one(4),
		fmt.Sprintf("%.2f (%.2f)", hidden[0]/n, hidden[1]/n), edges, run.Result.Final().Val)
	return nil
}

// made returns a graph of independent columns, with the number of columns in its name, or nil. Neighbours are alike in
// the second column. The label depends on a node's first column and on its neighbours' third.
func made(name string, seed uint64) (*graph.Graph, error) {
	columns := map[string]int{"six": 6, "sixteen": 16}[name]
	if columns == 0 {
		return nil, nil
	}
	const n = 6000
	key := rng.New(seed).FoldString(name)
	x, place := mat.New(n, columns), make([]float64, n)
	for i := range x.Data {
		x.Data[i] = float32(key.Normal(uint64(i)))
	}
	var src, dst []int32
	for i := range place { // neighbours are near one another
		place[i] = float64(x.At(i, 1))
	}
	for i := range 40 * n {
		a, b := int32(key.Fold(1).Uint64(uint64(i))%n), int32(key.Fold(2).Uint64(uint64(i))%n)
		if d := place[a] - place[b]; a != b && len(src) < 4*n && d < 0.3 && d > -0.3 {
			src, dst = append(src, a), append(dst, b)
		}
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		return nil, err
	}
	g := &graph.Graph{Name: name, Adj: adj, X: graph.Features{Dense: x}, Labels: graph.Labels{Classes: 2}}
	for i := range n {
		sum, near := 0.0, 1.0
		col, _ := adj.Row(i)
		for _, j := range col {
			sum, near = sum+float64(x.At(int(j), 2)), near+1
		}
		class := int32(0)
		if float64(x.At(i, 0))+3*sum/near+key.Fold(3).Normal(uint64(i)) > 0 {
			class = 1
		}
		g.Labels.Class = append(g.Labels.Class, class)
		g.Split = append(g.Split, []graph.Split{graph.Train, graph.Val, graph.Test}[i%3])
	}
	return g, nil
}
