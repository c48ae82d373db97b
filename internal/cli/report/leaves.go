package report

import (
	"fmt"

	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// leaves lists what left each site of this process; nil: nothing did.
func (r runPage) leaves() (*section, error) {
	if r.parts() == 1 {
		return nil, nil
	}
	var names []string
	var all []*disclosure.Disclosure
	var nodes []int
	for _, s := range r.Shards {
		d, err := disclosure.Of(r.Plan, s)
		if err != nil {
			return nil, err
		}
		names, all, nodes = append(names, r.site(s.Rank)), append(all, d), append(nodes, s.Owned)
	}
	s := leavesOf(names, all, nodes)
	if f := r.Result.Figures; f != nil && f.Told != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("This site told the others that its test %s is about %.0f %%, over %d test nodes or more, as its policy allows.",
			metricName(r.Result.Metric), 100*f.Told.Metric, f.Told.Rows))
	}
	return s, nil
}

// leavesOf lists what left sites of these names and numbers of nodes.
func leavesOf(names []string, all []*disclosure.Disclosure, nodes []int) *section {
	sites := cli.Table{Name: "What left each site", Head: []string{"site", "own nodes", "of them read by others", "numbers sent of such a node", "bytes at most"}}
	for k, d := range all {
		sites.Rows = append(sites.Rows, []string{names[k], fmt.Sprint(nodes[k]), fmt.Sprint(d.Nodes), fmt.Sprintf("%.0f", d.Node), cli.Bytes(d.Bytes)})
	}
	kinds := cli.Table{Name: "Kinds of numbers that left", Head: []string{"what", "to whom", "form", "times", "numbers each time"}, Text: true}
	whom := map[string]string{"rows": "each site with an edge from the node", "errors": "the site that holds the node", "sums": "into the sums over all sites"}
	for _, l := range all[0].Sends {
		numbers := fmt.Sprint(l.Most)
		if l.Least != l.Most {
			numbers = fmt.Sprintf("%d to %d", l.Least, l.Most)
		}
		what := l.What
		kinds.Rows = append(kinds.Rows, []string{what, whom[string(l.Kind)], l.Format, fmt.Sprint(l.Times), numbers})
	}
	return &section{Notes: []string{"A site's tables stay at the site. What left it are numbers computed from them, of these kinds:"}, Tables: []cli.Table{kinds, sites}}
}
