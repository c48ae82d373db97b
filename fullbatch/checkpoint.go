package fullbatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// header is the small part of a checkpoint.
type header struct {
	Position train.Position `json:"position"`
	Steps    int64          `json:"steps"` // of the optimiser

	Sent comm.Counts `json:"sent"` // by the worker that wrote it, in the whole run
}

func (t *Trainer) fingerprints() checkpoint.Fingerprints {
	return checkpoint.Fingerprints{Config: t.config.Fingerprint(), Model: train.Fingerprint(t.config.Spec), Shard: t.shard.Fingerprint}
}

// save writes a checkpoint: the parameters, the best ones, the optimiser and the position.
func (t *Trainer) save() error {
	if t.Checkpoints == nil {
		return nil
	}
	steps, moments := t.opt.State()
	head, err := json.Marshal(header{Position: t.at, Steps: steps, Sent: t.sent()})
	if err != nil {
		return err
	}
	rounds, stages := t.result.Encode()
	s := &checkpoint.State{Fingerprints: t.fingerprints(), Header: head,
		F32: map[string][]float32{"slab": t.slab.Value, "best": t.best}, F64: map[string][]float64{"rounds": rounds, "stages": stages}}
	for i, m := range moments {
		s.F32[fmt.Sprintf("moment/%d", i)] = m
	}
	if err := t.Checkpoints.Save(t.at.Seq(), s); err != nil {
		return err
	}
	t.report(train.Event{Kind: train.Saved, Round: t.at.Round, Peer: t.shard.Rank})
	return nil
}

// greeting is what workers tell one another first.
type greeting struct {
	rank, size        int
	config, partition [32]byte
	generation        uint64 // the highest that this worker had a part in
	newest            uint64 // checkpoint that this worker could go on from; 0: none
}

const greetingLen = 4 + 4 + 32 + 32 + 8 + 8

func (g greeting) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(g.rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(g.size))
	b = append(append(b, g.config[:]...), g.partition[:]...)
	b = binary.LittleEndian.AppendUint64(b, g.generation)
	return binary.LittleEndian.AppendUint64(b, g.newest)
}

