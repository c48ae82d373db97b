package retexo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// A checkpoint holds where the run stands, all parameters, the optimiser, the best state of the stage at hand and its
// frozen rows: nothing is computed or exchanged again on the way back, so the bits are those of a run that never
// stopped.

// header is the small part of a checkpoint.
type header struct {
	Position train.Position    `json:"position"`
	Steps    int64             `json:"steps"`  // of the optimiser
	Sent     comm.Counts       `json:"sent"`   // so far
	Shapes   map[string][2]int `json:"shapes"` // of the row arrays

	Generation uint64 `json:"generation,omitempty"` // in which this was agreed on
	Dropped    []int  `json:"dropped,omitempty"`    // lost peers whose edges the stage at hand goes without
}

func (t *Trainer) fingerprints() checkpoint.Fingerprints {
	shard := binary.LittleEndian.AppendUint32(t.shard.Fingerprint[:len(t.shard.Fingerprint):len(t.shard.Fingerprint)], uint32(t.shard.Rank))
	return checkpoint.Fingerprints{Config: t.config.Fingerprint(), Model: train.Fingerprint(t.config.Spec), Shard: sha256.Sum256(shard)}
}

// hello exchanges greetings: whom I take myself for, my plan, my partition, my checkpoints.
func (t *Trainer) hello(ctx context.Context) ([]Greeting, error) {
	mine := Greeting{Rank: t.shard.Rank, Size: t.shard.Parts, Config: t.config.Fingerprint(), Partition: t.shard.Fingerprint}
	if t.config.Survival.On() {
		t.present(&mine)
	} else if t.Checkpoints != nil {
		last, err := t.Checkpoints.Generation()
		if err != nil {
			return nil, err
		}
		mine.Generation = max(last, t.last)
		if mine.Checkpoints, err = t.usable(); err != nil {
			return nil, err
		}
	}
	out := make([][]byte, t.group.Size())
	for q := range out {
		if q != t.shard.Rank {
			out[q] = mine.encode()
		}
	}
	in, err := t.group.SendRecv(ctx, comm.Control, "greetings", out, greetingLen(maxCheckpoints))
	if err != nil {
		return nil, err
	}
	all := make([]Greeting, len(in))
	for q := range all {
		if q == t.shard.Rank {
			all[q] = mine
			continue
		}
		if !t.group.Has(q) {
			continue
		}
		if all[q], err = parseGreeting(in[q]); err != nil {
			return nil, &comm.PeerError{Rank: q, Op: "greeting", Err: err}
		}
	}
	t.greeted = all
	if t.config.Survival.On() {
		return all, nil
	}
	newest := mine.Generation
	for q, g := range all {
		if g.Generation > mine.Generation+comm.MaxGenerationLead {
			return nil, &comm.PeerError{Rank: q, Op: "greeting", Err: fmt.Errorf("generation %d is too far beyond this peer's %d", g.Generation, mine.Generation)}
		}
		newest = max(newest, g.Generation)
	}
	return all, t.enterGeneration(newest + 1)
}

// enterGeneration begins the generation of that number. It is kept before anything is reduced in it: whatever becomes of
// the states, no later generation has the same number.
func (t *Trainer) enterGeneration(n uint64) error {
	t.generation, t.last = n, max(t.last, n)
	if t.Checkpoints == nil {
		return nil
	}
	return t.Checkpoints.KeepGeneration(n)
}

// usable lists the checkpoints that can be read and belong to this run. One of another run is an error: going on
// would overwrite it.
func (t *Trainer) usable() ([]uint64, error) {
	seqs, err := t.Checkpoints.List()
	if err != nil {
		return nil, err
	}
	var good []uint64
	for _, s := range seqs {
		_, err := t.Checkpoints.Load(s, t.fingerprints())
		if err == nil {
			good = append(good, s)
		} else if _, other := err.(*checkpoint.MismatchError); other {
			return nil, err
		}
	}
	return good[:min(len(good), maxCheckpoints)], nil
}

// maxCheckpoints is how many a greeting can list; a store keeps two.
const maxCheckpoints = 8

func greetingLen(checkpoints int) int { return 4 + 4 + 3*32 + 2*8 + 8*checkpoints }

