package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// everyWay trains by settings over each transport and number of processes, with quic only over QUIC, and by `alone` at
// one peer with the complete graph. All ways must give the same bits, and one peer the same losses within a relative
// tolerance. It returns the data, their parts, and the folder of the runs: "memory" is one of them.
func everyWay(t *testing.T, settings, quic, alone []string, tolerance float64) (data, parts, dir string) {
	t.Helper()
	data, dir = sites(t), t.TempDir()
	parts = filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	mustTrain(t, filepath.Join(dir, "memory"),
		slices.Concat(settings, []string{"--shards", parts, "--transport", "memory"})...)
	mustTrain(t, filepath.Join(dir, "quic"), slices.Concat(settings, quic, []string{"--shards", parts})...)
	processes(t, parts, 3, filepath.Join(dir, "join"), settings...)
	mustTrain(t, filepath.Join(dir, "alone"), slices.Concat(alone, []string{"--data", data})...)

	want, first := contents(t, filepath.Join(dir, "memory", "model.safetensors")),
		figures(t, filepath.Join(dir, "memory", "result.json"))
	for _, name := range []string{"quic", "join-0", "join-1", "join-2"} {
		if !bytes.Equal(contents(t, filepath.Join(dir, name, "model.safetensors")), want) {
			t.Errorf("%s: another model than in memory", name)
		}
	}
	one := figures(t, filepath.Join(dir, "alone", "result.json"))
	equal(t, "epochs", len(first.Loss), len(one.Loss))
	for i, loss := range first.Loss {
		if d := math.Abs(*loss - *one.Loss[i]); d > tolerance**loss {
			t.Errorf("epoch %d: loss %v, of one peer %v", i, *loss, *one.Loss[i])
		}
	}
	if first.Bytes.Halo == 0 || first.Bytes.Reduce == 0 {
		t.Errorf("%d bytes of rows and %d of sums were counted", first.Bytes.Halo, first.Bytes.Reduce)
	}
	predicts(t, filepath.Join(dir, "memory"), "--data", data)
	return data, parts, dir
}

// TestFullbatch: with order fixed all transports and numbers of processes give the same bits, and
// the curve is that of one peer with the complete graph.
func TestFullbatch(t *testing.T) {
	t.Parallel()
	settings := []string{"--method", "full-batch", "--encoder", "raw", "--model", "gat", "--order", "fixed", "--fetch",
		"sar"}
	_, _, dir := everyWay(t, settings, []string{"--prefetch", "0"},
		[]string{"--method", "full-batch", "--peers", "1", "--encoder", "raw", "--model", "gat"}, 1e-4)
	first, alone := figures(t, filepath.Join(dir, "memory", "result.json")),
		figures(t, filepath.Join(dir, "alone", "result.json"))
	equal(t, "test accuracy", *first.Test, *alone.Test)
}

// stays runs two peers with the given number of parts, all except the first at the second peer. That one is killed in
// the middle of a run and loses its checkpoints, which both write every few rounds. The other waits; when the failed
// one is back it fetches the state of the run, and both must continue to the model of an undisturbed run.
func stays(t *testing.T, parts int, every string, settings ...string) {
	t.Helper()
	c := newCrew(t, 2)
	c.own = []string{"--checkpoint-every", every}
	folder := filepath.Join(c.dir, "cut")
	must(t, "partition", "--data", sites(t), "--parts", fmt.Sprint(parts), "-o", folder)
	plan := c.plan(t, c.members,
		slices.Concat(settings, []string{"--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--carrier", "tcp"})...)
	state := func(r, life int) string { return filepath.Join(c.dir, fmt.Sprintf("state-%d-%d", r, life)) }
	var of []string
	for n := range parts {
		of = append(of, filepath.Join(folder, fmt.Sprintf("part-%d", n)))
	}
	type end struct {
		exit   int
		stderr string
	}
	stayed := make(chan end)
	go func() {
		args := slices.DeleteFunc(c.join(0, plan, "--shard", of[0], "--state", state(0, 0), "--rejoin", "1m"),
			func(s string) bool { return s == "-q" })
		exit, _, stderr := call(t.Context(), args...)
		stayed <- end{exit, stderr}
	}()
	for life := range 2 {
		p := process(t, "join", "--plan", plan, "--shard", strings.Join(of[1:], ","), "--identity", c.key(1), "-q",
			"--wait", "20s", "-o", filepath.Join(c.dir, "out-1"), "--state", state(1, life), "--checkpoint-every",
			every)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if life == 1 {
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			break
		}
		for begun := time.Now(); len(checkpoints(t, state(1, 0))) == 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatal("no checkpoint was left")
			}
		}
		p.Process.Kill()
		p.Wait()
		if err := os.RemoveAll(state(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if e := <-stayed; e.exit != 0 || strings.Count(e.stderr, "a peer failed") != 1 {
		t.Fatalf("the peer that stayed: exit %d: %s", e.exit, e.stderr)
	}
	whole := filepath.Join(c.dir, "whole")
	must(t, slices.Concat([]string{"train", "--shards", folder, "--peers", "2", "--hidden", "8", "--transport",
		"memory", "-q", "-o", whole}, settings)...)
	want := contents(t, filepath.Join(whole, "model.safetensors"))
	for r := range 2 {
		if !bytes.Equal(contents(t, filepath.Join(c.dir, fmt.Sprintf("out-%d", r), "model.safetensors")), want) {
			t.Errorf("peer %d made another model than a run without faults", r)
		}
	}
}

// TestFullbatchStay: a peer with two of three parts may fail.
func TestFullbatchStay(t *testing.T) {
	t.Parallel()
	stays(t, 3, "20", "--method", "full-batch", "--order", "fixed", "--rounds", "400")
}
