package compare

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
)

// resultFiles are the files of a comparison.
var resultFiles = []string{"compare.json", "compare.csv", "compare.npz", "compare.html", "settings.yaml"}

// writeFiles writes them to a directory.
func (r *results) writeFiles(dir string) error {
	err := errors.Join(cli.WriteJSON(nil, filepath.Join(dir, resultFiles[0]), r),
		cli.WriteFile(nil, filepath.Join(dir, resultFiles[3]), r.page().Write),
		cli.WriteText(nil, filepath.Join(dir, resultFiles[4]), r.Settings))
	for _, name := range resultFiles[1:3] {
		err = errors.Join(err, cli.WriteFile(nil, filepath.Join(dir, name),
			func(w io.Writer) error { return r.writeRuns(w, name) }))
	}
	return err
}

// writeRuns writes a row for each run in each way, as CSV or .npz; without validation nodes val is empty or NaN.
func (r *results) writeRuns(w io.Writer, name string) error {
	var ways, seen []string
	var seed, split, sent, wire []int64
	var test, val, seconds []float64
	for _, way := range r.Ways {
		for _, one := range way.Runs {
			ways, seen = append(ways, way.Way), append(seen, way.Seen)
			seed, split = append(seed, int64(one.Seed)), append(split, int64(one.Split))
			sent, wire = append(sent, one.Bytes), append(wire, one.Wire)
			test, seconds = append(test, one.Test), append(seconds, one.Seconds)
			if val = append(val, math.NaN()); one.Val != nil {
				val[len(val)-1] = *one.Val
			}
		}
	}
	return cli.WriteColumns(w, name, len(ways), cli.Column{Name: "way", Values: ways}, cli.Column{Name: "seed",
		Values: seed},
		cli.Column{Name: "split", Values: split}, cli.Column{Name: "test", Values: test, Digits: 6},
		cli.Column{Name: "val", Values: val, Digits: 6}, cli.Column{Name: "bytes", Values: sent},
		cli.Column{Name: "wire_bytes", Values: wire}, cli.Column{Name: "raw_data_seen_by", Values: seen},
		cli.Column{Name: "seconds", Values: seconds, Digits: 3})
}

// mostSites is how many sites are printed at most, in lines of `columns` columns.
const mostSites, columns = 16, 72

// print prints what joining gave, as tables and in sentences. The page has all ways of training.
func (r *results) print(w io.Writer) error {
	ways := cli.Table{Head: []string{"trained", "test " + string(r.Metric), "sent"}}
	for _, one := range r.Ways {
		if one.Way == alone || one.Way == together {
			ways.Add(one.Title, one.Test.String(), cli.Bytes(int64(one.Bytes)))
		}
	}
	tables := []cli.Table{ways}
	if len(r.Sites) <= mostSites {
		tables = append(tables, r.sitesTable())
	}
	for _, t := range tables {
		if err := t.Print(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, text := range append([]string{r.Sentence}, r.Notes...) {
		fmt.Fprintln(w, cli.WrapWords(strings.Fields(text), "\n", columns))
	}
	return nil
}

// page is the page of the results.
func (r *results) page() report.Page {
	var ways, sites []report.Bar
	for _, w := range r.Ways {
		ways = append(ways, w.Test.bar(w.Title, len(w.Runs)))
	}
	for _, s := range r.Sites {
		if s.Together == nil {
			continue
		}
		if s.Alone != nil {
			sites = append(sites, s.Alone.bar(s.Site+" alone", len(s.alone)))
		}
		sites = append(sites, s.Together.bar(s.Site+" together", len(s.together)))
	}
	metric := string(r.Metric)
	p := pageOf(r.Dataset+": does joining help?", r.Sentence, metric, ways, r.waysTable(), r.Notes, report.Section{
		Title: "Site by site", Tables: []cli.Table{r.sitesTable()},
		Charts: report.Bars("Test "+metric+" of each site, by itself and together", metric, sites)})
	p.Kicker = fmt.Sprintf("%d sites · %d runs · %s · version %s", len(r.Sites), r.runs(), r.Date, r.Version)
	p.Settings, p.Command = r.Settings, r.Command
	return p
}

// pageOf is the page of a comparison.
func pageOf(title, sentence, metric string, bars []report.Bar, ways cli.Table, notes []string,
	more ...report.Section) report.Page {
	first := report.Section{Charts: report.Bars("Test "+metric+" of each way of training", metric, bars),
		Tables: []cli.Table{ways}}
	last := report.Section{Title: "What the figures mean", Notes: notes}
	return report.Page{Title: title, Lead: []string{sentence}, Sections: append(append([]report.Section{first},
		more...), last)}
}

// bar is the mean of n runs with its 95 % interval.
func (s *spread) bar(name string, n int) report.Bar {
	b := report.BarOf(name, max(0, s.Mean))
	if s.Deviation != nil {
		half := halfInterval(n, *s.Deviation)
		b.Low, b.High = max(0, s.Mean-half), min(1, s.Mean+half)
	}
	return b
}

// waysTable has a row for each way.
func (r *results) waysTable() cli.Table {
	t := cli.Table{Name: "Ways of training",
		Head: []string{"trained", "test " + string(r.Metric), "together ahead by", "sent", "raw data are at"}}
	for _, w := range r.Ways {
		t.Add(w.Title, w.Test.String(), w.Ahead, cli.Bytes(int64(w.Bytes)), w.Seen)
	}
	return t
}

// sitesTable has a row for each site.
func (r *results) sitesTable() cli.Table {
	t := cli.Table{Name: "Sites", Head: []string{"site", "test nodes", "alone", "together", "gain in points"}}
	for _, s := range r.Sites {
		t.Add(s.Site, s.TestNodes, s.Alone, s.Together, s.Ahead)
	}
	return t
}

// String is mean ± deviation in percent.
func (s *spread) String() string {
	switch {
	case s == nil:
		return "none"
	case s.Deviation == nil:
		return fmt.Sprintf("%.1f %%", 100*s.Mean)
	}
	return fmt.Sprintf("%.1f ± %.1f %%", 100*s.Mean, 100**s.Deviation)
}

// String is the gain in points with its interval.
func (g *gain) String() string {
	if g == nil {
		return "–"
	}
	return fmt.Sprintf("%s (%s to %s)", points("%+.1f", g.Mean), points("%.1f", g.Low), points("%.1f", g.High))
}

// points writes a difference in points, and none as 0.0.
func points(format string, x float64) string {
	x = math.Round(1000*x) / 10
	if x == 0 {
		return "0.0"
	}
	return fmt.Sprintf(format, x)
}
