package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestPredictAlone: predictions for only one part lack neighbours at other peers, and the command reports how many. It
// writes the embeddings of all nodes, and predictions in the format of the file's name.
func TestPredictAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "partition", "--data", sites(t), "--policy", "by-column", "--parts", "3", "--out", at("parts"))
	must(t, "train", "--shards", at("parts"), "--method", "layer-wise", "--model", "gcn", "--encoder", "pca:16",
		"--hidden", "12", "--rounds", "5", "--transport", "memory", "--keep-last", "--out", at("run"))
	said := must(t, "predict", "--model", at("run/model.safetensors"), "--shard", at("parts/part-1"), "--out",
		at("p.parquet"), "--embeddings", at("e.parquet"), "--report", at("p.html"))
	if of := must(t, "inspect", at("run")); !strings.Contains(of, "model.safetensors: model for ") {
		t.Errorf("a run must be described by its model (got %s)", of)
	}
	m := regexp.MustCompile(`without (\d+) neighbours at other peers and the (\d+) edges from them, which --plan sees`).
		FindStringSubmatch(said)
	if m == nil || m[1] == "0" || len(m[2]) < len(m[1]) {
		t.Fatalf("%q must say what it cannot see", said)
	}
	rows, err := parquet.ReadFile[struct {
		ID    string `parquet:"id"`
		Class string `parquet:"class"`
	}](at("p.parquet"))
	if err != nil || len(rows) == 0 || rows[0].Class == "" {
		t.Fatalf("%d predictions, %v", len(rows), err)
	}
	page := string(contents(t, at("p.html")))
	counts := map[string]int{}
	for _, row := range rows {
		counts[row.Class]++
	}
	for class, n := range counts {
		if cells := fmt.Sprintf(`<th scope="row">%s</th><td>%d</td>`, class, n); !strings.Contains(page, cells) {
			t.Errorf("the page must count %d nodes of class %s", n, class)
		}
	}
	test := regexp.MustCompile(`test accuracy: ([\d.]+) % \((\d+) nodes\)`).FindStringSubmatch(said)
	if test == nil {
		t.Fatalf("%q must have the accuracy", said)
	}
	for _, want := range []string{"The predictions were made " + m[0], "<dd>" + test[1] + " %</dd>",
		"of " + test[2] + " test nodes", "How sure the model is", "Confusion matrix", "calibration error"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page must have %q", want)
		}
	}
	if strings.Contains(page, "What left each site") {
		t.Error("nothing left the site")
	}
	type node struct {
		ID        string    `parquet:"id"`
		Embedding []float32 `parquet:"embedding,list"`
	}
	must(t, "train", "--shards", at("parts"), "--method", "layer-wise", "--model", "gcn", "--encoder", "pca:16",
		"--hidden", "12", "--rounds", "5", "--transport", "memory", "--keep-last", "--out", at("again"), "--embeddings",
		at("all.parquet"))
	if nodes, err := parquet.ReadFile[node](at("all.parquet")); err != nil || len(nodes) != 600 ||
		len(nodes[0].Embedding) != 12 {
		t.Errorf("%d embeddings of a run of 600 nodes, %v", len(nodes), err)
	}
	nodes, err := parquet.ReadFile[node](at("e.parquet"))
	if err != nil || len(nodes) != len(rows) || len(nodes[0].Embedding) != 12 || nodes[3].ID != rows[3].ID {
		t.Fatalf("%d embeddings of %d predictions, %v", len(nodes), len(rows), err)
	}
	for _, c := range []struct{ args, want string }{
		{"--shard " + at("parts/part-1") + " --embeddings " + at("e.txt"), "must end in .npz or .parquet"},
		{"--plan " + at("none.yaml") + " --data " + at("parts"), "give --shard, and neither --data nor --nodes"},
	} {
		exit, _, said := call(t.Context(),
			append([]string{"predict", "--model", at("run/model.safetensors"), "--out", at("x.csv")},
				strings.Fields(c.args)...)...)
		if exit != 2 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, exit, fmt.Sprintf("%q must have %q", said, c.want))
		}
	}
}

// TestEmbeddingsOfLinks: a run of links and heddle predict write the rows that the decoder reads, of the same nodes;
// without one of the files that it may write, predict reports that.
func TestEmbeddingsOfLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "train", "--data", sites(t), "--method", "full-batch", "--peers", "1", "--task", "links", "--hidden", "6",
		"--rounds", "2", "--out", at("run"), "--embeddings", at("run.parquet"))
	must(t, "predict", "--model", at("run/model.safetensors"), "--data", sites(t), "--embeddings",
		at("predict.parquet"))
	type row struct {
		ID        string    `parquet:"id"`
		Embedding []float32 `parquet:"embedding,list"`
	}
	trained, err := parquet.ReadFile[row](at("run.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	predicted, err := parquet.ReadFile[row](at("predict.parquet"))
	if err != nil || len(trained) != 600 || len(predicted) != 600 {
		t.Fatalf("%d rows are written by train, %d by predict (%v), must be of 600 nodes", len(trained), len(predicted),
			err)
	}
	for k, a := range trained { // no message of the run went along links that were held out
		if b := predicted[k]; a.ID != b.ID || len(a.Embedding) != 6 || len(b.Embedding) != 6 {
			t.Fatalf("row %d is %v by train, %v by predict, must be of one node, of 6 numbers", k, a, b)
		}
	}
	for _, args := range [][]string{{}, {"--out", at("p.csv")}, {"--out", at("p.csv"), "--embeddings", at("e.npz")}} {
		if exit, _, stderr := call(t.Context(),
			append([]string{"predict", "--model", at("run/model.safetensors"), "--data", sites(t)},
				args...)...); exit != 2 || !strings.Contains(stderr, "must") {
			t.Errorf("predict %v of a model of links ends with %d and says %q, must say what must be given", args, exit,
				stderr)
		}
	}
}