// encode: u32 rank · u32 size · 32 bytes config · 32 bytes partition · u64 generation · u64 position · 32 bytes state ·
// u64 a checkpoint.
func (g Greeting) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(g.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(g.Size))
	b = append(append(b, g.Config[:]...), g.Partition[:]...)
	b = binary.LittleEndian.AppendUint64(b, g.Generation)
	b = binary.LittleEndian.AppendUint64(b, g.Seq)
	b = append(b, g.State[:]...)
	for _, s := range g.Checkpoints {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return b
}

func parseGreeting(b []byte) (g Greeting, err error) {
	if len(b) < greetingLen(0) || len(b) > greetingLen(maxCheckpoints) || (len(b)-greetingLen(0))%8 != 0 {
		return g, fmt.Errorf("%d bytes, want %d and 8 for each of up to %d checkpoints", len(b), greetingLen(0), maxCheckpoints)
	}
	g.Rank, g.Size = int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	copy(g.Config[:], b[8:])
	copy(g.Partition[:], b[40:])
	g.Generation, g.Seq = binary.LittleEndian.Uint64(b[72:]), binary.LittleEndian.Uint64(b[80:])
	copy(g.State[:], b[88:])
	for b = b[120:]; len(b) > 0; b = b[8:] {
		g.Checkpoints = append(g.Checkpoints, binary.LittleEndian.Uint64(b))
	}
	return g, nil
}

// save writes a checkpoint of the machine's position.
func (t *Trainer) save() error {
	if t.Checkpoints == nil {
		return nil
	}
	at := t.machine.Position()
	h := header{Position: at, Sent: t.sent(), Shapes: map[string][2]int{}, Generation: t.agreed, Dropped: t.dropped}
	rounds, stages := t.result.Encode()
	s := &checkpoint.State{Fingerprints: t.fingerprints(), F32: map[string][]float32{}, I64: map[string][]int64{}, F64: map[string][]float64{"labels": t.labels, "rounds": rounds, "stages": stages}}
	for _, p := range t.model.Params() {
		s.F32["param/"+p.Name] = p.Value.Data
	}
	if at.Stage < t.config.Stages() {
		if err := t.saveStage(s, &h); err != nil {
			return err
		}
	}
	var err error
	if s.Header, err = json.Marshal(h); err != nil {
		return err
	}
	if err := t.Checkpoints.Save(at.Seq(), s); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Saved, Stage: at.Stage, Round: at.Round, Peer: t.shard.Rank})
	return nil
}

// saveStage adds the stage at hand to s: parameters, optimiser and rows.
func (t *Trainer) saveStage(s *checkpoint.State, h *header) error {
	if err := t.enter(h.Position.Stage); err != nil {
		return err
	}
	st := t.stage
	if st.slab != nil {
		var moments [][]float32
		h.Steps, moments = st.opt.State()
		s.F32["slab"], s.F32["best"] = st.slab.Value, st.best
		for i, m := range moments {
			s.F32[fmt.Sprintf("moment/%d", i)] = m
		}
	}
	views := map[string]*view{"full": t.full, "base": t.base, "training": t.training}
	for _, name := range []string{"full", "base", "training"} {
		v := views[name]
		if name != "full" && v == t.full || name == "training" && v == t.base {
			continue
		}
		if name != "full" {
			s.I64[name+"/rowptr"], s.I64[name+"/col"] = v.Adj.RowPtr, widen(v.Adj.Col)
			s.F32[name+"/degree"] = v.Degree
			if v.Adj.Weight != nil {
				s.F32[name+"/weight"] = v.Adj.Weight
			}
		}
		if !same(v.own, t.input) {
			putRows(s, h, name+"/own", v.own)
		}
		putRows(s, h, name+"/z", v.z)
		if k := h.Position.Stage; k > 0 && !t.model.Layers[k-1].Frozen() {
			putRows(s, h, name+"/src", v.src)
		}
	}
	return nil
}

