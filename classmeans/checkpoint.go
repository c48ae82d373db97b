package classmeans

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/linear"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// A checkpoint holds what a round begins with: nothing is computed or sent again on the way back, so
// the bits are those of a run that never stopped.

// releasePrefix is what the names of arrays begin with that are releases of private edges.
const releasePrefix = "released/"

// header is the small part of it.
type header struct {
	Nodes   float64   `json:"nodes"`             // that training sees
	Columns int       `json:"columns"`           // the constant included
	Apart   []float64 `json:"apart,omitempty"`   // Trainer.apart
	Allowed []float64 `json:"allowed,omitempty"` // Trainer.allowed

	RowNorm    string       `json:"row_norm"` // of the option that the first sums chose
	Target     string       `json:"target"`
	SiteShares *eval.Shares `json:"site_shares,omitempty"` // nn.Spec.SiteShares

	Scales      []eval.Scale `json:"scales,omitempty"`      // Trainer.scales
	Unconnected bool         `json:"unconnected,omitempty"` // closed.Layout.Unconnected
}

// participant is this peer as a member of the run.
func (t *Trainer) participant() recovery.Participant {
	return recovery.Participant{Rank: t.shard.Rank, Size: t.shard.Parts, Config: t.fingerprint,
		Partition: t.shard.Fingerprint, Own: true,
		Shape: recovery.Shape{Stages: 1, Rounds: maxRounds, Labels: labels.Len(t.whole.Labels.Kind(), t.config.Classes)}, Checkpoints: t.Checkpoints}
}

// Resume takes up a final model that the checkpoints have, and reports whether there is one;
// session.Session asks for it.
func (t *Trainer) Resume() (done bool, err error) {
	p := t.participant()
	c, err := p.Newest()
	if c == nil || err != nil || !p.Shape.Final(c.At) {
		return false, err
	}
	if err := t.takeUp(c); err != nil {
		return false, err
	}
	t.result.Sent = t.before
	return true, nil
}

// hello exchanges greetings and takes up the newest state that all peers have.
func (t *Trainer) hello(ctx context.Context) error {
	p := t.participant()
	all, generation, err := p.Greet(ctx, t.group, t.generation, nil)
	if err != nil {
		return err
	}
	t.generation = generation
	d, err := p.Decide(all)
	if err != nil || d.Seq == 0 {
		return err
	}
	c, err := p.Restore(d.Seq)
	if err != nil {
		return err
	}
	return t.takeUp(c)
}

// save writes a checkpoint.
func (t *Trainer) save() error {
	if t.Checkpoints == nil {
		return nil
	}
	c := &recovery.Checkpoint{Sent: t.sent(), F32: map[string][]float32{"equations/sums": t.parts, "means/statistics": t.stats.Data}}
	spec := t.model.Closed.Spec
	head, err := json.Marshal(header{RowNorm: t.config.RowNorm, Target: t.config.Target, Nodes: t.nodes,
		Columns: t.full.columns.Cols, Apart: t.apart, Allowed: t.allowed,
		SiteShares: t.model.Spec.SiteShares, Scales: t.scales, Unconnected: spec.Unconnected})
	if err != nil {
		return err
	}
	c.Header = head
	for _, p := range t.model.Params() {
		c.F32["model/"+p.Name] = p.Value.Clone().Data
	}
	for i, s := range t.sights() {
		name := []string{"full", "base"}[i]
		c.F32[name+"/columns"], c.F32[name+"/logits"] = s.columns.Clone().Data, s.logits.Clone().Data
	}
	if t.at.Stage > 0 {
		c.F32["final/logits"] = t.final.Data
	}
	if t.Edges != nil {
		for name, sums := range t.Edges.Releases() {
			c.F32[releasePrefix+name] = sums.Data
		}
	}
	c.Snapshot = recovery.Snapshot{At: t.at, Labels: t.labels.Sums, Agreed: t.generation}
	c.Rounds, c.Stages = t.result.Encode()
	if err := t.participant().Save(c); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Saved, Round: t.at.Round, Peer: t.shard.Rank})
	return nil
}

// takeUp makes c what this peer continues from.
func (t *Trainer) takeUp(c *recovery.Checkpoint) error {
	var h header
	if err := json.Unmarshal(c.Header, &h); err != nil {
		return err
	}
	t.config.RowNorm, t.config.Target = h.RowNorm, h.Target
	if err := t.resolve(labels.Read(c.Labels, t.whole.Labels.Kind(), t.config.Draw())); err != nil {
		return err
	}
	t.at, t.nodes, t.before, t.scales = c.At, h.Nodes, c.Sent, h.Scales
	if t.config.Metric == "auc" && t.at.BestRound >= 0 && t.scales == nil { // of a version that counted on other bins
		return &checkpoint.MismatchError{Path: t.Checkpoints.Dir, Which: []string{"version of this program"}}
	}
	if t.model.Spec.SiteShares = h.SiteShares; h.Unconnected {
		t.withoutEdges()
	}
	for _, p := range t.model.Params() {
		copy(p.Value.Data, c.F32["model/"+p.Name])
	}
	if t.at.Stage > 0 {
		t.final, _ = c.Dense("final/logits", t.shard.Owned, t.config.Classes)
		return t.result.Restore(c.Rounds, c.Stages, t.at, func(int) string { return stageName })
	}
	for i, s := range t.sights() {
		name := []string{"full", "base"}[i]
		s.columns = mat.View(t.shard.Owned, h.Columns, c.F32[name+"/columns"])
		s.logits = mat.View(t.shard.Owned, t.config.Classes, c.F32[name+"/logits"])
	}
	for name, sums := range c.F32 {
		if name, ok := strings.CutPrefix(name, releasePrefix); ok && t.Edges != nil {
			t.Edges.Restore(name, mat.View(t.shard.Owned, t.config.Classes, sums))
		}
	}
	t.means = linear.NewMeans(t.x)
	t.stats, t.apart = mat.View(t.config.Inputs(), 2, c.F32["means/statistics"]), h.Apart
	t.allowed = h.Allowed
	if err := t.learn(t.means.Statistics(t.present())); err != nil {
		return err
	}
	t.agreeMeans()
	if p := t.model.Closed.Inverse; p != nil { // with limits
		copy(p.Value.Data, c.F32["model/"+p.Name])
	}
	sums := c.F32["equations/sums"]
	for r := range t.at.Round {
		k := t.added(r)
		n := linear.PartLen(t.normal.Columns()+k, k, t.config.Classes)
		var err error
		if t.normal, err = t.normal.Extend(sums[:n], k, t.config.Classes); err != nil {
			return err
		}
		sums = sums[n:]
	}
	t.parts = c.F32["equations/sums"]
	if t.at.Round > 0 {
		y, weight := t.targets()
		z, labels, of := t.trainingRows(t.at.Round-1, t.base.columns, y, weight)
		var err error
		if t.own, err = (linear.Normal{}).Extend(linear.Part(z, z.Cols, labels, of), z.Cols, y.Cols); err != nil {
			return err
		}
	}
	t.report(train.Event{Kind: train.Restored, Round: t.at.Round, Peer: t.shard.Rank})
	return t.result.Restore(c.Rounds, c.Stages, t.at, func(int) string { return stageName })
}
