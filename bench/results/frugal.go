package results

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
)

// AboutFrugal is the introduction of the page of subcommand frugal.
var AboutFrugal = page.About{
	Name:  "frugal",
	Title: "Few bytes",
	Text: `Accuracy of class means against every byte that all peers send, beside the reference's own
setting and GCN on one machine. Validation nodes decide every choice; test
nodes are read once. The metric is accuracy in %, AUC for tolokers and s-ffsd; MB are 10⁶ bytes.`,
}

// frugalTables are the tables of the subcommand frugal.
var frugalTables = []struct {
	name  string
	print func(options, context.Context, *page.Page, *book) error
}{
	{"ways", options.printWays},
	{"sites", options.printSites},
	{"pays", options.printPays},
	{"plot", options.drawWays},
}

// CommandFrugal registers the flags of the subcommand frugal and returns it.
func CommandFrugal(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	var names []string
	for _, t := range frugalTables {
		names = append(names, t.name)
	}
	f.StringVar(&o.table, "table", names[0], "one of "+strings.Join(names, ", "))
	f.StringVar(&o.plan, "plan", "", "settings of ways, sites and pays (default: none)")
	f.StringVar(&o.svg, "svg", "docs/measurements/frugal.svg", "with -table plot: file of the plot")
	f.StringVar(&o.from, "from", "bench/results/frugal.jsonl", "with -table plot: what is drawn of it")
	o.bind(f)
	return o.within(func(ctx context.Context, p *page.Page, b *book) error {
		for _, t := range frugalTables {
			if t.name == o.table {
				return t.print(o, ctx, p, b)
			}
		}
		return fmt.Errorf("table must be one of %s (got %q)", strings.Join(names, ", "), o.table)
	})
}

// onData changes e to train on that data set: its metric, and its sites if it has them.
func (e experiment) onData(data string) experiment {
	e.Data = data
	switch data {
	case "twitch":
		e.Policy = "by-column"
		if e.Federated() {
			e.Peers = 7
		}
	case "drawn-text":
		if e.Policy = "by-column"; e.Peers != 1 {
			e.Peers = 3
		}
	case "tolokers", "s-ffsd":
		e.Metric = "auc"
	}
	return e
}

// ownChoice is what validation chose of the reference's own setting on a data set; on the large ones with layers of 64
// columns.
type ownChoice struct {
	data               string
	lr, decay, dropout float32
	rowNorm            string
}

// ownChoices begin with what takes the least time.
var ownChoices = []ownChoice{
	{"cora", 0.01, 0.005, 0.3, "l1"},
	{"citeseer", 0.003, 0.005, 0.3, "l1"},
	{"tolokers", 0.01, 0, 0.2, "none"},
	{"dblp-citation", 0.01, 0.005, 0.3, "none"},
	{"amazon-photo", 0.01, 0.005, 0.3, "none"},
	{"coauthor-cs", 0.01, 0.0005, 0.3, "none"},
	{"amazon-computers", 0.01, 0.0005, 0.3, "none"},
	{"facebook-pages", 0.01, 0.005, 0.3, "none"},
	{"github-web-ml", 0.01, 0.0005, 0.3, "none"},
	{"twitch", 0.01, 0.0005, 0.3, "none"},
}

// experiment is the reference's own setting: raw features, two layers of 256, 200 rounds each, one
// local step, all rows of neighbours.
func (c ownChoice) experiment() experiment {
	e := reference("gcn").onData(c.data)
	e.LayerWise.KeepLast = true
	e.Name, e.Gradient().LR, e.Gradient().Decay, e.Gradient().Dropout, e.RowNorm = "Retexo's own setting", c.lr,
		c.decay, c.dropout, c.rowNorm
	return e
}
