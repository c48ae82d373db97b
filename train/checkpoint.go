package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Checkpoint is a Snapshot with this peer's own state.
type Checkpoint struct {
	Snapshot
	Sent comm.Counts // by this peer so far

	// What else the trainer needs, such as rows. Names of arrays have a slash in them.
	Header json.RawMessage // (nil = nothing)
	F32    map[string][]float32
	I64    map[string][]int64
}

// Dense returns the array of that name as a matrix; ok is false unless there is one of that size.
func (c *Checkpoint) Dense(name string, rows, cols int) (m mat.Dense, ok bool) {
	x, ok := c.F32[name]
	if !ok || len(x) != rows*cols {
		return mat.Dense{}, false
	}
	return mat.View(rows, cols, x), true
}

// version is the format that save writes. Checkpoints of another one are refused.
const version = 3

// checkpointHeader is the small part of a checkpoint.
type checkpointHeader struct {
	Version  int             `json:"version"`
	Position Position        `json:"position"`
	Agreed   uint64          `json:"generation"`
	Steps    int64           `json:"steps"`
	Sent     comm.Counts     `json:"sent"`
	Trainer  json.RawMessage `json:"trainer,omitempty"`
}

func (p Participant) fingerprints() checkpoint.Fingerprints {
	shard := binary.LittleEndian.AppendUint32(p.Partition[:len(p.Partition):len(p.Partition)], uint32(p.Rank))
	return checkpoint.Fingerprints{Config: p.Config, Model: p.Model, Shard: sha256.Sum256(shard)}
}

// saveCheckpoint writes a checkpoint. The store keeps it and the one before it.
func (p Participant) saveCheckpoint(c *Checkpoint) error {
	head, err := json.Marshal(checkpointHeader{version, c.At, c.Agreed, c.Steps, c.Sent, c.Header})
	if err != nil {
		return err
	}
	s := &checkpoint.State{Fingerprints: p.fingerprints(), Header: head, I64: c.I64,
		F32: map[string][]float32{"params": c.Params, "heads": c.Heads, "slab": c.Slab, "best": c.Best},
		F64: map[string][]float64{"labels": c.Labels, "rounds": c.Rounds, "stages": c.Stages}}
	for i, m := range c.Moments {
		s.F32[moment(i)] = m
	}
	for name, x := range c.F32 {
		s.F32[name] = x
	}
	return p.Checkpoints.Save(c.At.Seq(), s)
}

func moment(i int) string { return fmt.Sprintf("moment/%d", i) }

// restore returns checkpoint seq for a run that continues from it. Newer ones are removed: not all members have those,
// and of the two that a store keeps one has to be that all have.
func (p Participant) restore(seq uint64) (*Checkpoint, error) {
	s, err := p.Checkpoints.Restore(seq, p.fingerprints())
	if err != nil {
		return nil, err
	}
	return p.readCheckpoint(s)
}

// newest returns the newest checkpoint that can be read, or nil. A checkpoint of another run is an error, because this
// run would overwrite it.
func (p Participant) newest() (*Checkpoint, error) {
	_, newest, err := p.readable()
	return newest, err
}

// readable returns the numbers of the checkpoints that can be read, and the newest of them.
func (p Participant) readable() (seqs []uint64, newest *Checkpoint, err error) {
	if p.Checkpoints == nil {
		return nil, nil, nil
	}
	seqs, s, err := p.Checkpoints.Readable(p.fingerprints())
	if s != nil {
		newest, err = p.readCheckpoint(s)
	}
	return seqs[:min(len(seqs), maxCheckpoints)], newest, err
}

// readCheckpoint reads what saveCheckpoint wrote.
func (p Participant) readCheckpoint(s *checkpoint.State) (*Checkpoint, error) {
	var h checkpointHeader
	if err := json.Unmarshal(s.Header, &h); err != nil {
		return nil, fmt.Errorf("checkpoint %d: header: %w", s.Seq, err)
	}
	if h.Version != version {
		return nil, &checkpoint.MismatchError{Path: p.Checkpoints.Dir, Which: []string{"version of this program"}}
	}
	c := &Checkpoint{Sent: h.Sent, Header: h.Trainer, F32: s.F32, I64: s.I64,
		Snapshot: Snapshot{At: h.Position, Agreed: h.Agreed, Steps: h.Steps, Labels: s.F64["labels"],
			Rounds: s.F64["rounds"], Stages: s.F64["stages"], Params: s.F32["params"], Heads: s.F32["heads"],
			Slab: s.F32["slab"], Best: s.F32["best"]}}
	for i := 0; s.F32[moment(i)] != nil; i++ {
		c.Moments = append(c.Moments, s.F32[moment(i)])
	}
	if err := p.Shape.fits(c.Snapshot); err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", s.Seq, err)
	}
	return c, nil
}
