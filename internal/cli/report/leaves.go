package report

import (
	"fmt"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
)

// leaves lists what left each site of this process.
func (r runPage) leaves() (Section, error) {
	var names []string
	var all []*disclosure.Disclosure
	var nodes []int
	for _, s := range r.Shards {
		d, err := disclosure.Of(r.Plan, s)
		if err != nil {
			return Section{}, err
		}
		names, all, nodes = append(names, r.site(s.Rank)), append(all, d), append(nodes, s.Owned)
	}
	s := leavesOf(names, all, nodes)
	if f := r.Result.Figures; f != nil && f.Told != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("This site published that its test %s is about %.0f %%, over %d test "+
			"nodes or more, as its policy allows.", r.metric(), 100*f.Told.Metric, f.Told.Rows))
	}
	return s, nil
}

// leavesOf lists what left sites of these names and numbers of nodes.
func leavesOf(names []string, all []*disclosure.Disclosure, nodes []int) Section {
	sites := cli.Table{Name: "What left each site",
		Head: []string{"site", "own nodes", "of them read by others", "numbers sent of such a node", "bytes at most"}}
	for k, d := range all {
		sites.Add(names[k], nodes[k], d.Nodes, fmt.Sprintf("%.0f", d.Node), cli.Bytes(d.Bytes))
	}
	kinds := cli.Table{Name: "Kinds of numbers that left", Text: true,
		Head: []string{"what", "to whom", "form", "times", "numbers each time"}}
	whom := map[string]string{"rows": "each site with an edge from the node", "errors": "the site with the node",
		"sums": "into the sums over all sites"}
	for _, l := range all[0].Sends {
		numbers := fmt.Sprint(l.Most)
		if l.Least != l.Most {
			numbers = fmt.Sprintf("%d to %d", l.Least, l.Most)
		}
		kinds.Add(l.What, whom[string(l.Kind)], l.Format, l.Times, numbers)
	}
	return Section{Title: sites.Name, Tables: []cli.Table{kinds, sites},
		Notes: []string{"A site's tables stay at the site. What left it are numbers computed from them, of these " +
			"kinds:"},
		Foot: "At most: a stage that ends early sends less. Heddle's reference has a page of what a receiver can " +
			"conclude from " +
			"each: docs/reference/what-leaves.md."}
}
