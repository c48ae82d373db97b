package retexo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// A checkpoint holds where the run stands, all parameters, the optimiser, the best state of the stage at hand and its
// frozen rows: nothing is computed or exchanged again on the way back, so the bits are those of a run that never
// stopped.

// header is the small part of what this peer alone holds.
type header struct {
	Shapes recovery.Shapes `json:"shapes"`         // of the row arrays
	Ends   *int            `json:"ends,omitempty"` // the stage that a model of moved logits ends with

	SiteShares *eval.Shares `json:"site_shares,omitempty"` // nn.Spec.SiteShares
}

// hello exchanges greetings.
func (t *Trainer) hello(ctx context.Context) ([]recovery.Greeting, error) {
	all, generation, err := t.participant().Greet(ctx, t.group, t.generation, nil)
	if err == nil {
		t.generation = generation
	}
	return all, err
}

// save writes a checkpoint of the machine's position.
func (t *Trainer) save() error {
	if t.Checkpoints == nil {
		return nil
	}
	at := t.machine.Position()
	c := &recovery.Checkpoint{Sent: t.sent(), F32: map[string][]float32{}, I64: map[string][]int64{}}
	if at.Stage < t.config.Stages() {
		if err := t.enter(at.Stage); err != nil {
			return err
		}
		if err := t.saveRows(c, at.Stage); err != nil {
			return err
		}
		if st := t.stage; st != nil && st.residual != nil {
			c.F32["residual"] = st.residual
		}
	}
	if t.moved {
		header, err := json.Marshal(header{Ends: &t.result.Ends, SiteShares: t.model.Spec.SiteShares})
		if err != nil {
			return err
		}
		c.Header = header
	}
	for k, logits := range t.logits {
		c.F32[logitsOf(k)] = logits.Data
	}
	c.Snapshot = t.state()
	if err := t.participant().Save(c); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Saved, Stage: at.Stage, Round: at.Round, Peer: t.shard.Rank})
	return nil
}

// logitsOf names those of stage k in a checkpoint.
func logitsOf(k int) string { return fmt.Sprintf("logits/%d", k) }

// saveRows adds the rows of stage k to c.
func (t *Trainer) saveRows(c *recovery.Checkpoint, k int) (err error) {
	h := header{Shapes: recovery.Shapes{}}
	views := map[string]*view{"full": t.full, "base": t.base, "training": t.training}
	for _, name := range []string{"full", "base", "training"} {
		v := views[name]
		if name != "full" && v == t.full || name == "training" && v == t.base {
			continue
		}
		if name != "full" {
			c.PutGraph(name, v.Adj, v.Degree)
		}
		if !same(v.own, t.input) {
			c.PutFeatures(h.Shapes, name+"/own", v.own)
		}
		c.PutFeatures(h.Shapes, name+"/z", v.z)
		if k > 0 && (!t.model.Layers[k-1].Frozen() || t.config.Neighbours > 0) {
			c.PutFeatures(h.Shapes, name+"/src", v.src)
		}
	}
	c.Header, err = json.Marshal(h)
	return err
}

// restore takes up checkpoint seq.
func (t *Trainer) restore(seq uint64) (*train.Position, error) {
	c, err := t.participant().Restore(seq)
	if err != nil {
		return nil, err
	}
	return &c.At, t.takeUp(c)
}

// takeUp makes c what this peer continues from.
func (t *Trainer) takeUp(c *recovery.Checkpoint) error {
	if err := t.take(c.Snapshot); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	at := c.At
	t.before, t.done = c.Sent, t.participant().Shape.Final(at)
	var h header
	if len(c.Header) > 0 {
		if err := json.Unmarshal(c.Header, &h); err != nil {
			return fmt.Errorf("checkpoint: header: %w", err)
		}
	}
	t.model.Spec.SiteShares = h.SiteShares
	if t.moved = h.Ends != nil; t.moved {
		t.result.Ends = *h.Ends
	}
	clear(t.logits)
	for k := range at.Stage {
		if logits, ok := c.Dense(logitsOf(k), t.shard.Owned, t.config.Spec.Classes); ok {
			t.logits[k] = logits
		}
	}
	if at.Stage < t.config.Stages() {
		if err := t.restoreRows(c, h, at.Stage); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	t.report(train.Event{Kind: train.Restored, Stage: at.Stage, Round: at.Round, Peer: t.shard.Rank})
	return nil
}

// restoreRows takes up the rows of stage k, and begins it.
func (t *Trainer) restoreRows(c *recovery.Checkpoint, h header, k int) error {
	r := &recovery.Rows{Of: c, Shapes: h.Shapes}
	t.full = viewOf(r, t.input, "full", train.WholeGraph(t.shard))
	t.base, t.training = t.full, t.full
	if _, ok := c.I64["base/rowptr"]; ok {
		t.base = viewOf(r, t.input, "base", graphOf(r, "base", len(t.shard.Global)))
		t.training = t.base
	}
	if _, ok := c.I64["training/rowptr"]; ok {
		t.training = viewOf(r, t.input, "training", graphOf(r, "training", len(t.shard.Global)))
	}
	if r.Err != nil {
		return r.Err
	}
	if err := t.begin(k); err != nil {
		return err
	}
	if got, want := len(c.F32["residual"]), len(t.stage.residual); got != want {
		return fmt.Errorf("the residual must have %d values (got %d)", want, got)
	}
	copy(t.stage.residual, c.F32["residual"])
	return t.goOn()
}

// same reports whether two sets of rows are one in memory.
func same(a, b graph.Features) bool {
	if a.Sparse != nil || b.Sparse != nil {
		return a.Sparse == b.Sparse
	}
	return a.Rows() == b.Rows() && a.Cols() == b.Cols() && (a.Dense.Empty() || &a.Dense.Data[0] == &b.Dense.Data[0])
}

func viewOf(r *recovery.Rows, x graph.Features, name string, seen train.GraphView) *view {
	v := &view{GraphView: seen, own: x, src: r.Features(name + "/src"), z: r.Features(name + "/z")}
	if r.Has(name + "/own") {
		v.own = r.Features(name + "/own")
	}
	return v
}

func graphOf(r *recovery.Rows, name string, sources int) train.GraphView {
	adj, degree := r.Graph(name, sources)
	return train.NewGraphView(adj, nil, degree)
}
