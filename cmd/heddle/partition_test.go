package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// ring writes a list of the edges of a ring of n nodes.
func ring(t *testing.T, n int) string {
	var b strings.Builder
	for v := range n {
		fmt.Fprintln(&b, v, (v+1)%n)
	}
	path := filepath.Join(t.TempDir(), "ring.el")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPartitionOfAListOfEdges(t *testing.T) {
	t.Parallel()
	const n = 5000
	list, dir := ring(t, n), t.TempDir()
	out, page, stored := filepath.Join(dir, "parts"), filepath.Join(dir, "parts.html"), filepath.Join(dir, "ring.graph")
	must(t, "import", "--edges", list, "-o", stored)
	args := []string{"partition", "--data", stored, "--parts", "3", "--policy", "contiguous", "--memory", "1GiB",
		"--report", page, "-o", out}
	text := must(t, args...)
	for _, want := range []string{"5000 nodes, 5000 edges", "an exchange is 6 rows", "write: ",
		"1 rows from part-0 to part-1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if again := must(t, "inspect", out); !strings.HasPrefix(text, again) {
		t.Errorf("inspect says\n%s, partition said\n%s", again, text)
	}
	b, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(b), "<svg") ||
		!strings.Contains(string(b), "ring in 3 parts by contiguous, seed 1") {
		t.Errorf("%v, %s", err, b)
	}

	// The graph in memory gives the same partition.
	var src, dst []int32
	for v := range int32(n) {
		src, dst = append(src, v), append(dst, (v+1)%n)
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(&graph.Graph{Name: "ring", Adj: adj, Split: make([]graph.Split, n)},
		partition.Contiguous{}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shard.ReadManifest(out)
	if want := shard.Describe(shards, m.Meta); err != nil || m.Fingerprint != want.Fingerprint {
		t.Errorf("%v: fingerprint %s, in memory %s", err, m.Fingerprint, want.Fingerprint)
	}
}

func TestPartitionStopped(t *testing.T) {
	t.Parallel()
	list, dir := ring(t, 5000), t.TempDir()
	out := filepath.Join(dir, "parts")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stop := func(args ...string) {
		t.Helper()
		var stdout, stderr strings.Builder
		if exit := program.Run(ctx, args, &stdout, &stderr); exit != 1 ||
			!strings.Contains(stderr.String(), "to begin again, repeat the command") {
			t.Fatalf("exit %d: %s", exit, stderr.String())
		}
	}
	stored := filepath.Join(dir, "ring.graph")
	stop("import", "--edges", list, "-o", stored)
	must(t, "import", "--edges", list, "-o", stored)
	args := []string{"partition", "--data", stored, "--parts", "3", "--policy", "restream:3", "-o", out, "-q"}
	stop(args...)
	if _, err := os.Stat(out + ".incomplete"); err == nil {
		t.Error("the incomplete directory is left")
	}
	must(t, args...)
	must(t, "inspect", filepath.Join(out, "part-2"))
}

func TestPartitionDry(t *testing.T) {
	t.Parallel()
	text := must(t, "partition", "--data", sites(t), "--parts", "2", "--policy", "multilevel", "--objective", "cut",
		"--cap", "train=1.2", "--capacity", "1,2", "--dry")
	contains(t, text, "in 2 parts by multilevel", "slowest worker of a cluster: part-1, with 1.")
}

func TestPartitionRefuses(t *testing.T) {
	t.Parallel()
	data, list, out := sites(t), filepath.Join(t.TempDir(), "ring.graph"), filepath.Join(t.TempDir(), "x")
	must(t, "import", "--edges", ring(t, 100), "-o", list)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--data D", []string{"--out", "--dry"}},
		{"--data D -o X --policy fennel --cap relations=1.2", []string{"edges have no types"}},
		{"--data D -o X --parts 0", []string{"parts must be at least 1 (got 0)"}},
		{"--data D -o X --parts 999999 --policy fennel", []string{"parts must be 1 to", "(got 999999)"}},
		{"--data D -o X --cap nodes=1", []string{`(got "nodes")`}},
		{"--data D -o X --cap edges=0.5", []string{"edges=0.5"}},
		{"--data D -o X --cap edges=x", []string{"edges=x"}},
		{"--data D -o X --objective least", []string{`"least"`}},
		{"--data D -o X --capacity 1,2 --parts 3 --policy fennel",
			[]string{"capacity must be given for each of 3 parts (got 2)"}},
		{"--data D -o X --capacity 1,-2 --parts 2 --policy fennel",
			[]string{"capacity of part 1 must be a positive number (got -2)"}},
		{"--data D -o X --memory 1GiB", []string{"--memory", "read into memory"}},
		{"--data L -o X --memory 2gigs", []string{"2gigs"}},
		{"--data L -o X --memory 1MiB", []string{"MiB of memory, with 1 allowed"}},
		{"--data L --dry", []string{"--out"}},
		{"--data L -o X --cluster-order", []string{"--cluster-order applies only to graphs that are read into memory"}},
	} {
		args := strings.Fields(strings.NewReplacer("D", data, "L ", list+" ", "X", out).Replace("partition " + c.args))
		refuse(t, 2, c.want, args...)
	}
}

// TestInspectRelations: heddle inspect names the relations of a typed graph and of its parts, whose
// paths may contain commas.
func TestInspectRelations(t *testing.T) {
	t.Parallel()
	data, parts := typedSites(t), filepath.Join(t.TempDir(), "a,b")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	part := func(p int) string { return filepath.Join(parts, fmt.Sprintf("part-%d", p)) }
	for _, path := range []string{data, part(1)} {
		if text := must(t, "inspect", path); !strings.Contains(text, "relations (edges of each): even (") ||
			!strings.Contains(text, ", odd (") {
			t.Errorf("%s:\n%s", path, text)
		}
	}
	s, files, err := cli.ReadParts(part(1)+","+part(2), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	one, file, err := shard.ReadShard(part(1))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if s.Owned <= one.Owned {
		t.Errorf("%d nodes of two parts, %d of the first", s.Owned, one.Owned)
	}
}
