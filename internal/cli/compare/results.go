package compare

import (
	"context"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// results is the object of compare.json. Metrics are in [0, 1]. Fields are added and never removed.
type results struct {
	Dataset  string      `json:"dataset"`
	Metric   eval.Metric `json:"metric"`
	Sentence string      `json:"sentence"` // whether joining helped
	// lead of training together over each site by itself, over all sites' test nodes
	Joining  gain          `json:"joining"`
	Ways     []*wayResult  `json:"ways"`
	Sites    []*siteResult `json:"sites"`
	Notes    []string      `json:"notes"` // what a reader of the figures must know
	Command  string        `json:"command"`
	Version  string        `json:"version"` // of this program
	Date     string        `json:"date"`    // of the end
	Settings string        `json:"settings"`

	sameNodes bool
}

// wayResult is what one way of training gave.
type wayResult struct {
	Way   string   `json:"way"` // alone, features, together, pooled or pooled-sage
	Title string   `json:"title"`
	Test  spread   `json:"test"`
	Ahead *gain    `json:"together_ahead_by"` // null = this is together
	Bytes float64  `json:"bytes"`             // that all sites sent, mean of the runs; for pooled data the raw data
	Seen  string   `json:"raw_data_seen_by"`
	Runs  []oneRun `json:"runs"`

	ahead []difference
}

// oneRun is one run in one way.
type oneRun struct {
	Seed    uint64   `json:"seed"`
	Split   int      `json:"split"`
	Test    float64  `json:"test"`
	Val     *float64 `json:"val"`        // null if there are no validation nodes
	Bytes   int64    `json:"bytes"`      // as in the way
	Wire    int64    `json:"wire_bytes"` // as the network carried them, if sites trained together
	Seconds float64  `json:"seconds"`
}

// siteResult is what joining gave one site, on its own test nodes.
type siteResult struct {
	Site      string  `json:"site"`
	Nodes     int     `json:"nodes"`      // of the first run
	TestNodes int     `json:"test_nodes"` // of the first run
	Alone     *spread `json:"alone"`      // null = the site cannot train by itself, or has no test nodes
	Together  *spread `json:"together"`
	Ahead     *gain   `json:"together_ahead_by"`
	Fault     string  `json:"fault,omitempty"` // why it could not train by itself

	alone, together []float64
	ahead           []difference
}

// figures are what one run gave in one way.
type figures struct {
	way
	outcome   heddle.Outcome
	test, val []part // by rank; empty for a site that could not train by itself
}

// add trains in all ways and adds what that gave. text names the run in the display of progress.
func (r *results) add(ctx context.Context, in input, w *cli.Watch, text string) error {
	var all []figures
	columns, norm := in.graph, "" // that suit a model of features only best, for GraphSAGE, too
	for _, one := range waysOf(in.plan, in.graph.X.Cols() > 0) {
		show := w.Part(text + one.title)
		one.trial.OnEvent = func(e heddle.Event) {
			if e.Kind != train.Warning || one.key == together { // the same settings get the same warning at every site
				show(e)
			}
		}
		f := figures{way: one}
		var err error
		if one.key == features {
			if f.outcome, columns, err = onFeatures(ctx, in.plan, in.graph, in.shards, one.trial.OnEvent); err != nil {
				return err
			}
			norm = f.outcome.Runs[0].Plan.RowNorm
		} else {
			g := in.graph
			if one.key == sage && norm != "" {
				g, one.trial.Plan.RowNorm = columns, norm
			}
			if f.outcome, err = trained(ctx, g, in.shards, one.trial); err != nil {
				return err
			}
		}
		for rank, s := range in.shards {
			f.test = append(f.test, in.part(f, rank, rowsOf(s, graph.Test)))
			f.val = append(f.val, in.part(f, rank, rowsOf(s, graph.Val)))
		}
		all = append(all, f)
	}
	if r.Ways == nil {
		r.addPlaces(in, all)
	}
	return r.record(in, all)
}

// trained is what one trial gave.
func trained(ctx context.Context, g *graph.Graph, shards []*shard.Shard, t heddle.Trial) (heddle.Outcome, error) {
	all, err := heddle.Compare(ctx, g, shards, t)
	if err != nil {
		return heddle.Outcome{}, err
	}
	return all[0], nil
}

// rowsOf returns the labelled nodes of s in a split.
func rowsOf(s *shard.Shard, split graph.Split) []int32 {
	rows := []int32{}
	for _, i := range s.NodesIn(split) {
		if s.Labels.Has(int(i)) {
			rows = append(rows, i)
		}
	}
	return rows
}

// part returns the logits of f's model for the site of that rank at its nodes rows; no rows if there is no such model.
func (in input) part(f figures, rank int, rows []int32) part {
	s, runs := in.shards[rank], f.outcome.Runs
	of, whole := s.Labels, in.graph.Labels
	for _, r := range runs {
		if r != nil { // all have the same positive class
			of.First, whole.First = r.Card.First(), r.Card.First()
		}
	}
	switch f.key {
	case together:
		return part{Scores: runs[0].Own[rank].Logits, Labels: of, Rows: rows}
	case alone:
		if runs[rank] == nil {
			return part{Labels: of, Rows: []int32{}}
		}
		return part{Scores: runs[rank].Own[0].Logits, Labels: of, Rows: rows}
	}
	global := make([]int32, len(rows))
	for k, i := range rows {
		global[k] = in.row(s, i)
	}
	return part{Scores: runs[0].Own[0].Logits, Labels: whole, Rows: global}
}

// addPlaces makes a place for each way and site.
func (r *results) addPlaces(in input, all []figures) {
	r.Dataset, r.Notes = in.graph.Name, []string{}
	for _, f := range all {
		r.Ways = append(r.Ways, &wayResult{Way: f.key, Title: f.title, Seen: f.raw})
		if f.key == together {
			r.Metric = f.outcome.Runs[0].Metric
		}
	}
	for rank, name := range in.names {
		s := in.shards[rank]
		r.Sites = append(r.Sites, &siteResult{Site: name, Nodes: s.Owned, TestNodes: len(rowsOf(s, graph.Test))})
	}
}

// record adds a run: its figures, and by how much training together is ahead on the same nodes.
func (r *results) record(in input, all []figures) error {
	var joined figures
	for _, f := range all {
		if f.key == together {
			joined = f
		}
	}
	key := rng.New(in.plan.Seed).FoldString("compare")
	for i, f := range all {
		w := r.Ways[i]
		one := oneRun{Seed: in.plan.Seed, Split: in.split, Test: r.Metric.Pooled(f.test...),
			Val: cli.Number(r.Metric.Pooled(f.val...)), Seconds: f.outcome.Seconds}
		if math.IsNaN(one.Test) {
			return cli.Invalidf("%s: comparing needs test nodes with labels, at a site that can train alone (got none)",
				in.graph.Name)
		}
		one.count(f, in)
		w.Runs = append(w.Runs, one)
		if f.key == together {
			continue
		}
		a, b := common(joined.test, f.test)
		w.ahead = append(w.ahead, differenceOf(r.Metric, a, b, key.FoldString(f.key)))
		if f.key != alone {
			continue
		}
		for rank, s := range r.Sites {
			if f.outcome.Faults[rank] != nil {
				s.Fault = f.outcome.Faults[rank].Error()
			}
			ours, theirs := joined.test[rank:rank+1], f.test[rank:rank+1]
			if len(ours[0].Rows) > 0 {
				s.together = append(s.together, r.Metric.Pooled(ours...))
			}
			if len(theirs[0].Rows) > 0 {
				s.alone = append(s.alone, r.Metric.Pooled(theirs...))
				s.ahead = append(s.ahead, differenceOf(r.Metric, ours, theirs,
					key.FoldString("site").Fold(uint64(rank))))
			}
		}
	}
	return nil
}

// common returns the parts of the sites at which both have a model.
func common(a, b []part) (inA, inB []part) {
	for k := range a {
		if len(a[k].Rows) > 0 && len(b[k].Rows) > 0 {
			inA, inB = append(inA, a[k]), append(inB, b[k])
		}
	}
	return inA, inB
}

// count fills in the bytes of a run.
func (one *oneRun) count(f figures, in input) {
	rows, edges := rawBytes(in.shards)
	switch f.key {
	case features:
		one.Bytes = rows
	case pooled, sage:
		one.Bytes = rows + edges
	case together:
		one.Bytes, one.Wire = f.outcome.Sent.Total(), f.outcome.Sent.Wire
	}
}

// end computes means and intervals once all runs are in.
func (r *results) end(in input) error {
	for _, w := range r.Ways {
		var test []float64
		for _, one := range w.Runs {
			test = append(test, one.Test)
			w.Bytes += float64(one.Bytes) / float64(len(w.Runs))
		}
		w.Test = spreadOf(test)
		if w.Way != together {
			g := gainOf(w.ahead, r.sameNodes)
			w.Ahead = &g
		}
		if w.Way == alone {
			r.Joining = *w.Ahead
		}
	}
	for _, s := range r.Sites {
		if len(s.together) > 0 {
			x := spreadOf(s.together)
			s.Together = &x
		}
		if len(s.alone) > 0 {
			x, g := spreadOf(s.alone), gainOf(s.ahead, r.sameNodes)
			s.Alone, s.Ahead = &x, &g
		}
	}
	r.Sentence = sentenceOf(r.Joining, "", "each site alone", r.runs() < 5)
	return r.explain(in)
}

func (r *results) runs() int { return len(r.Ways[0].Runs) }

// sentenceOf reports whether joining helped: whom is empty or " for this site", over what it is compared with. more
// adds that further runs may narrow the interval.
func sentenceOf(g gain, whom, over string, more bool) string {
	figures := fmt.Sprintf("%s points (95 %% interval %s to %s) over %s", points("%+.1f", g.Mean), points("%.1f",
		g.Low), points("%.1f", g.High), over)
	switch {
	case g.Low > 0:
		return "Joining helped" + whom + ": " + figures + "."
	case g.High < 0:
		return "Joining did not help" + whom + ": " + figures + "."
	case more:
		return "Whether joining helps" + whom + " is open: " + figures + "; more --seeds may narrow the interval."
	}
	return "Whether joining helps" + whom + " is open: " + figures + "."
}

// explain notes what a reader of the figures must know. in is the last run's.
func (r *results) explain(in input) error {
	left, err := departed([]heddle.Plan{in.plan}, in.shards)
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, left)
	switch n := r.runs(); {
	case n == 1:
		r.Notes = append(r.Notes, "One run; brackets are a 95 % interval of the choice of test nodes.")
	case r.sameNodes:
		r.Notes = append(r.Notes, fmt.Sprintf("± is the spread of %d runs, which differ in their seed; brackets "+
			"are a 95 %% interval of seed and choice of test nodes.", n))
	default:
		r.Notes = append(r.Notes, fmt.Sprintf("± is the spread of %d runs, which differ in seed and split; brackets "+
			"are a 95 %% interval of both.", n))
	}
	for _, s := range r.Sites {
		if s.Fault != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("%s could not train alone, so its nodes are left out of what is "+
				"compared with that: %s", s.Site, s.Fault))
		}
	}
	return nil
}
