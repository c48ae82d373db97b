package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestRevokedWhileRunning: while another peer waits for it, a peer is removed from the roster. The
// wait ends with the rule.
func TestRevokedWhileRunning(t *testing.T) {
	t.Parallel()
	f := found(t)
	done := make(chan string, 1)
	go func() {
		exit, _, stderr := call(t.Context(), append(f.join, "--wait", "1m")...)
		done <- fmt.Sprintf("exit %d: %s", exit, stderr)
	}()
	next := f.at("next.json")
	if err := os.WriteFile(next, contents(t, f.at("roster.json")), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "roster", "revoke", next, "south")
	for _, name := range []string{"north", "west"} {
		must(t, "roster", "sign", next, "--identity", f.at(name+".key"), "--trusted", f.at("trusted.json"))
	}
	deadline := time.Now().Add(30 * time.Second)
	for { // the run has begun when its log says so
		if text, _ := os.ReadFile(f.at("audit.jsonl")); strings.Contains(string(text), "began") ||
			time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, "roster", "verify", next, "--trusted", f.at("trusted.json"))
	if said := <-done; !strings.HasPrefix(said, "exit 1") || !strings.Contains(said, "south") ||
		!strings.Contains(said, "revoked in serial 2") {
		t.Errorf("the join that waited for a revoked peer: %s", said)
	}
}

// TestRelayedRun: two peers that only dial out train over the federation's relay, and the doctor
// sees it.
func TestRelayedRun(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	at := func(name string) string { return filepath.Join(c.dir, name) }
	post := strings.TrimSpace(must(t, "init", "--identity", at("post.key")))
	address := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/wss", testenv.FreePorts(t, 2))
	must(t, append([]string{"plan", "--federation", "pair", "-o", at("roster.json")}, c.members...)...)
	must(t, "roster", "add", at("roster.json"), "post="+post, "--role", "relay", "--address", address)
	for r := range 2 {
		must(t, "roster", "sign", at("roster.json"), "--identity", c.key(r), "--trusted", at("trusted.json"))
	}
	s, err := admission.ReadFile[admission.Roster](at("roster.json"))
	if err != nil {
		t.Fatal(err)
	}
	must(t, "roster", "verify", at("roster.json"), "--trusted", at("trusted.json"), "--fingerprint",
		s.Body.Fingerprint())
	refuse(t, 2, []string{"roster.role", "trainer"}, "relay", "--roster", at("roster.json"), "--trusted",
		at("trusted.json"), "--identity", c.key(0))

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan string, 1)
	go func() {
		exit, _, stderr := call(ctx, "relay", "--roster", at("roster.json"), "--trusted", at("trusted.json"),
			"--identity", at("post.key"))
		served <- fmt.Sprintf("exit %d: %s", exit, stderr)
	}()
	plan := at("plan.yaml")
	must(t, append([]string{"plan", "-o", plan, "--method", "layer-wise", "--encoder", "raw", "--hidden", "8",
		"--rounds", "4", "--carrier", "ws", "--relay", address + "/p2p/" + post}, c.members...)...)
	other := make(chan string, 1)
	go func() {
		exit, _, stderr := call(t.Context(), c.join(1, plan)...)
		other <- fmt.Sprintf("exit %d: %s", exit, stderr)
	}()
	must(t, c.join(0, plan)...)
	if said := <-other; !strings.HasPrefix(said, "exit 0") {
		t.Errorf("the other peer: %s", said)
	}
	exit, stdout, _ := call(t.Context(), "doctor", "--plan", plan, "--identity", c.key(0), "--state", at("state"),
		"--shard", filepath.Join(c.parts, "part-0"), "--wait", "1s")
	for _, want := range []string{"reached  relay", "FAULT not site-1", "join or doctor", "fsync", "the shard has"} {
		if exit != 1 || !strings.Contains(stdout, want) {
			t.Errorf("doctor, exit %d, lacks %q:\n%s", exit, want, stdout)
		}
	}
	stop()
	if said := <-served; !strings.HasPrefix(said, "exit 0") || !strings.Contains(said, "pair") {
		t.Errorf("the relay: %s", said)
	}
}

// TestBoundsRefused: impossible bounds are refused by name.
func TestBoundsRefused(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	refuse(t, 2, []string{"peer_timeout must be at least 1s and at most 10m (got 1ms)"},
		append([]string{"plan", "--peer-timeout", "1ms"}, c.members...)...)
	refuse(t, 2, []string{"the limit of what is received must be at least 0 bytes a second", "got -1"},
		c.join(0, c.plan(t, c.members), "--receive-limit", "-1")...)
}