// hello makes sure that all workers mean the same run, and returns the worker to go on from and its newest checkpoint;
// 0, none has one.
func (t *Trainer) hello(ctx context.Context) (from resume, err error) {
	mine := greeting{rank: t.shard.Rank, size: t.shard.Parts, config: t.config.Fingerprint(), partition: t.shard.Fingerprint}
	if t.Checkpoints != nil {
		if mine.generation, err = t.Checkpoints.Generation(); err != nil {
			return from, err
		}
		switch s, err := t.Checkpoints.Latest(t.fingerprints()); {
		case err == nil:
			mine.newest = s.Seq
			if err := t.history(s); err != nil {
				return from, fmt.Errorf("checkpoint %d: %w", s.Seq, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return from, err
		}
	}
	from = resume{mine.rank, mine.newest}
	out := make([][]byte, t.shard.Parts)
	for q := range out {
		out[q] = mine.encode()
	}
	in, err := t.line.group.SendRecv(ctx, comm.Control, "greetings", out, greetingLen)
	if err != nil {
		return from, err
	}
	newest := mine.generation
	for q, b := range in {
		if q == mine.rank {
			continue
		}
		want := mine
		want.rank = q
		if len(b) == greetingLen {
			want.generation, want.newest = binary.LittleEndian.Uint64(b[greetingLen-16:]), binary.LittleEndian.Uint64(b[greetingLen-8:])
		}
		if !bytes.Equal(b, want.encode()) {
			return from, &comm.PeerError{Rank: q, Op: "greeting", Err: errors.New("another rank, number of workers, plan or partition than here")}
		}
		if want.generation > mine.generation+comm.MaxGenerationLead {
			return from, &comm.PeerError{Rank: q, Op: "greeting", Err: fmt.Errorf("generation %d is too far beyond this worker's %d", want.generation, mine.generation)}
		}
		newest = max(newest, want.generation)
		if want.newest > from.seq || want.newest == from.seq && q < from.rank {
			from = resume{q, want.newest}
		}
	}
	t.generation = newest + 1
	if t.Checkpoints == nil {
		return from, nil
	}
	return from, t.Checkpoints.KeepGeneration(t.generation)
}

// resume says where a run goes on: all workers hold the same state, so that any one's will do.
type resume struct {
	rank int
	seq  uint64 // 0: at the beginning
}

// restore takes up a checkpoint, which worker from.rank has.
func (t *Trainer) restore(ctx context.Context, from resume) error {
	if from.seq == 0 {
		return nil
	}
	out := make([][]byte, t.shard.Parts)
	var head []byte
	if from.rank == t.shard.Rank {
		s, err := t.Checkpoints.Load(from.seq, t.fingerprints())
		if err != nil {
			return err
		}
		if err := t.load(s); err != nil {
			return fmt.Errorf("checkpoint %d: %w", s.Seq, err)
		}
		head = s.Header
		for q := range out {
			out[q] = head
		}
	}
	in, err := t.line.group.SendRecv(ctx, comm.Control, "where the run stands", out, maxHeader)
	if err != nil {
		return err
	}
	_, moments := t.opt.State()
	for _, x := range append([][]float32{t.slab.Value, t.best}, moments...) {
		if err := t.line.group.Broadcast(ctx, comm.Control, from.rank, x); err != nil {
			return err
		}
	}
	if head == nil {
		head = in[from.rank]
	}
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return &comm.PeerError{Rank: from.rank, Op: "where the run stands", Err: err}
	}
	if err := t.opt.Restore(h.Steps, moments); err != nil {
		return err
	}
	t.at = h.Position
	t.result = t.result.Until(t.at)
	t.report(train.Event{Kind: train.Restored, Round: t.at.Round, Peer: t.shard.Rank})
	return nil
}

const maxHeader = 1 << 12

// history takes from this worker's own checkpoint what it has measured and sent before, which no other one knows.
func (t *Trainer) history(s *checkpoint.State) error {
	var h header
	if err := json.Unmarshal(s.Header, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	t.before = h.Sent
	return t.result.Restore(s.F64["rounds"], s.F64["stages"], h.Position, func(int) string { return train.AllLayers })
}

// Generation returns the highest generation that this worker had a part in.
func (t *Trainer) Generation() (uint64, error) {
	if t.Checkpoints == nil {
		return t.generation, nil
	}
	return t.Checkpoints.Generation()
}

// Resume takes up a final model that the checkpoints have, and reports whether there is one.
func (t *Trainer) Resume() (done bool, err error) {
	if t.Checkpoints == nil || t.done {
		return t.done, nil
	}
	s, err := t.Checkpoints.Latest(t.fingerprints())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || s.Seq != (train.Position{Stage: 1, Round: final}).Seq() {
		return false, err
	}
	if err := errors.Join(t.load(s), t.history(s)); err != nil {
		return false, fmt.Errorf("checkpoint %d: %w", s.Seq, err)
	}
	t.result.Sent, t.done = t.before, true
	return true, nil
}

// sent is what this worker has sent in the whole run, interruptions included.
func (t *Trainer) sent() comm.Counts { return t.before.Plus(t.line.group.Bytes()) }

// load takes parameters and optimiser from a state.
func (t *Trainer) load(s *checkpoint.State) error {
	var h header
	if err := json.Unmarshal(s.Header, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if n := len(t.slab.Value); len(s.F32["slab"]) != n || len(s.F32["best"]) != n {
		return fmt.Errorf("%d parameters, %d best ones, want %d", len(s.F32["slab"]), len(s.F32["best"]), n)
	}
	var moments [][]float32
	for i := 0; s.F32[fmt.Sprintf("moment/%d", i)] != nil; i++ {
		moments = append(moments, s.F32[fmt.Sprintf("moment/%d", i)])
	}
	if err := t.opt.Restore(h.Steps, moments); err != nil {
		return err
	}
	copy(t.slab.Value, s.F32["slab"])
	copy(t.best, s.F32["best"])
	return nil
}
