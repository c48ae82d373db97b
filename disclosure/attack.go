package disclosure

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/privacy/attack"
)

// Attempt is the result of our own attacks on the rows that a site sends in some of the runs.
type Attempt struct {
	Text  string
	Leaks bool     // some rows are recovered exactly
	Runs  []string // names of candidates
}

// attacked returns, for each kind of encoder, the tried runs whose rows are attacked together: all that send class means
// alone, and of the others the one that sends the most numbers per node.
func (d *Disclosure) attacked() (all [][]Run) {
	for _, r := range d.Tried() {
		if r.Fresh == 0 && r.Plan.Federated() {
			continue // only sums leave
		}
		k := slices.IndexFunc(all, func(others []Run) bool {
			a, b := r.Plan.Encoder, others[0].Plan.Encoder
			return a.Kind == b.Kind && (a.Kind == "pca" || (a.K > 0) == (b.K > 0))
		})
		switch {
		case k < 0:
			all = append(all, []Run{r})
		case r.Plan.Encoder.Kind == "classes" && r.Plan.Encoder.K == 0:
			all[k] = append(all[k], r)
		case r.Fresh > all[k][0].Fresh:
			all[k] = []Run{r}
		}
	}
	return all
}

// nodesFor returns the number of a site's nodes on which its own attacks train a model within limit. Of larger sites they
// take that many, evenly.
func nodesFor(limit time.Duration) int { return min(max(int(1000*limit.Seconds()), 1000), 5000) }

// Attack runs our own attacks on the rows of own, as a member that receives them would, for about limit, and returns what
// they recover. With class-means it attacks the rows of class means of all plans together, and of other encoders the
// widest ones.
func (d *Disclosure) Attack(ctx context.Context, own *shard.Shard, limit time.Duration) (all []Attempt, err error) {
	if own, err = some(own, nodesFor(limit)); err != nil {
		return nil, err
	}
	tried := d.attacked()
	for _, runs := range tried {
		r, text := runs[0], ""
		var beside []plan.Plan
		for _, other := range runs[1:] {
			beside = append(beside, other.Plan)
		}
		got, err := attack.Check(ctx, r.Plan, own, limit/time.Duration(len(tried)), beside...)
		switch {
		case !r.Plan.Federated():
			text = "the features themselves leave"
		case errors.Is(err, attack.ErrUnmeasured):
			text = "not measured: " + err.Error()
		case err != nil:
			return nil, err
		default:
			text = got.String()
		}
		k := slices.IndexFunc(all, func(a Attempt) bool { return a.Text == text })
		if k < 0 {
			k = len(all)
			all = append(all, Attempt{Text: text, Leaks: got.Exact > 0 || !r.Plan.Federated()})
		}
		for _, one := range runs {
			if one.Name != "" {
				all[k].Runs = append(all[k].Runs, one.Name)
			}
		}
	}
	return all, nil
}

// some returns own, or a graph of that many of its nodes: first those that others read and those that train, each of
// the two kinds evenly.
func some(own *shard.Shard, most int) (*shard.Shard, error) {
	if own.Owned <= most {
		return own, nil
	}
	first := make([]bool, own.Owned)
	for _, list := range own.Boundary {
		for _, i := range list {
			first[i] = true
		}
	}
	var lists [2][]int32
	for i, is := range first {
		k := 1
		if is || own.Split[i] == graph.Train {
			k = 0
		}
		lists[k] = append(lists[k], int32(i))
	}
	var nodes []int32
	for _, list := range lists {
		n := min(len(list), most-len(nodes))
		for k := range n {
			nodes = append(nodes, list[k*len(list)/n])
		}
	}
	slices.Sort(nodes)
	place := make(map[int32]int32)
	for k, i := range nodes {
		place[i] = int32(k)
	}
	var src, dst []int32
	for k, i := range nodes {
		near, _ := own.Adj.Row(int(i))
		for _, j := range near {
			if at, is := place[j]; is {
				src, dst = append(src, at), append(dst, int32(k))
			}
		}
	}
	adj, err := graph.FromEdges(len(nodes), src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		return nil, err
	}
	g := &graph.Graph{Name: own.Name, Adj: adj, X: own.X.Select(nodes), Labels: own.Labels.Select(nodes)}
	for _, i := range nodes {
		g.Split = append(g.Split, own.Split[i])
	}
	return shard.Whole(g), nil
}
