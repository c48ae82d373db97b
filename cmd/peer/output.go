package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle"
)

// result is the object of --json. Fields are only ever added.
type result struct {
	Mode         string   `json:"mode"`
	Model        string   `json:"model"`
	Encoder      string   `json:"encoder"`
	Dataset      string   `json:"dataset"`
	Peers        int      `json:"peers"`
	Seed         uint64   `json:"seed"`
	TestAccuracy *float64 `json:"test_accuracy"` // the metric named below, in [0, 1]; null: there is no test node
	ValAccuracy  *float64 `json:"val_accuracy"`
	Seconds      float64  `json:"seconds"` // in sessions, from the first connection to the last parameter
	Rounds       int      `json:"rounds"`
	Bytes        struct { // sent by the peers of this process together
		Halo    int64 `json:"halo"`
		Reduce  int64 `json:"reduce"`
		Control int64 `json:"control"`
		Wire    int64 `json:"wire"` // as the network carried them; 0 in memory
	} `json:"bytes"`
	PeakRSS []int64    `json:"peak_rss_bytes"` // of each process that wrote this: one
	Loss    []*float64 `json:"loss"`           // of each round, stage after stage

	Metric  string        `json:"metric"`
	Preset  string        `json:"preset,omitempty"`
	Stages  []stageResult `json:"stages"`
	Kernels string        `json:"kernels"`
	Links   []prediction  `json:"predicted,omitempty"` // how long the run takes over other connections

	Generations []generation `json:"generations,omitempty"` // of a run with min_peers: who went on, and where
	LostRows    []lostRows   `json:"lost_rows,omitempty"`   // what this peer did about rows of peers that were lost
	Shares      []share      `json:"shares,omitempty"`      // with straggler: adapt, how much local work each peer was given when that changed
}

type stageResult struct {
	Name      string   `json:"name"`
	BestRound int      `json:"best_round"`
	Rounds    int      `json:"rounds"`
	Val       *float64 `json:"val"`
	Test      *float64 `json:"test"`
}

// number is x for JSON, which has no NaN.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func resultOf(o *heddle.Result, s heddle.Plan, dataset string, peers int, kernels string) result {
	r := result{Mode: s.Mode, Model: s.Model, Encoder: s.Encoder.String(), Dataset: dataset, Peers: peers, Seed: s.Seed,
		TestAccuracy: number(o.Test), ValAccuracy: number(o.Val), Seconds: o.Seconds, Rounds: o.Rounds,
		Metric: string(o.Metric), Preset: s.Preset, Kernels: kernels, PeakRSS: []int64{}, Loss: []*float64{}, Links: predictions(o)}
	r.Generations, r.LostRows, r.Shares = historyOf(o, peers)
	sum := o.Total()
	r.Bytes.Halo, r.Bytes.Reduce, r.Bytes.Control, r.Bytes.Wire = sum.Halo, sum.Reduce, sum.Control, sum.Wire
	if peak := peakMemory(); peak > 0 {
		r.PeakRSS = append(r.PeakRSS, peak)
	}
	for _, st := range o.Stages {
		r.Stages = append(r.Stages, stageResult{st.Name, st.BestRound, len(st.Curve), number(st.Val), number(st.Test)})
		for _, p := range st.Curve {
			r.Loss = append(r.Loss, number(p.Loss))
		}
	}
	return r
}

// writeJSON writes v to path, whole or not at all.
func writeJSON(path string, v any) error {
	return writeWhole(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// writeWhole replaces path by what fill writes, whole or not at all, readable as the user's mask says.
func writeWhole(path string, fill func(io.Writer) error) (err error) {
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp)
		}
	}()
	b := bufio.NewWriter(f)
	if err := errors.Join(fill(b), b.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// writable finds out now whether path can be written at the end: a run must not be lost for it. Missing directories
// are made.
func writable(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return badInput{fmt.Errorf("%s is a directory, want a file to write", path)}
	}
	return writableDir(filepath.Dir(path))
}

func writableDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return badInput{fmt.Errorf("cannot write: %w", err)}
	}
	f, err := os.CreateTemp(dir, ".heddle-*")
	if err != nil {
		return badInput{fmt.Errorf("cannot write to %s: %w", dir, err)}
	}
	f.Close()
	return os.Remove(f.Name())
}
