package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
)

const dglData = "../../internal/graph/dgl/testdata/"

// TestDGL makes shards of DGL's partition, trains on them, and writes them back.
func TestDGL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"metis-4", "typed-random-2"} {
		parts, back := filepath.Join(dir, name), filepath.Join(dir, name+"-back")
		text := must(t, "import", "--dgl", dglData+name, "-o", parts)
		if !strings.Contains(text, "by dgl ") {
			t.Errorf("import said %q", text)
		}
		must(t, "inspect", parts)
		mustTrain(t, filepath.Join(dir, "run-"+name), "--shards", parts, "--encoder", "raw", "--transport", "memory")
		if strings.HasPrefix(name, "typed") {
			if text := must(t, "inspect", filepath.Join(parts, "part-1")); !strings.Contains(text,
				"relations (edges of each): ") {
				t.Error(text)
			}
			mustTrain(t, filepath.Join(dir, "typed-"+name), "--shards", parts, "--method", "full-batch", "--model",
				"rgcn", "--encoder", "raw", "--transport", "memory")
		}
		must(t, "export", "--shards", parts, "-o", back)
		again := must(t, "import", "--dgl", filepath.Join(back, "small.json"), "-o", back+"-parts")
		dense := regexp.MustCompile("bytes of features [0-9.]+, ") // DGL has sparse features as dense ones
		if cut := func(s string) string {
			return dense.ReplaceAllString(s[strings.Index(s, "\n")+1:], "")
		}; cut(again) != cut(text) {
			t.Errorf("%s: imported again it is\n%s, must be\n%s", name, again, text)
		}
	}
}

// TestLists makes data sets of lists of edges and of sets of the Open Graph Benchmark.
func TestLists(t *testing.T) {
	t.Parallel()
	const lists = "../../graph/dataset/testdata/"
	dir := t.TempDir()
	for k, args := range []string{
		"--edges graph.el", "--edges graph.el.zst --weight-column 3 --strict", "--edges graph.parquet --num-nodes 30",
		"--ogb ogb_plain", "--ogb ogb_typed --ogb-split time --name mag",
	} {
		flags := strings.Fields(args)
		flags[1] = lists + flags[1]
		out := filepath.Join(dir, strconv.Itoa(k))
		text := must(t, append([]string{"import", "-o", out}, flags...)...)
		if !strings.Contains(text, ": 30 nodes") {
			t.Errorf("import %s said %q", args, text)
		}
		must(t, "inspect", out)
		must(t, "partition", "--data", out, "--parts", "3", "-o", out+"-parts")
	}
	stored := filepath.Join(dir, "el.graph")
	if text := must(t, "import", "--edges", lists+"graph.el.zst", "-o", stored); !strings.Contains(text,
		"30 nodes, of ") {
		t.Errorf("import said %q", text)
	}
	if s, err := external.OpenGraph(stored); err != nil {
		t.Error(err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	mustTrain(t, filepath.Join(dir, "run"), "--data", filepath.Join(dir, "3"), "--peers", "2", "--policy", "random",
		"--encoder", "raw", "--transport", "memory")
}

// TestClusterOrder trains on shards in cluster order: the same nodes, and nearly the same numbers.
func TestClusterOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(name string, more ...string) cli.ResultFile {
		parts, out := filepath.Join(dir, name), filepath.Join(dir, name+"-run")
		text := must(t, append([]string{"partition", "--data", sites(t), "--parts", "3", "-o", parts}, more...)...)
		if strings.Contains(text, "rows by cluster") != (more != nil) {
			t.Errorf("partition said %q", text)
		}
		must(t, "inspect", parts+"/part-1")
		mustTrain(t, out, "--shards", parts, "--encoder", "raw", "--transport", "memory", "--json", out+".json")
		return figures(t, out+".json")
	}
	want, got := run("parts"), run("clusters", "--cluster-order")
	if len(got.Loss) == 0 || len(got.Loss) != len(want.Loss) ||
		math.Abs(*got.Loss[0]-*want.Loss[0]) > 1e-4**want.Loss[0] {
		t.Errorf("losses %v, must be %v", got.Loss, want.Loss)
	}
}

func TestFormatFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		want []string
	}{
		{"import -o " + dir + "/x", []string{"nodes", "dgl"}},
		{"import --dgl " + dir + " -o " + dir + "/x", []string{"no NAME.json"}},
		{"import --dgl " + dglData + "random-2 --label-column none -o " + dir + "/x", []string{`column "none"`}},
		{"import --dgl " + dglData + "random-2 --nodes n.csv -o " + dir + "/x", []string{"dgl", "nodes"}},
		{"import --edges ../../graph/dataset/testdata/graph.mtx -o " + dir + "/x",
			[]string{"graph.mtx", "format of edges must be", "python.md"}},
		{"import --edges ../../graph/dataset/testdata/graph.el --num-nodes 3 -o " + dir + "/x",
			[]string{"graph.el", "line 2"}},
		{"import --edges ../../graph/dataset/testdata/graph.el --strict -o " + dir + "/x.graph",
			[]string{"x.graph", "strict"}},
		{"import --edges ../../graph/dataset/testdata/formats.py --edge-format text -o " + dir + "/x.graph",
			[]string{"formats.py", "line 1"}},
		{"import --ogb " + dir + " -o " + dir + "/x", []string{"no raw/data.npz"}},
		{"import --edges e.el --ogb o -o " + dir + "/x", []string{"edges", "ogb"}},
		{"import --edges e.el --nodes n.csv --strict -o " + dir + "/x", []string{"nodes", "strict"}},
		{"export --shards " + dir + " -o " + dir + "/x", []string{"manifest.json"}},
	} {
		exit, _, stderr := call(t.Context(), strings.Fields(c.args)...)
		for _, w := range c.want {
			if exit != 2 || !strings.Contains(stderr, w) {
				t.Errorf("peer %s: exit %d, %q, must be 2 and %q", c.args, exit, stderr, w)
			}
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("peer %s left %v (%v)", c.args, list, err)
		}
	}
}
