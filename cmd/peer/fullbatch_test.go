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

// TestFullbatch: with order fixed all transports and numbers of processes give the same bits, and
// the curve is that of one peer with the complete graph.
func TestFullbatch(t *testing.T) {
	data, dir := sites(t), t.TempDir()
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	settings := []string{"--mode", "fullbatch", "--encoder", "raw", "--model", "gat", "--order", "fixed"}
	mustTrain(t, filepath.Join(dir, "memory"), slices.Concat(settings, []string{"--shards", parts, "--transport", "memory", "--fetch", "sar"})...)
	mustTrain(t, filepath.Join(dir, "quic"), slices.Concat(settings, []string{"--shards", parts, "--fetch", "sar", "--prefetch", "0"})...)
	processes(t, parts, 3, filepath.Join(dir, "join"), slices.Concat(settings, []string{"--fetch", "sar"})...)
	mustTrain(t, filepath.Join(dir, "alone"), "--mode", "standalone", "--encoder", "raw", "--model", "gat", "--data", data)

	want, first := contents(t, filepath.Join(dir, "memory", "model.safetensors")), figures(t, filepath.Join(dir, "memory", "result.json"))
	alone := figures(t, filepath.Join(dir, "alone", "result.json"))
	for _, name := range []string{"quic", "join-0", "join-1", "join-2"} {
		if !bytes.Equal(contents(t, filepath.Join(dir, name, "model.safetensors")), want) {
			t.Errorf("%s: another model than in memory", name)
		}
	}
	equal(t, "epochs", len(first.Loss), len(alone.Loss))
	for i, loss := range first.Loss {
		if d := math.Abs(*loss - *alone.Loss[i]); d > 1e-4**loss {
			t.Errorf("epoch %d: loss %v, of one peer %v", i, *loss, *alone.Loss[i])
		}
	}
	equal(t, "test accuracy", *first.TestAccuracy, *alone.TestAccuracy)
	if first.Bytes.Halo == 0 || first.Bytes.Reduce == 0 {
		t.Errorf("%d bytes of rows and %d of sums were counted", first.Bytes.Halo, first.Bytes.Reduce)
	}
	predicts(t, filepath.Join(dir, "memory"), "--data", data)
}

// TestBoundaryByTransport: the sampled boundary does not depend on the transport, so the mean and
// the bytes that fullbatch's tests check in memory hold over QUIC and TCP.
func TestBoundaryByTransport(t *testing.T) {
	data, dir := sites(t), t.TempDir()
	for _, boundary := range []string{"sample:0.3"} {
		var want []byte
		for _, way := range [][]string{{"--transport", "memory"}, {"--carrier", "quic"}, {"--carrier", "tcp"}} {
			out := filepath.Join(dir, way[1]+boundary[:5])
			mustTrain(t, out, slices.Concat([]string{"--data", data, "--peers", "3", "--mode", "fullbatch", "--encoder", "raw", "--order", "fixed", "--boundary", boundary, "--rows", "bf16"}, way)...)
			if got := contents(t, filepath.Join(out, "model.safetensors")); want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s over %s: another model than in memory", boundary, way[1])
			}
		}
	}
}

// TestFullbatchStay: of two peers with three parts, the one with two parts is killed and loses its
// checkpoints. The other waits; when the failed one is back it fetches the state of the run, and
// both continue to the model of an undisturbed run.
func TestFullbatchStay(t *testing.T) {
	c := newCrew(t, 2)
	parts := filepath.Join(c.dir, "three")
	must(t, "partition", "--data", sites(t), "--parts", "3", "-o", parts)
	settings := []string{"--mode", "fullbatch", "--order", "fixed", "--rounds", "400", "--checkpoint-every", "20"}
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
		p := process(t, "join", "--plan", plan, "--shard", part(1)+","+part(2), "--identity", c.key(1), "-q", "--wait", "20s",
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
	must(t, slices.Concat([]string{"train", "--shards", parts, "--peers", "2", "--encoder", "raw", "--hidden", "8", "--transport", "memory", "-q", "-o", whole}, settings)...)
	want := contents(t, filepath.Join(whole, "model.safetensors"))
	for r := range 2 {
		if !bytes.Equal(contents(t, filepath.Join(c.dir, fmt.Sprintf("out-%d", r), "model.safetensors")), want) {
			t.Errorf("peer %d made another model than a run without faults", r)
		}
	}
}
