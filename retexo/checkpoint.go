package retexo

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// A checkpoint has the run state, all parameters, the optimizer, the best state of the current stage and its frozen
// rows. A resumed run computes and exchanges nothing again, so its bits are the same as if it had never stopped.

// header is the small part of the state that only this peer has.
type header struct {
	Shapes shapes `json:"shapes"`         // of the row arrays
	Ends   *int   `json:"ends,omitempty"` // last stage of a model whose logits were moved

	SiteShares *eval.Shares `json:"site_shares,omitempty"` // nn.Spec.SiteShares
}

// savePosition writes a checkpoint of the machine's position.
func (t *Trainer) savePosition() error {
	t.At = t.machine.Position()
	return t.Save(t)
}

// Keep implements train.Kept.
func (t *Trainer) Keep(c *train.Checkpoint) error {
	at := c.At
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
		header, err := json.Marshal(header{Ends: &t.Measured.Ends, SiteShares: t.model.Spec.SiteShares})
		if err != nil {
			return err
		}
		c.Header = header
	}
	for k, logits := range t.logits {
		c.F32[logitsOf(k)] = logits.Data
	}
	c.Heads = t.heads[:t.config.headsBefore(at.Stage)]
	for _, p := range t.model.Params() {
		c.Params = append(c.Params, p.Value.Clone().Data...)
	}
	if at.Stage == t.config.Stages() || at.Round == 0 && at.BestRound < 0 {
		return nil // the model is trained, or a stage begins, from the same parameters at all peers
	}
	if st := t.stage; st != nil {
		c.Slab, c.Best = st.slab.Value, st.best
		c.Steps, c.Moments = st.opt.State()
	}
	return nil
}

// logitsOf names the logits of stage k in a checkpoint.
func logitsOf(k int) string { return fmt.Sprintf("logits/%d", k) }

// saveRows adds the rows of stage k to c.
func (t *Trainer) saveRows(c *train.Checkpoint, k int) (err error) {
	h := header{Shapes: shapes{}}
	views := map[string]*view{"full": t.full, "base": t.base, "training": t.training}
	for _, name := range []string{"full", "base", "training"} {
		v := views[name]
		if name != "full" && v == t.full || name == "training" && v == t.base {
			continue
		}
		if name != "full" {
			putGraph(c, name, v.Adj, v.Degree)
		}
		if !same(v.own, t.input) {
			h.Shapes.put(c, name+"/own", v.own)
		}
		h.Shapes.put(c, name+"/z", v.z)
		if k > 0 && !t.model.Layers[k-1].Frozen() {
			h.Shapes.put(c, name+"/src", v.src)
		}
	}
	c.Header, err = json.Marshal(h)
	return err
}

// TakeUp implements train.Kept. Parameters of the current stage wait until it begins.
func (t *Trainer) TakeUp(c *train.Checkpoint) error {
	at := c.At
	if want := t.config.headsBefore(at.Stage); len(c.Heads) != want {
		return fmt.Errorf("a state of stage %d must have %d values of heads (got %d)", at.Stage, want, len(c.Heads))
	}
	params := c.Params
	for _, p := range t.model.Params() {
		params = params[copy(p.Value.Data, params[:p.Value.Rows*p.Value.Cols]):]
	}
	t.learnFrom()
	if t.pending = nil; len(c.Slab) > 0 {
		t.pending = &c.Snapshot
	}
	t.heads = slices.Clone(c.Heads)
	var h header
	if len(c.Header) > 0 {
		if err := json.Unmarshal(c.Header, &h); err != nil {
			return fmt.Errorf("header: %w", err)
		}
	}
	t.model.Spec.SiteShares = h.SiteShares
	if t.moved = h.Ends != nil; t.moved {
		t.Measured.Ends = *h.Ends
	}
	clear(t.logits)
	for k := range at.Stage {
		if logits, ok := c.Dense(logitsOf(k), t.shard.Owned, t.config.Spec.Classes); ok {
			t.logits[k] = logits
		}
	}
	if at.Stage < t.config.Stages() {
		return t.restoreRows(c, h, at.Stage)
	}
	t.end()
	return nil
}

// restoreRows restores the rows of stage k, and begins it.
func (t *Trainer) restoreRows(c *train.Checkpoint, h header, k int) error {
	r := &savedRows{of: c, shapes: h.Shapes}
	t.full = viewOf(r, t.input, "full", train.WholeGraph(t.shard))
	t.base, t.training = t.full, t.full
	if _, ok := c.I64["base/rowptr"]; ok {
		t.base = viewOf(r, t.input, "base", graphOf(r, "base", len(t.shard.Global)))
		t.training = t.base
	}
	if _, ok := c.I64["training/rowptr"]; ok {
		t.training = viewOf(r, t.input, "training", graphOf(r, "training", len(t.shard.Global)))
	}
	if r.err != nil {
		return r.err
	}
	if err := t.beginStage(k); err != nil {
		return err
	}
	if got, want := len(c.F32["residual"]), len(t.stage.residual); got != want {
		return fmt.Errorf("the residual must have %d values (got %d)", want, got)
	}
	copy(t.stage.residual, c.F32["residual"])
	return t.goOn()
}

// same reports whether two sets of rows share their memory.
func same(a, b graph.Features) bool {
	if a.Sparse != nil || b.Sparse != nil {
		return a.Sparse == b.Sparse
	}
	return a.Rows() == b.Rows() && a.Cols() == b.Cols() && (a.Dense.Empty() || &a.Dense.Data[0] == &b.Dense.Data[0])
}

func viewOf(r *savedRows, x graph.Features, name string, seen train.GraphView) *view {
	v := &view{GraphView: seen, own: x, src: r.features(name + "/src"), z: r.features(name + "/z")}
	if _, ok := r.shapes[name+"/own"]; ok {
		v.own = r.features(name + "/own")
	}
	return v
}

func graphOf(r *savedRows, name string, sources int) train.GraphView {
	adj, degree := r.graph(name, sources)
	return train.NewGraphView(adj, nil, degree)
}
