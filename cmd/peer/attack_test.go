package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// TestAttack: the page says what was tried, of a simulated run of a data set and of a site's own part and plan.
func TestAttack(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	text := must(t, "attack", "--data", data, "--policy", "by-column", "--encoder", "pca:16", "--rows", "3")
	for _, want := range []string{"site 1 of 3 is attacked by site 0", "encoder pca:16", "rows of features in rows", "membership, by the margin", "training labels of a site"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page must have %q (got\n%s)", want, text)
		}
	}
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	written := must(t, "plan", "--preset", "frugal", "a=12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo@127.0.0.1",
		"b=12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X@127.0.0.1", "c=12D3KooWRbz64XYCgHCphqZHJNU8zKoyE3d2sZYUAJPfBKGBVMbe@127.0.0.1")
	plan := write(t, written)
	text = must(t, "attack", "--plan", plan, "--shard", filepath.Join(parts, "part-1"), "--rows", "3")
	if !strings.Contains(text, "part 1: site 1 of 3") || !strings.Contains(text, "encoder classes") {
		t.Errorf("the page must be of three sites of part 1 (got\n%s)", text)
	}
	for want, args := range map[string][]string{
		"--plan and --shard must be given together": {"--plan", plan},
		"--plan has all settings":                   {"--plan", plan, "--shard", filepath.Join(parts, "part-1"), "--preset", "frugal"},
		"rows must be at least 1":                   {"--data", data, "--rows", "0"},
		"peers must be at least 2":                  {"--data", data, "--peers", "1", "--policy", "random"},
	} {
		if exit, _, stderr := call(t.Context(), append([]string{"attack"}, args...)...); exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: must be refused by %q (got exit %d, %s)", args, want, exit, stderr)
		}
	}
}

// TestJoinWarns: a site that joins is warned of what our own attack recovers of its rows.
func TestJoinWarns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, "partition", "--data", sites(t), "--policy", "by-column", "-o", dir)
	own, closer, err := shard.ReadShard(filepath.Join(dir, "part-1"))
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	for settings, want := range map[string]string{"encoder: raw": "level=WARN", "preset: frugal": "own attack on the rows that this site sends: an attacker recovers"} {
		p, _, err := heddle.ReadPlan([]byte(settings), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Members = make([]heddle.Member, own.Parts)
		var out bytes.Buffer
		w := cli.NewWatch(&out, false)
		if err := warnOfRows(t.Context(), *p, own, w); err != nil {
			t.Fatal(err)
		}
		w.End()
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "rows exactly") {
			t.Errorf("%s: the warning must have %q (got %q)", settings, want, out.String())
		}
	}
}
