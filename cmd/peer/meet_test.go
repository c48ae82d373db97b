package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const hospitalTables = "../../examples/hospitals/sites"

// TestMeet: sites make their parts from their own tables, and the parts form one partition that
// trains.
func TestMeet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string, more ...any) string { return filepath.Join(dir, fmt.Sprintf(name, more...)) }
	names := []string{"north", "south", "west"}
	args := []string{"plan", "--encoder", "pca:4", "-o", at("plan.yaml"), "--port", freePorts(t, 2)}
	for k, name := range names {
		id := strings.TrimSpace(must(t, "id", "--identity", at("%s.key", name)))
		if k < 2 { // the third dials out only
			id += "@127.0.0.1"
		}
		args = append(args, name+"="+id)
	}
	must(t, args...)
	meet := func(name string, more ...string) (int, string, string) {
		return call(t.Context(), append([]string{"meet", "--plan", at("plan.yaml"), "--identity", at("%s.key", name), "--nodes", filepath.Join(hospitalTables, name+"-patients.csv"),
			"--edges", filepath.Join(hospitalTables, name+"-contacts.csv"), "--source-column", "patient", "--target-column", "contact", "--target-site-column", "hospital",
			"--label-column", "readmitted", "--wait", "30s"}, more...)...)
	}
	type end struct {
		exit        int
		out, errors string
	}
	all := func(more func(name string) []string) map[string]end {
		ends, done := map[string]end{}, make(chan func(), len(names))
		for _, name := range names {
			go func() {
				var e end
				e.exit, e.out, e.errors = meet(name, more(name)...)
				done <- func() { ends[name] = e }
			}()
		}
		for range names {
			(<-done)()
		}
		return ends
	}
	for name, e := range all(func(name string) []string { return []string{"--out", at("%s", name), "--audit", at("%s.log", name)} }) {
		if e.exit != 0 || !strings.Contains(e.out, "of 360 nodes") {
			t.Fatalf("%s: exit %d\n%s%s", name, e.exit, e.out, e.errors)
		}
		must(t, "audit", "verify", at("%s.log", name))
		_, facts, _ := strings.Cut(e.out, "-patients.csv: ")
		facts, _, _ = strings.Cut(facts, "\n  "+map[bool]string{true: "south", false: "north"}[name == "north"]+": ")
		part := at("%s/part-%d", name, slices.Index(names, name))
		moved := filepath.Join(t.TempDir(), filepath.Base(part)) // without import.json
		for from, to := range map[string]string{part: moved, at("%s/manifest.json", name): filepath.Join(filepath.Dir(moved), "manifest.json")} {
			if err := os.WriteFile(to, contents(t, from), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{part, at("%s", name), moved} {
			if text := must(t, "inspect", path); !strings.Contains(text, facts) || !strings.Contains(facts, "nodes of each site: north 157, south 122, west 81") {
				t.Errorf("%s: inspect says\n%s\nmeet said\n%s", name, text, facts)
			}
		}
	}
	gather(t, at("parts"), at("north"), at("south"), at("west"))
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "--preset", "frugal", "--seed", "1", "-q", "--out", at("together"), "--json", at("together/result.json"))
	if r := figures(t, at("together/result.json")); r.Bytes.Halo == 0 || !(*r.TestAccuracy > 0.8) {
		t.Errorf("accuracy %v with %d bytes of halo rows", *r.TestAccuracy, r.Bytes.Halo)
	}

	// A site finds faults of its own tables before it waits for the others.
	for _, wrong := range [][]string{{"--nodes", at("gone.csv")}, {"--edges", at("gone.csv")}, {"--target-column", "gone.csv"}, {"--out", at("west")}} {
		if exit, _, errors := meet("west", append([]string{"--out", at("never")}, wrong...)...); exit != 2 || !strings.Contains(errors, wrong[1]) || strings.Contains(errors, "waiting") {
			t.Errorf("%v: exit %d, %s", wrong, exit, errors)
		}
	}

	// A policy bounds whose texts are told.
	if err := os.WriteFile(at("policy.yaml"), []byte("federation: f\nencoders: [raw]\nlayer_outputs: [hidden]\nsolvers: [ridge]\nmin_peers: 2\ncategories: [sex]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, _, errors := meet("west", "--out", at("never"), "--policy", at("policy.yaml")); exit != 2 || !strings.Contains(errors, `policy.yaml: policy.categories: the texts of column "ward" must not leave this site`) {
		t.Errorf("exit %d, %s", exit, errors)
	}

	// Only the site at fault gets the details; the others learn which site it is.
	for name, e := range all(func(name string) []string {
		more := []string{"--out", at("%s-again", name)}
		if name == "west" {
			contacts := append(contents(t, filepath.Join(hospitalTables, "west-contacts.csv")), "p007,nobody,north\n"...)
			if err := os.WriteFile(at("contacts.csv"), contacts, 0o600); err != nil {
				t.Error(err)
			}
			more = append(more, "--edges", at("contacts.csv"))
		}
		return more
	}) {
		want := "west"
		if name == "west" {
			want = `contacts.csv: line 194: north has no node "nobody"`
		}
		if e.exit != map[bool]int{true: 2, false: 1}[name == "west"] || !strings.Contains(e.errors, want) {
			t.Errorf("%s: exit %d, %s, must be %s", name, e.exit, e.errors, want)
		}
	}
}

// gather copies the parts that peers wrote to separate directories into one. All have the same
// manifest.
func gather(t *testing.T, to string, dirs ...string) {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := contents(t, filepath.Join(dirs[0], "manifest.json"))
	for k, dir := range dirs {
		if !bytes.Equal(contents(t, filepath.Join(dir, "manifest.json")), manifest) {
			t.Errorf("%s has another manifest", dir)
		}
		for _, file := range []string{fmt.Sprintf("part-%d", k), "manifest.json"} {
			if err := os.WriteFile(filepath.Join(to, file), contents(t, filepath.Join(dir, file)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
