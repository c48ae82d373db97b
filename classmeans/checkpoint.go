package classmeans

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// A checkpoint has what a round begins with: a resumed run computes and sends nothing again, and gives the same bits as
// a run that never stopped.

// releasePrefix is what the names of arrays begin with that are releases of private edges.
const releasePrefix = "released/"

// columnsName is the name of the columns of round r of sight i.
func columnsName(i, r int) string {
	return fmt.Sprintf("%s/columns-%d", []string{"full", "base"}[i], r)
}

// header is the small part of it.
type header struct {
	Nodes   float64   `json:"nodes"`             // that training sees
	Apart   []float64 `json:"apart,omitempty"`   // Trainer.apart
	Allowed []float64 `json:"allowed,omitempty"` // Trainer.allowed

	RowNorm    string       `json:"row_norm"` // of the option that the first sums chose
	Target     string       `json:"target"`
	SiteShares *eval.Shares `json:"site_shares,omitempty"` // nn.Spec.SiteShares

	Scales      []eval.Scale `json:"scales,omitempty"`      // Trainer.scales
	Unconnected bool         `json:"unconnected,omitempty"` // closed.Layout.Unconnected
}

// Keep implements train.Kept.
func (t *Trainer) Keep(c *train.Checkpoint) error {
	c.F32["equations/sums"], c.F32["means/statistics"] = t.parts, t.stats.Data
	spec := t.model.Closed.Spec
	h := header{RowNorm: t.config.RowNorm, Target: t.config.Target, Nodes: t.nodes, Apart: t.apart, Allowed: t.allowed,
		SiteShares: t.model.Spec.SiteShares, Scales: t.scales, Unconnected: spec.Unconnected}
	if t.At.Stage == 0 {
		for i, s := range t.sights() {
			for r, columns := range s.rounds {
				c.F32[columnsName(i, r)] = columns.Data
			}
		}
	} else {
		c.F32["final/logits"] = t.Scores.Data
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	c.Header = head
	for _, p := range t.model.Params() {
		c.F32["model/"+p.Name] = p.Value.Clone().Data
	}
	if t.edges != nil {
		for name, sums := range t.edges.Releases() {
			c.F32[releasePrefix+name] = sums.Data
		}
	}
	return nil
}

// TakeUp implements train.Kept.
func (t *Trainer) TakeUp(c *train.Checkpoint) error {
	var h header
	if err := json.Unmarshal(c.Header, &h); err != nil {
		return err
	}
	t.config.RowNorm, t.config.Target = h.RowNorm, h.Target
	if err := t.resolve(); err != nil {
		return err
	}
	t.nodes, t.scales = h.Nodes, h.Scales
	if t.config.Metric == "auc" && t.At.BestRound >= 0 && t.scales == nil { // of a version that counted on other bins
		return &checkpoint.MismatchError{Path: t.Checkpoints.Dir, Which: []string{"version of this program"}}
	}
	if t.model.Spec.SiteShares = h.SiteShares; h.Unconnected {
		t.withoutEdges()
	}
	for _, p := range t.model.Params() {
		copy(p.Value.Data, c.F32["model/"+p.Name])
	}
	if t.At.Stage > 0 {
		t.Scores, _ = c.Dense("final/logits", t.shard.Owned, t.config.Classes)
		return nil
	}
	for i, s := range t.sights() {
		for r := range t.At.Round {
			columns, ok := c.Dense(columnsName(i, r), t.shard.Owned, s.kept(r))
			if !ok { // a version that kept the columns of all rounds together
				return &checkpoint.MismatchError{Path: t.Checkpoints.Dir, Which: []string{"version of this program"}}
			}
			s.rounds = append(s.rounds, columns)
		}
	}
	for name, sums := range c.F32 {
		if name, ok := strings.CutPrefix(name, releasePrefix); ok && t.edges != nil {
			t.edges.Restore(name, mat.View(t.shard.Owned, t.config.Classes, sums))
		}
	}
	t.means = new(linear.Means)
	t.stats, t.apart = mat.View(t.config.Inputs(), 2, c.F32["means/statistics"]), h.Apart
	t.allowed = h.Allowed
	if err := t.learn(linear.Statistics(t.features(), t.present())); err != nil {
		return err
	}
	t.agreeMeans()
	if p := t.model.Closed.Inverse; p != nil { // with limits
		copy(p.Value.Data, c.F32["model/"+p.Name])
	}
	sums := c.F32["equations/sums"]
	for r := range t.At.Round {
		k := t.added(r)
		n := linear.PartLen(t.normal.Columns()+k, k, t.config.Classes)
		var err error
		if t.normal, err = t.normal.Extend(sums[:n], k, t.config.Classes); err != nil {
			return err
		}
		sums = sums[n:]
	}
	t.parts = c.F32["equations/sums"]
	if t.At.Round > 0 {
		y, weight := t.targets()
		d := t.base.columnsOf(t.At.Round)
		var err error
		if t.own, err = (linear.Normal{}).Extend(t.part(t.At.Round-1, d, y, weight, nil), d, y.Cols); err != nil {
			return err
		}
	}
	return nil
}
