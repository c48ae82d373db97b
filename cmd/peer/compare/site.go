package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Site says what joining gave this site, over its own test nodes: the object of compare.json of peer compare --plan.
// Nothing of it leaves the site. Metrics are in [0, 1].
type Site struct {
	Metric    eval.Metric `json:"metric"`
	Sentence  string      `json:"sentence"` // whether joining paid
	TestNodes int         `json:"test_nodes"`
	Ways      []*SiteWay  `json:"ways"` // the last is together
}

// SiteWay is what one way of training gave the site.
type SiteWay struct {
	Way   string   `json:"way"` // alone, features or together
	Test  *float64 `json:"test"`
	Ahead *gain    `json:"together_ahead_by"` // null: of together itself, and where Fault is set
	Fault string   `json:"fault,omitempty"`   // why the site could not train in this way

	title string
}

// At trains at the site alone, by the settings p of a run over several sites, and on its features only, and compares that
// with the run's result o on the site's own labelled test nodes. It is an error if there are none, or if o has no
// predictions for own nodes, as at a peer that received the model from another.
func At(ctx context.Context, p heddle.Plan, own *shard.Shard, o *heddle.Result, w *cli.Watch) (*Site, error) {
	s := &Site{Metric: o.Metric, TestNodes: len(rowsOf(own, graph.Test))}
	if s.TestNodes == 0 {
		return nil, fmt.Errorf("%s: comparing needs labelled test nodes at this site (got none)", own.Name)
	}
	if o.Own[0].Logits.Empty() {
		return nil, fmt.Errorf("%s: comparing needs predictions of the run: this peer received the model from another", own.Name)
	}
	p.Members, p.Relays = nil, nil
	joined := []part{{o.Own[0].Logits, own.Labels, rowsOf(own, graph.Test)}}
	for _, one := range waysOf(p, &graph.Graph{X: own.X}) {
		if one.key == together || one.key == pooled {
			continue
		}
		of := &SiteWay{Way: one.key, title: map[string]string{alone: "this site alone", features: "features only, this site"}[one.key]}
		s.Ways = append(s.Ways, of)
		one.trial.Alone, one.trial.OnEvent = true, w.Part(of.title)
		all, err := heddle.Compare(ctx, nil, []*shard.Shard{own}, one.trial)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			of.Fault = err.Error()
			continue
		}
		theirs := []part{{all[0].Runs[0].Own[0].Logits, own.Labels, joined[0].rows}}
		key := rng.New(p.Seed).FoldString("compare").FoldString(one.key)
		g := gainOf([]difference{differenceOf(s.Metric, joined, theirs, key)}, true)
		of.Test, of.Ahead = known(metricOf(s.Metric, theirs)), &g
		if one.key == alone {
			s.Sentence = sentenceOf(g, " for this site", "this site alone", false)
		}
	}
	if s.Sentence == "" {
		s.Sentence = "Whether joining paid is open: this site could not train alone: " + s.Ways[0].Fault
	}
	s.Ways = append(s.Ways, &SiteWay{Way: together, title: together, Test: known(metricOf(s.Metric, joined))})
	return s, nil
}

// Show prints s as a table and a sentence.
func (s *Site) Show(w io.Writer) error {
	t := report.Table{Head: []string{"way", "test " + string(s.Metric), "together ahead by"}}
	for _, one := range s.Ways {
		test := "–"
		if one.Test != nil && !math.IsNaN(*one.Test) {
			test = report.Percent(*one.Test)
		}
		t.Rows = append(t.Rows, []string{one.title, test, one.Ahead.String()})
	}
	fmt.Fprintln(w)
	if err := t.Print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\nOne run, %d test nodes of this site; the interval is of the choice of these nodes.\n", s.Sentence, s.TestNodes)
	return err
}

// Write writes s as compare.json in a directory.
func (s *Site) Write(dir string) error {
	return cli.WriteFile(io.Discard, filepath.Join(dir, "compare.json"), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	})
}
