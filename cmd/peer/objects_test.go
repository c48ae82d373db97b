package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/cmd/peer/objects/gateway"
)

// TestObjects: three processes read their parts from object storage, are killed after a checkpoint, continue from what is
// stored, and make the model of one process on files.
func TestObjects(t *testing.T) {
	env := gateway.Start(t)
	for name, value := range env {
		t.Setenv(name, value)
	}
	dir, stored := t.TempDir(), filepath.Join(env["gateway"], "heddle")
	at := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("TMPDIR", dir)
	data := sites(t)
	must(t, "partition", "--data", data, "--parts", "5", "-o", at("parts"))
	if out := must(t, "partition", "--data", data, "--parts", "5", "-o", "s3://heddle/parts"); !strings.Contains(out, "s3://heddle/parts") {
		t.Errorf("the partition is told as %s", out)
	}
	if !bytes.Equal(contents(t, at("parts/part-4")), contents(t, filepath.Join(stored, "parts", "part-4"))) {
		t.Error("the stored part is another one")
	}
	settings := "mode: fullbatch\norder: fixed\nhidden: 8\nrounds: 60\n"
	for name, text := range map[string]string{"plan.yaml": settings + "carrier: tcp\ncheckpoint_every: 2\n", "settings.yaml": settings, "secret": strings.Repeat("0123456789abcdef", 2)} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	join := []string{"join", "-q", "--plan", at("plan.yaml"), "--secret", at("secret"), "--shard", "s3://heddle/parts", "--state", "s3://heddle/state", "-o", "s3://heddle/out"}
	all := launched(t, join...)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		lists, err := filepath.Glob(filepath.Join(stored, "state", "rank-*", "files.json"))
		if err != nil {
			t.Fatal(err)
		}
		ready := 0
		for _, path := range lists {
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("state-")) {
				ready++
			}
		}
		if ready == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d ranks have stored a state, must be 3", ready)
		}
	}
	for _, p := range all {
		p.Process.Kill()
		p.Wait()
	}
	for r, p := range launched(t, append(join, "--log-level", "info")...) {
		if err := p.Wait(); err != nil {
			t.Fatalf("rank %d: %v: %s", r, err, p.Stderr)
		}
		if text := fmt.Sprint(p.Stderr); !strings.Contains(text, "resumed from a checkpoint") {
			t.Errorf("rank %d does not say that it resumes: %s", r, text)
		}
	}
	must(t, "train", "--config", at("settings.yaml"), "--shards", at("parts"), "--peers", "3", "--transport", "memory", "-q", "-o", at("whole"))
	want := contents(t, at("whole/model.safetensors"))
	for r := range 3 {
		if !bytes.Equal(contents(t, filepath.Join(stored, "out", fmt.Sprintf("rank-%d", r), "model.safetensors")), want) {
			t.Errorf("rank %d made another model", r)
		}
	}
	if left, err := filepath.Glob(at("heddle-*")); err != nil || len(left) != 3 { // of those that were killed
		t.Errorf("copies that are left: %q (%v), must be 3", left, err)
	}
	refuse(t, 1, []string{"s3://heddle/none/manifest.json"}, "join", "--plan", at("plan.yaml"), "--shard", "s3://heddle/none", "--secret", at("secret"),
		"--rank", "0", "--ranks", "1", "--hosts", "a")
}
