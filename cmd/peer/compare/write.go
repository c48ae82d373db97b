package compare

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
)

// output is the directory of the results.
type output struct{ dir string }

func (o output) file(ending string) string { return filepath.Join(o.dir, "compare."+ending) }

// write writes compare.json and compare.csv.
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
		to("csv", r.writeCSV))
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

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }

// mostSites is how many sites are printed.
const mostSites = 16

// print prints the figures as tables, and the sentence.
func (r *results) print(w io.Writer) error {
	tables := []report.Table{r.waysTable()}
	if len(r.Sites) <= mostSites {
		tables = append(tables, r.sitesTable())
	}
	for _, t := range tables {
		lines := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			for k, cell := range row {
				if k > 0 {
					fmt.Fprint(lines, "\t")
				}
				fmt.Fprint(lines, cell)
			}
			fmt.Fprintln(lines)
		}
		if err := lines.Flush(); err != nil {
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

// waysTable has a row for each way.
func (r *results) waysTable() report.Table {
	t := report.Table{Head: []string{"way", "test " + string(r.Metric), "together ahead by", "sent", "raw data seen by"}}
	for _, w := range r.Ways {
		sent := report.Bytes(int64(w.Bytes))
		if w.Way == features || w.Way == pooled {
			sent += " of raw data"
		}
		t.Rows = append(t.Rows, []string{w.Title, w.Test.String(), w.Ahead.String(), sent, w.Seen})
	}
	return t
}

// sitesTable has a row for each site.
func (r *results) sitesTable() report.Table {
	t := report.Table{Head: []string{"site", "nodes", "test nodes", "alone", "together", "together ahead by"}}
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
		return fmt.Sprintf("%.2f %%", 100*s.Mean)
	}
	return fmt.Sprintf("%.2f ± %.2f %%", 100*s.Mean, 100**s.Deviation)
}

// String is the gain in points with its interval.
func (g *gain) String() string {
	if g == nil {
		return "–"
	}
	return fmt.Sprintf("%+.1f (%.1f to %.1f)", 100*g.Mean, 100*g.Low, 100*g.High)
}
