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
)

// TestMinibatch: all transports, numbers of processes and sizes of groups give the same bits, the curve is that of one peer
// with the complete graph, and predict computes the model's predictions again.
func TestMinibatch(t *testing.T) {
	data, dir := sites(t), t.TempDir()
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	settings := []string{"--mode", "minibatch", "--encoder", "raw", "--model", "sage", "--rounds", "30", "--batch-size", "32", "--fanouts", "4,5"}
	mustTrain(t, filepath.Join(dir, "memory"), slices.Concat(settings, []string{"--shards", parts, "--transport", "memory"})...)
	mustTrain(t, filepath.Join(dir, "quic"), slices.Concat(settings, []string{"--shards", parts})...)
	processes(t, parts, 3, filepath.Join(dir, "join"), settings...)
	mustTrain(t, filepath.Join(dir, "groups"), slices.Concat(settings, []string{"--shards", parts, "--transport", "memory", "--group", "16"})...)
	mustTrain(t, filepath.Join(dir, "alone"), slices.Concat(settings, []string{"--data", data, "--peers", "1"})...)

	tensors := func(name string) []byte { // the header has the plan in it
		b := contents(t, filepath.Join(dir, name, "model.safetensors"))
		return b[bytes.LastIndexByte(b, '}'):]
	}
	want, first := contents(t, filepath.Join(dir, "memory", "model.safetensors")), figures(t, filepath.Join(dir, "memory", "result.json"))
	for _, name := range []string{"quic", "join-0", "join-1", "join-2"} {
		if !bytes.Equal(contents(t, filepath.Join(dir, name, "model.safetensors")), want) {
			t.Errorf("%s: another model than in memory", name)
		}
	}
	if !bytes.Equal(tensors("groups"), tensors("memory")) {
		t.Error("groups of 16 batches: other parameters than in groups of 4")
	}
	alone := figures(t, filepath.Join(dir, "alone", "result.json"))
	equal(t, "epochs", len(first.Loss), len(alone.Loss))
	for i, loss := range first.Loss {
		if d := math.Abs(*loss - *alone.Loss[i]); d > 1e-3**loss {
			t.Errorf("epoch %d: loss %v, of one peer %v", i, *loss, *alone.Loss[i])
		}
	}
	if first.Bytes.Halo == 0 || first.Bytes.Reduce == 0 {
		t.Errorf("%d bytes of rows and %d of sums were counted", first.Bytes.Halo, first.Bytes.Reduce)
	}
	predicts(t, filepath.Join(dir, "memory"), "--data", data)
	predicts(t, filepath.Join(dir, "alone"), "--data", data)
}

// TestMinibatchStay: of two peers one is killed in the midst of a run and loses its checkpoints. The other waits; when the
// failed one is back it fetches the state of the run, and both continue to the model of an undisturbed run.
func TestMinibatchStay(t *testing.T) {
	c := newCrew(t, 2)
	parts := filepath.Join(c.dir, "two")
	must(t, "partition", "--data", sites(t), "--parts", "2", "-o", parts)
	settings := []string{"--mode", "minibatch", "--rounds", "150", "--batch-size", "32", "--checkpoint-every", "10"}
	plan := c.plan(t, c.members, slices.Concat(settings, []string{"--port", freePorts(t, 2), "--carrier", "tcp"})...)
	state := func(r, life int) string { return filepath.Join(c.dir, fmt.Sprintf("state-%d-%d", r, life)) }
	part := func(n int) string { return filepath.Join(parts, fmt.Sprintf("part-%d", n)) }
	type end struct {
		exit   int
		stderr string
	}
	stayed := make(chan end)
	go func() {
		args := slices.DeleteFunc(c.join(0, plan, "--shard", part(0), "--state", state(0, 0), "--rejoin", "1m"), func(s string) bool { return s == "-q" })
		exit, _, stderr := call(t.Context(), args...)
		stayed <- end{exit, stderr}
	}()
	for life := range 2 {
		p := process(t, "join", "--plan", plan, "--shard", part(1), "--identity", c.key(1), "-q", "--wait", "20s",
			"-o", filepath.Join(c.dir, "out-1"), "--state", state(1, life))
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
	must(t, slices.Concat([]string{"train", "--shards", parts, "--encoder", "raw", "--hidden", "8", "--transport", "memory", "-q", "-o", whole}, settings)...)
	want := contents(t, filepath.Join(whole, "model.safetensors"))
	for r := range 2 {
		if !bytes.Equal(contents(t, filepath.Join(c.dir, fmt.Sprintf("out-%d", r), "model.safetensors")), want) {
			t.Errorf("peer %d made another model than a run without faults", r)
		}
	}
}
