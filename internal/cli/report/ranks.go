package report

import (
	"fmt"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// ranks is where links that were held out rank: of all, by relation and by site.
func (r runPage) ranks(l *eval.RankedLinks) Section {
	t := cli.Table{Name: "Ranks", Head: []string{"links", "test ends", "test MRR", "hits@1", "hits@3", "hits@10",
		"hits@50",
		"AUC", "validation MRR"}}
	metric := r.Result.Metric
	var bars []Bar
	figure := func(x float64) string { return fmt.Sprintf("%.4f", x) }
	row := func(name string, of eval.RankedLinks) {
		cells := []any{name, "0", "–", "–", "–", "–", "–", "–", "–"}
		if x := of.Test; x != nil {
			cells[1], cells[2], cells[7] = x.Links, figure(x.MRR), figure(x.AUC)
			for k, most := range eval.Hits {
				cells[3+k] = figure(x.Hits[most])
			}
			bars = append(bars, BarOf(name, x.Of(metric)))
		}
		if of.Val != nil {
			cells[8] = figure(of.Val.MRR)
		}
		t.Add(cells...)
	}
	for _, of := range l.Relations {
		row(of.Name, of)
	}
	for k, of := range l.Sites {
		if r.parts() > 1 && k < len(r.Shards) {
			row(r.site(r.Shards[k].Rank), of)
		}
	}
	row("all together", *l)
	near := ""
	if r.Plan.Gradient().NegativesFrom == "near" && r.parts() > 1 {
		near = ", of near nodes only: the site's own and their neighbours"
	}
	return Section{Title: "Where held-out links rank", Tables: []cli.Table{t},
		Charts: Bars("Test "+metricName(metric)+" of links", metricName(metric), bars),
		Notes: []string{"Each link is ranked twice, from each end, among 100 random pairs, or all if a type has " +
			"fewer nodes" + near +
			". MRR is the mean of 1/rank, hits@K the fraction of ranks up to K, AUC the probability that a link " +
			"scores above a " +
			"random pair. A site's links are the links of its own nodes."}}
}
