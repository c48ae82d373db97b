package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// siteComparison says what joining gave this site, over its own test nodes: the object of compare.json of heddle compare --plan.
// Nothing of it leaves the site. Metrics are in [0, 1].
type siteComparison struct {
	Metric    eval.Metric `json:"metric"`
	Sentence  string      `json:"sentence"` // whether joining paid
	TestNodes int         `json:"test_nodes"`
	Runs      int         `json:"runs"` // over which tests are means
	Ways      []*siteWay  `json:"ways"` // the last is together

	page report.Comparison
}

// siteWay is what one way of training gave the site.
type siteWay struct {
	Way   string   `json:"way"` // alone, features or together
	Test  *float64 `json:"test"`
	Ahead *gain    `json:"together_ahead_by"` // null: of together itself, and where Fault is set
	Fault string   `json:"fault,omitempty"`   // why the site could not train in this way

	title string
	seen  string // by whom raw data were seen
}

// After compares, at a site that has joined a run, what joining gave it: federation.After.
type After struct{}

// Joined implements federation.After.
func (After) Joined(
	ctx context.Context, p heddle.Plan, own *shard.Shard, o *heddle.Result, w *cli.Watch, text io.Writer, dir, again string,
) error {
	at, err := compareSite(ctx, p, own, o, w)
	if err != nil {
		return err
	}
	return errors.Join(at.show(text), at.write(text, dir, again))
}

// compareSite trains at the site alone, by the settings p of a run over several sites, and on its features only, and compares that
// with the run's result o on the site's own labelled test nodes. It is an error if there are none, or if o has no
// predictions for own nodes, as at a peer that received the model from another.
func compareSite(ctx context.Context, p heddle.Plan, own *shard.Shard, o *heddle.Result, w *cli.Watch) (*siteComparison, error) {
	if o.Metric.Gain(1, 0) < 0 {
		return nil, fmt.Errorf("%s: %w", own.Name, lessIsBetter(o.Metric))
	}
	if p.Task.Links() {
		return nil, fmt.Errorf("%s: comparing needs task auto (got links)", own.Name)
	}
	s := &siteComparison{Metric: o.Metric, TestNodes: len(rowsOf(own, graph.Test))}
	if s.TestNodes == 0 {
		return nil, fmt.Errorf("%s: comparing needs labelled test nodes at this site (got none)", own.Name)
	}
	p.Members, p.Relays = nil, nil
	p.Metric, p.Positive = string(o.Metric), o.Card.Positive
	of := own.Labels
	of.First = o.Card.First()
	plans := p.Repeats()
	for k := range plans {
		plans[k].Runs = 1
	}
	runs := o.Runs
	if runs == nil {
		runs = []*heddle.Result{o}
	}
	s.Runs = len(runs)
	joined, whole := make([]part, len(runs)), 0.0
	for k, r := range runs {
		if r.Own[0].Logits.Empty() {
			return nil, fmt.Errorf("%s: comparing needs predictions of every run: this peer received a model from another", own.Name)
		}
		joined[k] = part{Scores: r.Own[0].Logits, Labels: of, Rows: rowsOf(own, graph.Test)}
		whole += metricOf(s.Metric, joined[k:k+1]) / float64(len(runs))
	}
	for _, key := range []string{alone, features} {
		way := &siteWay{Way: key, title: map[string]string{alone: "this site alone",
			features: "features only, this site"}[key], seen: "nobody else"}
		if key == features && own.X.Cols() == 0 {
			continue
		}
		s.Ways = append(s.Ways, way)
		g, err := s.aheadOf(ctx, way, plans, own, joined, w)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			way.Fault = err.Error()
			continue
		}
		if way.Ahead = &g; key == alone {
			s.Sentence = sentenceOf(g, " for this site", "this site alone", false)
		}
	}
	if s.Sentence == "" {
		s.Sentence = "Whether joining paid is open: this site could not train alone: " + s.Ways[0].Fault
	}
	s.Ways = append(s.Ways, &siteWay{Way: together, title: together, seen: "nobody; rows left", Test: known(whole)})
	return s, s.describe(plans, own, o)
}

