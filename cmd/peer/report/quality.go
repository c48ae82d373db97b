package report

import (
	"fmt"
	"math"
)

// confusion is how often nodes of each class were given each class.
type confusion struct {
	Name, Caption string
	Head          []string
	Rows          []confusionRow
}

type confusionRow struct {
	Name  string
	Cells []confusionCell
}

type confusionCell struct {
	Count int64
	Shade string // 0 to 0.5: of the row's nodes
	Right bool
}

// warnings are what a reader must know before the figures.
func (r Run) warnings() []string { return nil }

// quality is how good the model is, in detail.
func (r Run) quality() (all []section, err error) {
	sites, err := r.bySite()
	if err != nil {
		return nil, err
	}
	if sites != nil {
		all = append(all, *sites)
	}
	return all, nil
}

// bySite is the metric of each site's test nodes; nil: this process knows it of fewer than two.
func (r Run) bySite() (*section, error) {
	o := r.Result
	if len(r.Shards) < 2 {
		return nil, nil
	}
	metric := string(o.Metric)
	t := Table{Name: "Each site's test nodes", Head: []string{"site", "nodes", "test nodes", "test " + metric}}
	var bars []Bar
	for k, s := range r.Shards {
		score, nodes, err := math.NaN(), 0, error(nil)
		if !o.Own[k].Logits.Empty() {
			if score, nodes, err = o.Own[k].Score(o.Metric, s.Alone()); err != nil {
				return nil, fmt.Errorf("report: test nodes of %s: %w", r.site(s.Rank), err)
			}
		}
		t.Rows = append(t.Rows, []string{r.site(s.Rank), fmt.Sprint(s.Owned), fmt.Sprint(nodes), Percent(score)})
		bars = append(bars, Bar{r.site(s.Rank), score, math.NaN(), math.NaN()})
	}
	chart, err := barsOf("Test "+metric+" of each site", metric, bars, o.Test, "all sites")
	if err != nil {
		return nil, fmt.Errorf("report: chart of the sites: %w", err)
	}
	return &section{Title: "Site by site", Chart: charts(chart), Tables: []Table{t}}, nil
}

// charts are those that show something.
func charts(all ...Chart) (list []Chart) {
	for _, c := range all {
		if c.SVG != "" {
			list = append(list, c)
		}
	}
	return list
}
