package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// TestArm: two programs for arm64, under qemu, and one for this machine that listens train together through a relay,
// and end with the same model.
func TestArm(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: building for arm64 takes a minute; HEDDLE_LONG=1 does it")
	}
	if _, err := exec.LookPath("qemu-aarch64-static"); err != nil {
		t.Skip("SKIPPED: no qemu-aarch64-static")
	}
	dir := t.TempDir()
	for _, arch := range []string{"arm64", "amd64"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, arch), ".")
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, out)
		}
	}
	program := func(r int, args ...string) *exec.Cmd {
		args = append([]string{"-dir", filepath.Join(dir, fmt.Sprint(r))}, args...)
		if r == 2 {
			return exec.Command(filepath.Join(dir, "amd64"), args...)
		}
		return exec.Command("qemu-aarch64-static", append([]string{filepath.Join(dir, "arm64")}, args...)...)
	}
	at := fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", testenv.FreePorts(t, 1))
	var members []identity.Member
	// One closed form without random features: with them the systems are so badly conditioned here that processors
	// which round differently find weights further apart than peers take from one another.
	text := "class_means: {experimental: {random_features: 0}}\nmembers:\n"
	for r, name := range []string{"phone-a", "phone-b", "site"} {
		id, err := program(r).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := identity.Member{Name: name, ID: strings.TrimSpace(string(id))}
		if r == 2 {
			m.Addrs = []string{at}
		}
		members = append(members, m)
		text += fmt.Sprintf("- name: %s\n  id: %s\n  addresses: [%s]\n", m.Name, m.ID, strings.Join(m.Addrs, ", "))
	}
	key, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	relay, err := node.ListenRelay(node.Config{Identity: key, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}},
		identity.Roster{Members: members}, node.RelayLimits{})
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte(text+"relays: ["+strings.Join(relay.Addrs(), ", ")+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var outs [3]bytes.Buffer
	var all [3]*exec.Cmd
	for r := range all {
		all[r] = program(r, "-plan", plan)
		if r == 2 {
			all[r].Args = append(all[r].Args, "-listen", at, "-nodes", "400")
		}
		all[r].Stdout, all[r].Stderr = &outs[r], &outs[r]
		if err := all[r].Start(); err != nil {
			t.Fatal(err)
		}
	}
	var models [3][]byte
	for r, c := range all {
		if err := c.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", members[r].Name, err, outs[r].String())
		}
		t.Logf("%s: %s", members[r].Name, outs[r].String())
		if models[r], err = os.ReadFile(filepath.Join(dir, fmt.Sprint(r), "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	for r := range models {
		if !bytes.Equal(models[r], models[2]) {
			t.Errorf("%s has another model than the site", members[r].Name)
		}
	}
}
