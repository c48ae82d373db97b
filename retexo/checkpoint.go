package retexo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// A checkpoint holds where the run stands, all parameters, the optimiser, the best state of the stage at hand and its
// frozen rows: nothing is computed or exchanged again on the way back, so the bits are those of a run that never
// stopped.

// header is the small part of what this peer alone holds.
type header struct {
	Shapes  map[string][2]int `json:"shapes"`            // of the row arrays
	Dropped []int             `json:"dropped,omitempty"` // lost peers whose edges the stage at hand goes without
}

// hello exchanges greetings, with which a generation begins.
func (t *Trainer) hello(ctx context.Context) ([]recovery.Greeting, error) {
	var held *recovery.Snapshot
	if t.machine.held {
		s := t.shared()
		held = &s
	}
	all, generation, err := t.participant().Greet(ctx, t.group, t.generation, held)
	if err == nil {
		t.greeted, t.generation = all, generation
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
	}
	c.Snapshot = t.state()
	if err := t.participant().Save(c); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Saved, Stage: at.Stage, Round: at.Round, Peer: t.shard.Rank})
	return nil
}

// saveRows adds the rows of stage k to c.
func (t *Trainer) saveRows(c *recovery.Checkpoint, k int) (err error) {
	h := header{Shapes: map[string][2]int{}, Dropped: t.dropped}
	views := map[string]*view{"full": t.full, "base": t.base, "training": t.training}
	for _, name := range []string{"full", "base", "training"} {
		v := views[name]
		if name != "full" && v == t.full || name == "training" && v == t.base {
			continue
		}
		if name != "full" {
			c.I64[name+"/rowptr"], c.I64[name+"/col"] = v.Adj.RowPtr, widen(v.Adj.Col)
			c.F32[name+"/degree"] = v.Degree
			if v.Adj.Weight != nil {
				c.F32[name+"/weight"] = v.Adj.Weight
			}
		}
		if !same(v.own, t.input) {
			putRows(c, h, name+"/own", v.own)
		}
		putRows(c, h, name+"/z", v.z)
		if k > 0 && !t.model.Layers[k-1].Frozen() {
			putRows(c, h, name+"/src", v.src)
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
	t.before, t.agreed, t.done = c.Sent, c.Agreed, t.participant().Shape.Final(at)
	if at.Stage < t.config.Stages() {
		if err := t.restoreRows(c, at.Stage); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	t.report(train.Event{Kind: train.Restored, Stage: at.Stage, Round: at.Round, Peer: t.shard.Rank})
	return nil
}

// restoreRows takes up the rows of stage k, and begins it.
func (t *Trainer) restoreRows(c *recovery.Checkpoint, k int) error {
	var h header
	if err := json.Unmarshal(c.Header, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	r := rows{of: c, shapes: h.Shapes, x: t.input}
	t.full = r.view("full", train.WholeGraph(t.shard))
	t.base, t.training = t.full, t.full
	if _, ok := c.I64["base/rowptr"]; ok {
		t.base = r.view("base", r.graph("base"))
		t.training = t.base
	}
	if _, ok := c.I64["training/rowptr"]; ok {
		t.training = r.view("training", r.graph("training"))
	}
	if r.err != nil {
		return r.err
	}
	if t.dropped = h.Dropped; len(t.dropped) > 0 {
		t.full.GraphView = train.NewGraphView(t.without(t.dropped), t.full.Typed, t.full.Degree)
	}
	if err := t.begin(k); err != nil {
		return err
	}
	t.own, t.rows = t.placeOf(k), t.placeOf(k)
	return t.goOn()
}

// same reports whether two sets of rows are one in memory.
func same(a, b graph.Features) bool {
	if a.Sparse != nil || b.Sparse != nil {
		return a.Sparse == b.Sparse
	}
	return a.Rows() == b.Rows() && a.Cols() == b.Cols() && (a.Dense.Empty() || &a.Dense.Data[0] == &b.Dense.Data[0])
}

func putRows(c *recovery.Checkpoint, h header, name string, f graph.Features) {
	if f.Rows() == 0 && f.Cols() == 0 {
		return
	}
	h.Shapes[name] = [2]int{f.Rows(), f.Cols()}
	if f.Sparse == nil {
		c.F32[name] = f.Dense.Clone().Data
		return
	}
	c.I64[name+"/rowptr"], c.I64[name+"/col"], c.F32[name] = f.Sparse.RowPtr, widen(f.Sparse.Col), f.Sparse.Val
}

// rows reads the row arrays of a checkpoint; err is the first fault.
type rows struct {
	of     *recovery.Checkpoint
	shapes map[string][2]int
	x      graph.Features // the input, which is not written again
	err    error
}

func (r *rows) graph(name string) train.GraphView {
	adj := &graph.CSR{RowPtr: r.of.I64[name+"/rowptr"], Col: narrow(r.of.I64[name+"/col"]), Weight: r.of.F32[name+"/weight"]}
	degree := r.of.F32[name+"/degree"]
	adj.NumDst, adj.NumSrc = len(adj.RowPtr)-1, len(degree)
	r.fault(adj.Valid())
	return train.NewGraphView(adj, nil, degree)
}

func (r *rows) view(name string, seen train.GraphView) *view {
	v := &view{GraphView: seen, own: r.x, src: r.features(name + "/src"), z: r.features(name + "/z")}
	if _, ok := r.shapes[name+"/own"]; ok {
		v.own = r.features(name + "/own")
	}
	return v
}

func (r *rows) features(name string) graph.Features {
	shape, ok := r.shapes[name]
	if !ok {
		return graph.Features{}
	}
	if ptr, sparse := r.of.I64[name+"/rowptr"]; sparse {
		s := &mat.Sparse{Rows: shape[0], Cols: shape[1], RowPtr: ptr, Col: narrow(r.of.I64[name+"/col"]), Val: r.of.F32[name]}
		r.fault(s.Valid())
		return graph.Features{Sparse: s}
	}
	d := mat.Dense{Rows: shape[0], Cols: shape[1], Stride: shape[1], Data: r.of.F32[name]}
	r.fault(d.Valid())
	return graph.Features{Dense: d}
}

func (r *rows) fault(err error) {
	if r.err == nil {
		r.err = err
	}
}

func widen(x []int32) []int64 {
	y := make([]int64, len(x))
	for i, v := range x {
		y[i] = int64(v)
	}
	return y
}

func narrow(x []int64) []int32 {
	y := make([]int32, len(x))
	for i, v := range x {
		y[i] = int32(v)
	}
	return y
}
