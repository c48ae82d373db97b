package compare

import (
	"archive/zip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"github.com/heddle-gnn/heddle/graph/npy"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
)

// output is the directory of the results.
type output struct{ dir string }

func (o output) file(ending string) string { return filepath.Join(o.dir, "compare."+ending) }

// settings is the file of the settings that trained the models.
func (o output) settings() string { return filepath.Join(o.dir, "settings.yaml") }

// write writes compare.html, compare.json, compare.csv, compare.npz and settings.yaml.
func (o output) write(r *results) error {
	to := func(ending string, fill func(io.Writer) error) error {
		return cli.WriteFile(io.Discard, o.file(ending), fill)
	}
	return errors.Join(
		to("json", func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}),
		to("csv", r.writeCSV),
		to("npz", r.writeNPZ),
		to("html", func(w io.Writer) error { return report.WriteComparison(w, r.page()) }),
		cli.WriteFile(io.Discard, o.settings(), func(w io.Writer) error { _, err := io.WriteString(w, r.Settings); return err }))
}

// writeCSV writes one line for each run in each way.
func (r *results) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	lines := [][]string{{"way", "seed", "split", "test", "val", "bytes", "wire_bytes", "raw_data_seen_by", "seconds"}}
	for _, way := range r.Ways {
		for _, one := range way.Runs {
			val := ""
			if one.Val != nil {
				val = decimal(*one.Val)
			}
			lines = append(lines, []string{way.Way, strconv.FormatUint(one.Seed, 10), strconv.Itoa(one.Split), decimal(one.Test), val,
				strconv.FormatInt(one.Bytes, 10), strconv.FormatInt(one.Wire, 10), way.Seen, strconv.FormatFloat(one.Seconds, 'f', 3, 64)})
		}
	}
	return c.WriteAll(lines)
}

// writeNPZ writes the columns of writeCSV as NumPy arrays with a row a run; val is NaN where there is none.
func (r *results) writeNPZ(w io.Writer) error {
	var ways, seen []string
	var seed, split, sent, wire []int64
	var test, val, seconds []float64
	for _, way := range r.Ways {
		for _, one := range way.Runs {
			ways, seen = append(ways, way.Way), append(seen, way.Seen)
			seed, split = append(seed, int64(one.Seed)), append(split, int64(one.Split))
			sent, wire = append(sent, one.Bytes), append(wire, one.Wire)
			test, seconds = append(test, one.Test), append(seconds, one.Seconds)
			val = append(val, math.NaN())
			if one.Val != nil {
				val[len(val)-1] = *one.Val
			}
		}
	}
	z := zip.NewWriter(w)
	var err error
	for _, c := range []struct {
		name   string
		values any
	}{{"way", ways}, {"seed", seed}, {"split", split}, {"test", test}, {"val", val}, {"bytes", sent}, {"wire_bytes", wire},
		{"raw_data_seen_by", seen}, {"seconds", seconds}} {
		err = errors.Join(err, npy.Write(z, c.name, []int{len(ways)}, c.values))
	}
	return errors.Join(err, z.Close())
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }

// mostSites is how many sites are printed.
const mostSites = 16

// print prints the figures as tables, and the sentence.
func (r *results) print(w io.Writer) error {
	tables := []cli.Table{r.waysTable()}
	if len(r.Sites) <= mostSites {
		tables = append(tables, r.sitesTable())
	}
	for _, t := range tables {
		if err := t.Print(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, r.Sentence)
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
	return nil
}

// page is the page of the results.
func (r *results) page() report.Comparison {
	p := report.Comparison{Title: r.Dataset + ": does joining pay?", Sentence: r.Sentence, Metric: string(r.Metric), Ways: r.waysTable(), Sites: r.sitesTable(),
		Kicker: fmt.Sprintf("%d sites · %d runs · %s · version %s", len(r.Sites), r.runs(), r.Date, r.Version),
		Notes:  r.Notes, Settings: r.Settings, Command: r.Command}
	for _, w := range r.Ways {
		p.WayBars = append(p.WayBars, w.Test.bar(w.Title, len(w.Runs)))
	}
	for _, s := range r.Sites {
		if s.Together == nil {
			continue
		}
		if s.Alone != nil {
			p.SiteBars = append(p.SiteBars, s.Alone.bar(s.Site+" alone", len(s.alone)))
		}
		p.SiteBars = append(p.SiteBars, s.Together.bar(s.Site+" together", len(s.together)))
	}
	return p
}

// bar is the mean of n runs with its 95 % interval.
func (s *spread) bar(name string, n int) report.Bar {
	b := report.Bar{Name: name, Value: max(0, s.Mean), Low: math.NaN(), High: math.NaN()}
	if s.Deviation != nil {
		half := student(n) * *s.Deviation / math.Sqrt(float64(n))
		b.Low, b.High = max(0, s.Mean-half), min(1, s.Mean+half)
	}
	return b
}

// waysTable has a row for each way.
func (r *results) waysTable() cli.Table {
	t := cli.Table{Head: []string{"way", "test " + string(r.Metric), "together ahead by", "sent", "raw data seen by"}}
	for _, w := range r.Ways {
		t.Rows = append(t.Rows, []string{w.Title, w.Test.String(), w.Ahead.String(), cli.Bytes(int64(w.Bytes)), w.Seen})
	}
	return t
}

// sitesTable has a row for each site.
func (r *results) sitesTable() cli.Table {
	t := cli.Table{Head: []string{"site", "nodes", "test nodes", "alone", "together", "together ahead by"}}
	for _, s := range r.Sites {
		t.Rows = append(t.Rows, []string{s.Site, fmt.Sprint(s.Nodes), fmt.Sprint(s.TestNodes), s.Alone.String(), s.Together.String(), s.Ahead.String()})
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
