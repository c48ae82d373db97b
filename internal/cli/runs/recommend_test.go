package runs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// TestRecommend: the file has the best new links of the nodes that were named, and what cannot be is refused.
func TestRecommend(t *testing.T) {
	g := graphtest.Communities(40, 2, 4, 0.9, rng.New(1))
	g.Labels.Names = []string{"names", "of", "classes", "that", "links", "have", "not"}[:g.Labels.Classes]
	p, err := plan.Read([]byte("method: full-batch\npeers: 1\ntask: links\nfull_batch: {hidden: 4, rounds: 5, "+
		"link_holdout: [0.1, 0.1]}"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := heddle.Train(t.Context(), g, *p)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	model := filepath.Join(dir, "model.safetensors")
	if err := r.Save(model); err != nil {
		t.Fatal(err)
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, policy, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := (cli.Output{}).Print(&text, r, shards); err != nil ||
		!strings.Contains(text.String(), "test links: MRR ") {
		t.Errorf("what is printed is %q (%v), must have the ranks of test links", text.String(), err)
	}
	parts := filepath.Join(dir, "parts")
	if _, err := shard.WriteDir(parts, shards, shard.Meta{}); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		c := newRecommend()
		out := new(bytes.Buffer)
		c.SetOut(out)
		c.SetErr(out)
		c.SetArgs(append([]string{"--model", model}, args...))
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	part := filepath.Join(parts, "part-0")
	file := filepath.Join(dir, "new.csv")
	if _, err := run("--shard", part, "--node", "7", "--node", "3", "--k", "2", "--out", file); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 5 || lines[0] != "node,relation,rank,other,score" || !strings.HasPrefix(lines[1], "7,,1,") ||
		!strings.HasPrefix(lines[4], "3,,2,") {
		t.Errorf("the file is %q, must have two links of 7, then of 3", lines)
	}
	arrays := filepath.Join(dir, "new.npz")
	if _, err := run("--shard", part, "--node", "7", "--node", "3", "--k", "2", "--out", arrays); err != nil {
		t.Fatal(err)
	}
	a, err := npy.Open(arrays)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	rank, _, err := npy.Read[int64](a, "rank", -1)
	score, _, err2 := npy.Read[float32](a, "score", -1)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for k, line := range lines[1:] {
		cells := strings.Split(line, ",")
		if cells[2] != fmt.Sprint(rank[k]) || cells[4] != fmt.Sprintf("%.4f", score[k]) {
			t.Errorf("line %d is %q, must be of rank %d and score %v as in %s", k+1, line, rank[k], score[k], arrays)
		}
	}
	for _, bad := range [][]string{{}, {"--shard", part, "--k", "0"}, {"--shard", part, "--node", "400"},
		{"--shard", part, "--type", "drug"}, {"--shard", part, "--relation", "takes"}} {
		if out, err := run(bad...); err == nil {
			t.Errorf("%q is accepted and prints %q, must be refused", bad, out)
		}
	}
}
