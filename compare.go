package heddle

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// Trial is one of the ways to train that Compare compares. A plan with peers 1 trains on the
// pooled data, any other plan over the sites.
type Trial struct {
	Name    string // for errors and the outcome
	Plan    Plan
	Alone   bool        // each site trains its own model, on its own nodes and the edges between them
	Pooled  bool        // one peer has all nodes and edges, whatever the plan has
	OnEvent func(Event) // receives the events of the trial's first peer, one at a time; may be nil
}

// Outcome is what a trial gave.
type Outcome struct {
	Name    string
	Test    float64   // metric of the plan over the test nodes of all sites, in [0, 1] (NaN = there are none)
	Sent    Traffic   // bytes that all sites sent (0 = nothing is sent)
	Seconds float64   // of training, wall clock
	Runs    []*Result // one run; if sites train by themselves, one for each site, by rank
	// if sites train by themselves: why one could not; then its run is nil and its nodes are not in Test
	Faults []error
}

// Compare runs the trials one after the other and returns their outcomes in the same order. shards
// are the parts of g by rank, as Split makes them: all trials train over the same parts. The first
// error ends the comparison and names its trial; a fault of a plan or of the data is an
// *InputError.
func Compare(ctx context.Context, g *graph.Graph, shards []*shard.Shard, trials ...Trial) (all []Outcome, err error) {
	for _, t := range trials {
		var o Outcome
		t.Plan = settled(t.Plan, shards)
		if t.Alone {
			o, err = t.alone(ctx, shards)
		} else {
			o, err = t.together(ctx, g, shards)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// settled returns p with the metric and the positive class that follow from the labels of all shards, so that all
// trials have the same.
func settled(p Plan, shards []*shard.Shard) Plan {
	if len(shards) == 0 || shard.Sound(shards...) != nil || p.Task.Links() {
		return p
	}
	counts := train.LocalLabels(shards...)
	if class, _ := counts.Rare(); class >= 0 && p.Positive == "" {
		p.Positive = shards[0].Labels.Name(class)
	}
	if counts.Positive() >= 0 && p.Metric == "" && p.ClassMeans.Leaves == 0 {
		metric, _ := counts.Metric(eval.Auto, nil)
		p.Metric = string(metric)
	}
	return p
}

// together trains one model, over the sites or on the pooled data.
func (t Trial) together(ctx context.Context, g *graph.Graph, shards []*shard.Shard) (o Outcome, err error) {
	if g == nil {
		return o, input(errNoGraph)
	}
	if t.Pooled {
		if err := g.Valid(); err != nil {
			return o, input(err)
		}
		shards = []*shard.Shard{shard.Whole(g.Numbered())}
	} else if t.Plan.Peers == 1 {
		if shards, err = Split(g, t.Plan); err != nil {
			return o, err
		}
	}
	r, err := Local{Plan: t.Plan, Shards: shards, OnEvent: t.OnEvent}.Train(ctx)
	if err != nil {
		return o, err
	}
	return Outcome{Name: t.Name, Test: r.Test, Sent: r.Total(), Seconds: r.Seconds, Runs: []*Result{r}}, nil
}

// alone trains a model at each site. A site that cannot train, such as one without training nodes,
// is left out; it is an error if none can.
func (t Trial) alone(ctx context.Context, shards []*shard.Shard) (Outcome, error) {
	if err := shard.Sound(shards...); err != nil {
		return Outcome{}, input(err)
	}
	o := Outcome{Name: t.Name, Test: math.NaN(), Runs: make([]*Result, len(shards)), Faults: make([]error, len(shards))}
	var all []eval.Scored
	for rank, s := range shards {
		site := s.Alone()
		r, err := Local{Plan: t.Plan, Shards: []*shard.Shard{shard.Whole(site)}, OnEvent: t.OnEvent}.Train(ctx)
		if err != nil {
			if o.Faults[rank] = fmt.Errorf("site %d: %w", rank, err); ctx.Err() != nil {
				return o, o.Faults[rank]
			}
			continue
		}
		site.Labels.First = r.Card.First()
		all = append(all, eval.Scored{Scores: r.Own[0].Logits, Labels: site.Labels, Rows: site.InSplit(graph.Test)})
		o.Test, o.Seconds, o.Runs[rank] = r.Metric.Pooled(all...), o.Seconds+r.Seconds, r
	}
	if all == nil {
		return o, errors.Join(o.Faults...)
	}
	return o, nil
}
