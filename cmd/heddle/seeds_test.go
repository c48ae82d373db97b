package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// interruptedAt runs the program until state has checkpoints in this many directories, and returns what it printed.
func interruptedAt(t *testing.T, state string, stores int, args ...string) (exit int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		for ctx.Err() == nil {
			if held, _ := checkpoint.Find(state); len(held) >= stores {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	exit, _, stderr = call(ctx, args...)
	cancel()
	<-looking
	return exit, stderr
}

// TestSeeds: each of --seeds is the run by itself with the next seed; the model is that of the best validation. An
// interrupted run of several continues.
func TestSeeds(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	args := []string{"train", "--data", data, "--transport", "memory", "--peers", "3", "-q",
		"--method", "layer-wise", "--encoder", "pca:16", "--hidden", "16", "--rounds", "60", "--checkpoint-every", "10"}
	at := func(name string) string { return filepath.Join(dir, name) }
	text := must(t, append(args, "--seeds", "3", "--seed", "4", "-o", at("all"))...)
	all := figures(t, at("all/result.json"))
	if len(all.Runs) != 3 {
		t.Fatalf("%d runs, must be 3", len(all.Runs))
	}
	sum, best := 0.0, 0
	for k, r := range all.Runs {
		one := at("one-" + string(rune('0'+k)))
		must(t, append(args, "--seed", string(rune('4'+k)), "-o", one)...)
		f := figures(t, filepath.Join(one, "result.json"))
		if *r.Test != *f.Test || *r.Val != *f.Val || r.Seed != uint64(4+k) ||
			r.Bytes != f.Bytes.Halo+f.Bytes.Reduce+f.Bytes.Control {
			t.Errorf("run %d: %+v, by itself %v, %v", k, r, *f.Test, *f.Val)
		}
		if f.Runs != nil || f.TestRuns != nil {
			t.Error("one run has no runs")
		}
		sum += *r.Test
		if *r.Val > *all.Runs[best].Val {
			best = k
		}
		if r.Chosen && !bytes.Equal(contents(t, filepath.Join(one, "model.safetensors")),
			contents(t, at("all/model.safetensors"))) {
			t.Error("the model must be that of the chosen run")
		}
	}
	if !all.Runs[best].Chosen || all.Seed != all.Runs[best].Seed || *all.Test != *all.Runs[best].Test {
		t.Errorf("run %d validates best; chosen: %+v", best, all.Runs)
	}
	if math.Abs(*all.TestRuns.Mean-sum/3) > 1e-12 || *all.TestRuns.Deviation < 0 {
		t.Errorf("mean %v, must be %v", *all.TestRuns.Mean, sum/3)
	}
	if !strings.Contains(text, "mean ± deviation") || !strings.Contains(text, "validates best") ||
		!strings.Contains(string(contents(t, at("all/report.html"))), "mean ± deviation") {
		t.Errorf("output and report must have the runs:\n%s", text)
	}

	broken := append(args, "--seeds", "3", "--seed", "4", "-o", at("broken"))
	if exit, stderr := interruptedAt(t, at("broken/checkpoints"), 4, broken...); exit != 1 ||
		!strings.Contains(stderr, "--resume") {
		t.Fatalf("exit %d, %s", exit, stderr)
	}
	said := must(t, "inspect", at("broken"))
	for _, want := range []string{"interrupted run", "heddle train --config " + at("broken/checkpoints/run.yaml") +
		" --resume", "seed-4", "peer-2", "stage"} {
		if !strings.Contains(said, want) {
			t.Errorf("inspect must say %q:\n%s", want, said)
		}
	}
	for more, want := range map[string]string{"--lr=0.5": "lr is 0.5, and was 0.01",
		"--seeds=1": "seeds is 1, and was 3"} {
		if exit, _, stderr := call(t.Context(), append(broken, "--resume", more)...); exit != 2 ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s", more, exit, stderr)
		}
	}
	must(t, "train", "--config", at("broken/checkpoints/run.yaml"), "--resume", "-q")
	if !bytes.Equal(contents(t, at("broken/model.safetensors")), contents(t, at("all/model.safetensors"))) {
		t.Error("an interrupted run of several seeds ends with another model")
	}
	if _, err := os.Stat(at("broken/checkpoints")); err == nil {
		t.Error("checkpoints are left after the end")
	}
}

// TestNextSplits: with several splits each run takes the next one.
func TestNextSplits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := twoSplits(t)
	must(t, "train", "--data", data, "--split", "1", "--seeds", "2", "--transport", "memory", "-q", "-o", dir)
	got := figures(t, filepath.Join(dir, "result.json")).Runs
	if len(got) != 2 || got[0].Split != 1 || got[1].Split != 0 {
		t.Errorf("splits: %+v", got)
	}
	for want, args := range map[string][]string{
		"--seeds must be 1 to 1000 (got 0)": {"--seeds", "0"},
		"split must be 0 to 1 (got 2)":      {"--seeds", "2", "--split", "2"},
	} {
		if exit, _, stderr := call(t.Context(), append([]string{"train", "--data", data, "-o", t.TempDir()},
			args...)...); exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s", args, exit, stderr)
		}
	}
}

// twoSplits writes the data of sites with a second split, in which each node is what the one before it was.
func twoSplits(t *testing.T) string {
	t.Helper()
	dir := sites(t)
	path := filepath.Join(dir, "graph.npz")
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		array, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, "_mask.npy") {
			head := 10 + int(binary.LittleEndian.Uint16(array[8:]))
			mask := array[head:]
			n := len(mask)
			text := fmt.Sprintf("{'descr': '|b1', 'fortran_order': False, 'shape': (%d, 2), }", n)
			text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
			array = binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text)))
			array = append(array, text...)
			for i, is := range mask {
				array = append(array, is, mask[(i+n-1)%n])
			}
		}
		out, err := w.Create(f.Name)
		if err == nil {
			_, err = out.Write(array)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
