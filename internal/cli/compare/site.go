package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
)

// siteComparison lists what joining gave this site, over its own test nodes: the object of compare.json of heddle
// compare --plan. None of it is sent to other sites. Metrics are in [0, 1].
type siteComparison struct {
	Metric    eval.Metric `json:"metric"`
	Sentence  string      `json:"sentence"` // whether joining helped
	TestNodes int         `json:"test_nodes"`
	Runs      int         `json:"runs"` // over which tests are means
	Ways      []*siteWay  `json:"ways"` // the last is together

	plans []heddle.Plan // of the runs
}

// siteWay is what one way of training gave the site.
type siteWay struct {
	Way   string   `json:"way"` // alone, features or together
	Test  *float64 `json:"test"`
	Ahead *gain    `json:"together_ahead_by"` // null for together itself, and if Fault is set
	Fault string   `json:"fault,omitempty"`   // why the site could not train in this way

	title string
}

// After compares, at a site that has joined a run, what joining gave it: federation.After.
type After struct{}

// Joined implements federation.After.
func (After) Joined(
	ctx context.Context, p heddle.Plan, own *shard.Shard, o *heddle.Result, w *cli.Watch, text io.Writer, dir,
	again string,
) error {
	s, err := compareSite(ctx, p, own, o, w)
	if err != nil {
		return err
	}
	page, err := s.page(own, o, again)
	if err != nil {
		return err
	}
	fmt.Fprintln(text)
	s.table().Print(text)
	fmt.Fprintf(text, "\n%s\n%s\n", s.Sentence, s.note())
	path := filepath.Join(dir, "compare.html")
	err = errors.Join(cli.WriteJSON(nil, filepath.Join(dir, "compare.json"), s), cli.WriteFile(nil, path, page.Write))
	if err == nil {
		_, err = fmt.Fprintf(text, "comparison: %s\n", path)
	}
	return err
}

// compareSite trains on this site's data only, by the settings p of a run over several sites, once with its edges and
// once on its features. It compares both with the run's result o on the site's own labelled test nodes. It is an error
// if there are none, or if o has no predictions for own nodes, as at a peer that received the model from another.
func compareSite(
	ctx context.Context, p heddle.Plan, own *shard.Shard, o *heddle.Result, w *cli.Watch,
) (*siteComparison, error) {
	test := rowsOf(own, graph.Test)
	s := &siteComparison{Metric: o.Metric, TestNodes: len(test)}
	if err := comparable(o.Metric, p); err != nil {
		return nil, fmt.Errorf("%s: %w", own.Name, err)
	}
	if s.TestNodes == 0 {
		return nil, fmt.Errorf("%s: comparing needs labelled test nodes at this site (got none)", own.Name)
	}
	p.Members, p.Relays = nil, nil
	p.Metric, p.Positive = string(o.Metric), o.Card.Positive
	of := own.Labels
	of.First = o.Card.First()
	s.plans = p.Repeats()
	for k := range s.plans {
		s.plans[k].Runs = 1
	}
	runs := o.Runs
	if runs == nil {
		runs = []*heddle.Result{o}
	}
	s.Runs = len(runs)
	joined, whole := make([]part, len(runs)), 0.0
	for k, r := range runs {
		if r.Own[0].Logits.Empty() {
			return nil, fmt.Errorf("%s: comparing needs predictions of every run: this peer received a model from "+
				"another", own.Name)
		}
		joined[k] = part{Scores: r.Own[0].Logits, Labels: of, Rows: test}
		whole += s.Metric.Pooled(joined[k]) / float64(len(runs))
	}
	s.Ways = []*siteWay{{Way: alone, title: "this site alone"}}
	if own.X.Cols() > 0 {
		s.Ways = append(s.Ways, &siteWay{Way: features, title: "features only, this site"})
	}
	for _, way := range s.Ways {
		g, err := s.aheadOf(ctx, way, own, joined, w)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil:
			way.Fault = err.Error()
		default:
			way.Ahead = &g
		}
	}
	if first := s.Ways[0]; first.Ahead != nil {
		s.Sentence = sentenceOf(*first.Ahead, " for this site", "this site alone", false)
	} else {
		s.Sentence = "Whether joining helps is open: this site could not train alone: " + first.Fault
	}
	s.Ways = append(s.Ways, &siteWay{Way: together, title: together,
		Test: cli.Number(whole)})
	return s, nil
}

// aheadOf trains on this site's data only, in one way by each of the plans, and sets the mean metric of these runs. It
// returns by how much the runs together, in the same order, are ahead.
func (s *siteComparison) aheadOf(
	ctx context.Context, of *siteWay, own *shard.Shard, joined []part, w *cli.Watch,
) (gain, error) {
	var ahead []difference
	sum := 0.0
	for k, p := range s.plans {
		var outcome heddle.Outcome
		var err error
		if of.Way == features {
			outcome, _, err = onFeatures(ctx, p, own.Alone(), []*shard.Shard{own}, w.Part(of.title))
		} else {
			one := waysOf(p, false)[0]
			one.trial.OnEvent = w.Part(of.title)
			outcome, err = trained(ctx, nil, []*shard.Shard{own}, one.trial)
		}
		if err != nil {
			return gain{}, err
		}
		theirs := part{Scores: outcome.Runs[0].Own[0].Logits, Labels: joined[k].Labels, Rows: joined[k].Rows}
		key := rng.New(p.Seed).FoldString("compare").FoldString(of.Way)
		ahead = append(ahead, differenceOf(s.Metric, joined[k:k+1], []part{theirs}, key))
		sum += s.Metric.Pooled(theirs)
	}
	of.Test = cli.Number(sum / float64(len(s.plans)))
	return gainOf(ahead, true), nil
}

// page is the page of s; command repeats the comparison.
func (s *siteComparison) page(own *shard.Shard, o *heddle.Result, command string) (report.Page, error) {
	left, err := departed(s.plans, []*shard.Shard{own})
	if err != nil {
		return report.Page{}, err
	}
	settings, err := s.plans[0].MarshalYAML()
	if err != nil {
		return report.Page{}, err
	}
	name, notes := o.Members[own.Rank], []string{s.note(), left, "Nothing of this comparison left the site."}
	var bars []report.Bar
	for _, one := range s.Ways {
		if one.Test != nil {
			bars = append(bars, report.BarOf(one.title, *one.Test))
		}
		if one.Fault != "" {
			notes = append(notes, fmt.Sprintf("The site could not train this way (%s): %s.", one.title, one.Fault))
		}
	}
	page := pageOf(fmt.Sprintf("%s: did joining help %s?", own.Name, name), s.Sentence, string(s.Metric), bars,
		s.table(), notes)
	page.Kicker = fmt.Sprintf("%s · one of %d sites · version %s", name, own.Parts, cli.Version())
	page.Settings, page.Command = string(settings), command
	return page, nil
}

func (s *siteComparison) note() string {
	if s.Runs > 1 {
		return fmt.Sprintf("%d runs, %d test nodes of this site; the intervals are of seeds and of the choice of "+
			"these nodes.",
			s.Runs, s.TestNodes)
	}
	return fmt.Sprintf("One run, %d test nodes of this site; the interval is of the choice of these nodes.",
		s.TestNodes)
}

// table has a row for each way.
func (s *siteComparison) table() cli.Table {
	t := cli.Table{Name: "Ways of training",
		Head: []string{"trained", "test " + string(s.Metric), "together ahead by"}}
	for _, one := range s.Ways {
		test := "–"
		if one.Test != nil {
			test = cli.Percent(*one.Test)
		}
		t.Add(one.title, test, one.Ahead)
	}
	return t
}