// aheadOf trains at the site alone in one way by each of the plans, sets the mean metric of these runs, and returns by how
// much the runs together, in the same order, are ahead.
func (s *siteComparison) aheadOf(ctx context.Context, of *siteWay, plans []heddle.Plan, own *shard.Shard, joined []part, w *cli.Watch) (gain, error) {
	var ahead []difference
	sum := 0.0
	for k, p := range plans {
		var outcome heddle.Outcome
		var err error
		if of.Way == features {
			outcome, _, err = onFeatures(ctx, p, own.Alone(), []*shard.Shard{own}, w.Part(of.title))
		} else {
			one := waysOf(p, false)[0]
			one.trial.OnEvent = w.Part(of.title)
			var all []heddle.Outcome
			if all, err = heddle.Compare(ctx, nil, []*shard.Shard{own}, one.trial); err == nil {
				outcome = all[0]
			}
		}
		if err != nil {
			return gain{}, err
		}
		theirs := []part{{Scores: outcome.Runs[0].Own[0].Logits, Labels: joined[k].Labels, Rows: joined[k].Rows}}
		key := rng.New(p.Seed).FoldString("compare").FoldString(of.Way)
		ahead = append(ahead, differenceOf(s.Metric, joined[k:k+1], theirs, key))
		sum += metricOf(s.Metric, theirs)
	}
	of.Test = known(sum / float64(len(plans)))
	return gainOf(ahead, true), nil
}

// describe prepares the page of s, whose runs are by these plans.
func (s *siteComparison) describe(plans []heddle.Plan, own *shard.Shard, o *heddle.Result) error {
	left, err := departed(plans, []*shard.Shard{own})
	if err != nil {
		return err
	}
	settings, err := plans[0].MarshalYAML()
	if err != nil {
		return err
	}
	name := o.Members[own.Rank]
	s.page = report.Comparison{Title: fmt.Sprintf("%s: did joining pay for %s?", own.Name, name), Sentence: s.Sentence, Metric: string(s.Metric), Ways: s.table(), Settings: string(settings),
		Kicker: fmt.Sprintf("%s · one of %d sites · version %s", name, own.Parts, cli.Version()), Notes: []string{s.note(), left, "Nothing of this comparison left the site."}}
	for _, one := range s.Ways {
		if one.Test != nil {
			s.page.WayBars = append(s.page.WayBars, report.Bar{Name: one.title, Value: *one.Test, Low: math.NaN(), High: math.NaN()})
		}
		if one.Fault != "" {
			s.page.Notes = append(s.page.Notes, fmt.Sprintf("The site could not train this way (%s): %s.", one.title, one.Fault))
		}
	}
	return nil
}

func (s *siteComparison) note() string {
	if s.Runs > 1 {
		return fmt.Sprintf("%d runs, %d test nodes of this site; the intervals are of seeds and of the choice of these nodes.", s.Runs, s.TestNodes)
	}
	return fmt.Sprintf("One run, %d test nodes of this site; the interval is of the choice of these nodes.", s.TestNodes)
}

// table has a row for each way.
func (s *siteComparison) table() cli.Table {
	t := cli.Table{Head: []string{"way", "test " + string(s.Metric), "together ahead by", "raw data seen by"}}
	for _, one := range s.Ways {
		test := "–"
		if one.Test != nil && !math.IsNaN(*one.Test) {
			test = cli.Percent(*one.Test)
		}
		t.Rows = append(t.Rows, []string{one.title, test, one.Ahead.String(), one.seen})
	}
	return t
}

// show prints s as a table and a sentence.
func (s *siteComparison) show(w io.Writer) error {
	fmt.Fprintln(w)
	if err := s.table().Print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s\n", s.Sentence, s.note())
	return err
}

// write writes s as compare.json and compare.html in a directory, and prints where the page is. command repeats the
// comparison.
func (s *siteComparison) write(w io.Writer, dir, command string) error {
	s.page.Command = command
	page := filepath.Join(dir, "compare.html")
	err := errors.Join(
		cli.WriteFile(io.Discard, filepath.Join(dir, "compare.json"), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(s)
		}),
		cli.WriteFile(io.Discard, page, func(w io.Writer) error { return report.WriteComparison(w, s.page) }),
	)
	if err == nil {
		_, err = fmt.Fprintf(w, "comparison: %s\n", page)
	}
	return err
}
