package fullbatch

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/heddle-gnn/heddle/checkpoint"
)

// header is the small part of a checkpoint.
type header struct {
	Position position `json:"position"`
	Steps    int64    `json:"steps"` // of the optimiser
}

func (t *Trainer) fingerprints() checkpoint.Fingerprints {
	spec, err := json.Marshal(t.config.Spec)
	if err != nil {
		panic("fullbatch: spec does not encode: " + err.Error())
	}
	return checkpoint.Fingerprints{Config: t.config.Fingerprint(), Model: sha256.Sum256(spec), Shard: t.shard.Fingerprint}
}

// save writes a checkpoint: the parameters, the best ones, the optimiser and the position.
func (t *Trainer) save() error {
	if t.Checkpoints == nil {
		return nil
	}
	steps, moments := t.opt.State()
	head, err := json.Marshal(header{Position: t.at, Steps: steps})
	if err != nil {
		return err
	}
	s := &checkpoint.State{Fingerprints: t.fingerprints(), Header: head, F32: map[string][]float32{"slab": t.slab.Value, "best": t.best}}
	for i, m := range moments {
		s.F32[fmt.Sprintf("moment/%d", i)] = m
	}
	if err := t.Checkpoints.Save(uint64(t.at.Epoch)+1, s); err != nil {
		return err
	}
	if t.Observer.Saved != nil {
		t.Observer.Saved(t.at.Epoch)
	}
	return nil
}

// restore takes up the newest checkpoint, if there is one.
func (t *Trainer) restore() error {
	if t.Checkpoints == nil {
		return nil
	}
	s, err := t.Checkpoints.Latest(t.fingerprints())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var h header
	if err := json.Unmarshal(s.Header, &h); err != nil {
		return fmt.Errorf("checkpoint %d: header: %w", s.Seq, err)
	}
	if n := len(t.slab.Value); len(s.F32["slab"]) != n || len(s.F32["best"]) != n {
		return fmt.Errorf("checkpoint %d: %d parameters, %d best ones, want %d", s.Seq, len(s.F32["slab"]), len(s.F32["best"]), n)
	}
	var moments [][]float32
	for i := 0; s.F32[fmt.Sprintf("moment/%d", i)] != nil; i++ {
		moments = append(moments, s.F32[fmt.Sprintf("moment/%d", i)])
	}
	if err := t.opt.Restore(h.Steps, moments); err != nil {
		return fmt.Errorf("checkpoint %d: %w", s.Seq, err)
	}
	copy(t.slab.Value, s.F32["slab"])
	copy(t.best, s.F32["best"])
	t.at = h.Position
	if t.Observer.Restored != nil {
		t.Observer.Restored(t.at.Epoch)
	}
	return nil
}
