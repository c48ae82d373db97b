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
)

// A checkpoint holds where the run stands, all parameters, the optimiser, the best state of the stage at hand and its
// frozen rows: nothing is computed or exchanged again on the way back, so the bits are those of a run that never
// stopped.

// header is the small part of a checkpoint.
type header struct {
	Position Position          `json:"position"`
	Steps    int64             `json:"steps"`   // of the optimiser
	Reduces  uint64            `json:"reduces"` // done so far
	Sent     comm.Counts       `json:"sent"`    // so far
	Shapes   map[string][2]int `json:"shapes"`  // of the row arrays

	Generation uint64 `json:"generation,omitempty"` // in which this was agreed on
	Dropped    []int  `json:"dropped,omitempty"`    // lost peers whose edges the stage at hand goes without
}

func (t *Trainer) fingerprints() checkpoint.Fingerprints {
	spec, err := json.Marshal(t.config.Spec)
	if err != nil {
		panic("retexo: spec does not encode: " + err.Error())
	}
	shard := binary.LittleEndian.AppendUint32(t.shard.Fingerprint[:len(t.shard.Fingerprint):len(t.shard.Fingerprint)], uint32(t.shard.Rank))
	return checkpoint.Fingerprints{Config: t.config.Fingerprint(), Model: sha256.Sum256(spec), Shard: sha256.Sum256(shard)}
}

// hello exchanges greetings: whom I take myself for, my plan, my partition, my checkpoints.
func (t *Trainer) hello(ctx context.Context) ([]Greeting, error) {
	mine := Greeting{Rank: t.shard.Rank, Size: t.shard.Parts, Config: t.config.Fingerprint(), Partition: t.shard.Fingerprint}
	if t.config.Survival.On() {
		t.present(&mine)
	} else if t.Checkpoints != nil {
		var err error
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
	return all, nil
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
	if err := t.enter(at.Stage); err != nil {
		return err
	}
	st := t.stage
	h := header{Position: at, Reduces: t.reduces, Sent: t.sent(), Shapes: map[string][2]int{}, Generation: t.agreed, Dropped: t.dropped}
	s := &checkpoint.State{Fingerprints: t.fingerprints(), F32: map[string][]float32{}, I64: map[string][]int64{}, F64: map[string][]float64{"labels": t.labels, "rounds": t.result.rounds(), "stages": t.result.stages()}}
	for _, p := range t.model.Params() {
		s.F32["param/"+p.Name] = p.Value.Data
	}
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
			s.I64[name+"/rowptr"], s.I64[name+"/col"] = v.adj.RowPtr, widen(v.adj.Col)
			s.F32[name+"/degree"] = v.degree
			if v.adj.Weight != nil {
				s.F32[name+"/weight"] = v.adj.Weight
			}
		}
		if !same(v.own, t.input) {
			putRows(s, &h, name+"/own", v.own)
		}
		putRows(s, &h, name+"/z", v.z)
		if at.Stage > 0 && !t.model.Layers[at.Stage-1].Frozen() {
			putRows(s, &h, name+"/src", v.src)
		}
	}
	var err error
	if s.Header, err = json.Marshal(h); err != nil {
		return err
	}
	if err := t.Checkpoints.Save(at.seq(), s); err != nil {
		return err
	}
	if t.Observer.Saved != nil {
		t.Observer.Saved(at)
	}
	return nil
}

// restore takes up checkpoint seq.
func (t *Trainer) restore(seq uint64) (*Position, error) {
	s, err := t.Checkpoints.Load(seq, t.fingerprints())
	if err != nil {
		return nil, err
	}
	// What is newer not all peers have. It goes now: among the two that are kept has to be one that all do.
	if err := t.Checkpoints.Rewind(seq); err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(s.Header, &h); err != nil {
		return nil, fmt.Errorf("checkpoint %d: header: %w", seq, err)
	}
	at := h.Position
	if at.Stage < 0 || at.Stage >= t.config.Stages() {
		return nil, fmt.Errorf("checkpoint %d is of stage %d, of %d", seq, at.Stage, t.config.Stages())
	}
	t.reduces, t.before = h.Reduces, h.Sent
	if err := t.result.restore(s.F64["rounds"], s.F64["stages"], at); err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", seq, err)
	}
	for _, p := range t.model.Params() {
		if err := take(p.Value.Data, s.F32["param/"+p.Name], "parameter "+p.Name); err != nil {
			return nil, err
		}
	}
	r := rows{state: s, shapes: h.Shapes, x: t.input}
	t.full = r.view("full", &t.shard.Adj, t.shard.Degree)
	t.base, t.training = t.full, t.full
	if _, ok := s.I64["base/rowptr"]; ok {
		t.base = r.view("base", nil, nil)
		t.training = t.base
	}
	if _, ok := s.I64["training/rowptr"]; ok {
		t.training = r.view("training", nil, nil)
	}
	if r.err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", seq, r.err)
	}
	if t.dropped = h.Dropped; len(t.dropped) > 0 {
		t.full.adj = t.without(t.dropped)
	}
	if err := t.begin(at.Stage); err != nil {
		return nil, err
	}
	if l := s.F64["labels"]; len(l) == t.config.Spec.Classes {
		t.labels = l // or else the census has counted them
	}
	t.agreed, t.last = h.Generation, max(t.last, h.Generation)
	t.own, t.rows = t.placeOf(at.Stage), t.placeOf(at.Stage)
	if st := t.stage; st.slab != nil {
		var moments [][]float32
		for i := 0; s.F32[fmt.Sprintf("moment/%d", i)] != nil; i++ {
			moments = append(moments, s.F32[fmt.Sprintf("moment/%d", i)])
		}
		if err := st.opt.Restore(h.Steps, moments); err != nil {
			return nil, err
		}
		if err := take(st.slab.Value, s.F32["slab"], "slab"); err != nil {
			return nil, err
		}
		if err := take(st.best, s.F32["best"], "best state"); err != nil {
			return nil, err
		}
	}
	if t.Observer.Restored != nil {
		t.Observer.Restored(at)
	}
	return &at, nil
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

func (r *rows) view(name string, adj *graph.CSR, degree []float32) *view {
	if adj == nil {
		adj = &graph.CSR{RowPtr: r.state.I64[name+"/rowptr"], Col: narrow(r.state.I64[name+"/col"]), Weight: r.state.F32[name+"/weight"]}
		degree = r.state.F32[name+"/degree"]
		adj.NumDst, adj.NumSrc = len(adj.RowPtr)-1, len(degree)
		r.fault(adj.Valid())
	}
	v := &view{adj: adj, degree: degree, own: r.x, src: r.features(name + "/src"), z: r.features(name + "/z")}
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