// restore takes up checkpoint seq.
func (t *Trainer) restore(seq uint64) (*train.Position, error) {
	s, err := t.Checkpoints.Restore(seq, t.fingerprints())
	if err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(s.Header, &h); err != nil {
		return nil, fmt.Errorf("checkpoint %d: header: %w", seq, err)
	}
	at := h.Position
	if at.Stage < 0 || at.Stage > t.config.Stages() {
		return nil, fmt.Errorf("checkpoint %d is of stage %d, of %d", seq, at.Stage, t.config.Stages())
	}
	t.before = h.Sent
	if err := t.result.Restore(s.F64["rounds"], s.F64["stages"], at, train.StageName); err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", seq, err)
	}
	for _, p := range t.model.Params() {
		if err := take(p.Value.Data, s.F32["param/"+p.Name], "parameter "+p.Name); err != nil {
			return nil, err
		}
	}
	if l := s.F64["labels"]; len(l) == t.config.Spec.Classes {
		t.labels = l // or else they have been counted
	}
	t.agreed, t.last = h.Generation, max(t.last, h.Generation)
	t.done = at.Stage == t.config.Stages() && at.Round == final
	if at.Stage < t.config.Stages() {
		if err := t.restoreStage(s, h, at.Stage); err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", seq, err)
		}
	}
	t.report(train.Event{Kind: train.Restored, Stage: at.Stage, Round: at.Round, Peer: t.shard.Rank})
	return &at, nil
}

// restoreStage takes up stage k of a checkpoint: rows, parameters and optimiser.
func (t *Trainer) restoreStage(s *checkpoint.State, h header, k int) error {
	r := rows{state: s, shapes: h.Shapes, x: t.input}
	t.full = r.view("full", train.WholeGraph(t.shard))
	t.base, t.training = t.full, t.full
	if _, ok := s.I64["base/rowptr"]; ok {
		t.base = r.view("base", r.graph("base"))
		t.training = t.base
	}
	if _, ok := s.I64["training/rowptr"]; ok {
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
	if st := t.stage; st.slab != nil {
		var moments [][]float32
		for i := 0; s.F32[fmt.Sprintf("moment/%d", i)] != nil; i++ {
			moments = append(moments, s.F32[fmt.Sprintf("moment/%d", i)])
		}
		if err := st.opt.Restore(h.Steps, moments); err != nil {
			return err
		}
		if err := take(st.slab.Value, s.F32["slab"], "slab"); err != nil {
			return err
		}
		if err := take(st.best, s.F32["best"], "best state"); err != nil {
			return err
		}
	}
	return nil
}

func take(dst, src []float32, what string) error {
	if len(dst) != len(src) {
		return fmt.Errorf("checkpoint: %s has %d values, want %d", what, len(src), len(dst))
	}
	copy(dst, src)
	return nil
}

// same reports whether two sets of rows are one in memory.
func same(a, b graph.Features) bool {
	if a.Sparse != nil || b.Sparse != nil {
		return a.Sparse == b.Sparse
	}
	return a.Rows() == b.Rows() && a.Cols() == b.Cols() && (a.Dense.Empty() || &a.Dense.Data[0] == &b.Dense.Data[0])
}

func putRows(s *checkpoint.State, h *header, name string, f graph.Features) {
	if f.Rows() == 0 && f.Cols() == 0 {
		return
	}
	h.Shapes[name] = [2]int{f.Rows(), f.Cols()}
	if f.Sparse == nil {
		s.F32[name] = f.Dense.Clone().Data
		return
	}
	s.I64[name+"/rowptr"], s.I64[name+"/col"], s.F32[name] = f.Sparse.RowPtr, widen(f.Sparse.Col), f.Sparse.Val
}

// rows reads the row arrays of a checkpoint; err is the first fault.
type rows struct {
	state  *checkpoint.State
	shapes map[string][2]int
	x      graph.Features // the input, which is not written again
	err    error
}

func (r *rows) graph(name string) train.GraphView {
	adj := &graph.CSR{RowPtr: r.state.I64[name+"/rowptr"], Col: narrow(r.state.I64[name+"/col"]), Weight: r.state.F32[name+"/weight"]}
	degree := r.state.F32[name+"/degree"]
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
	if ptr, sparse := r.state.I64[name+"/rowptr"]; sparse {
		s := &mat.Sparse{Rows: shape[0], Cols: shape[1], RowPtr: ptr, Col: narrow(r.state.I64[name+"/col"]), Val: r.state.F32[name]}
		r.fault(s.Valid())
		return graph.Features{Sparse: s}
	}
	d := mat.Dense{Rows: shape[0], Cols: shape[1], Stride: shape[1], Data: r.state.F32[name]}
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
