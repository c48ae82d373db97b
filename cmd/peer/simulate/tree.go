package simulate

import (
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/tree"
)

// TreeSums is what sums among many sites take, without what their members say beside them (comm.Contribution.Meta).
type TreeSums struct {
	Sums     int   `json:"sums"`
	Messages int64 `json:"messages"` // of all sites
	Bytes    int64 `json:"bytes"`    // without frame headers
	Path     int64 `json:"path"`     // messages one after another
}

// overTree measures the sums of a site's reducer.
type overTree struct {
	comm.Reducer
	site *site
}

// Reduce implements comm.Reducer.
func (o overTree) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	g, all := o.site.group, &o.site.tree
	messages, bytes := g.Messages(), g.Bytes().Reduce
	path, _ := g.Waits()
	r, err := o.Reducer.Reduce(ctx, c)
	all.Sums++
	all.Messages += g.Messages() - messages
	all.Bytes += g.Bytes().Reduce - bytes
	now, _ := g.Waits()
	all.Path += now - path
	if len(c.Meta) > 0 {
		all.Messages -= int64(g.Size() - 1)
		all.Path--
	}
	return r, err
}

// overTree returns what the sums of all sites took, and by formula; nil: they go to owners of chunks.
func (w *world) overTree() (took, formula *TreeSums) {
	sites := slices.Concat(w.sites, w.others)
	if len(sites) <= tree.Above {
		return nil, nil
	}
	took, formula = &TreeSums{}, &TreeSums{}
	for _, s := range sites {
		took.Sums, took.Path = s.tree.Sums, max(took.Path, s.tree.Path)
		took.Messages, took.Bytes = took.Messages+s.tree.Messages, took.Bytes+s.tree.Bytes
	}
	hops := 2 * int64(len(sites)-1)
	for _, n := range w.sites[0].numbers { // 8 bytes each
		formula.Sums++
		formula.Messages += hops
		formula.Bytes += hops * 8 * int64(n)
		formula.Path += tree.Trips(len(sites))
	}
	return took, formula
}
