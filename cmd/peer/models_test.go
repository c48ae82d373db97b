package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// typedSites is a generated data set whose edges are of two relations.
func typedSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "typed")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 40, Train: 0.2, Val: 0.2}, rng.New(3))
	var list [2]*graph.CSR
	for r := range list {
		var src, dst []int32
		for i := range g.N() {
			col, _ := g.Adj.Row(i)
			for _, j := range col {
				if (i+int(j))%2 == r {
					src, dst = append(src, j), append(dst, int32(i))
				}
			}
		}
		one, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{Directed: true})
		if err != nil {
			t.Fatal(err)
		}
		list[r] = &one
	}
	g.Typed = graph.WithInverses([]string{"even", "odd"}, list[:])
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}

// endToEndModels are the models that train end to end only.
var endToEndModels = map[string][]string{
	"rgcn":                     {"--model", "rgcn", "--bases", "1"},
	"appnp":                    {"--model", "appnp", "--hops", "4"},
	"mlp":                      {"--model", "mlp", "--correct-smooth", "10"},
	"gcn, sparse labels":       {"--model", "gcn", "--label-augmentation", "0.5", "--correct-smooth", "10"},
	"sage, labels, no dropout": {"--model", "sage", "--label-augmentation", "0.3", "--dropout", "0"},
	"sign":                     {"--model", "sign", "--hops", "2", "--unit-sum"},
	"batch norm":               {"--model", "sage", "--norm", "batch", "--layers", "3"},
}

// TestEndToEndModels: each reaches with three peers, from shards, what it reaches with one, and predict computes it anew
// from the model's file.
func TestEndToEndModels(t *testing.T) {
	data, dir := typedSites(t), t.TempDir()
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	for name, args := range endToEndModels {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--encoder", "raw"}, args...)
			one, three := filepath.Join(dir, name+"-1"), filepath.Join(dir, name+"-3")
			train(t, one, slices.Concat([]string{"--data", data, "--mode", "standalone"}, args)...)
			train(t, three, slices.Concat([]string{"--shards", parts, "--mode", "fullbatch", "--transport", "memory"}, args)...)
			a, b := figures(t, filepath.Join(one, "result.json")), figures(t, filepath.Join(three, "result.json"))
			equal(t, "test accuracy", *b.TestAccuracy, *a.TestAccuracy)
			for i := range a.Loss {
				if d := *a.Loss[i] - *b.Loss[i]; d > 1e-4**a.Loss[i] || -d > 1e-4**a.Loss[i] {
					t.Errorf("epoch %d: loss %v, of one peer %v", i, *b.Loss[i], *a.Loss[i])
				}
			}
			predicts(t, one, "--data", data)
			predicts(t, three, "--data", data)
		})
	}
}

// TestModelsThatNeedMore: a model that the data or the mode cannot train is refused by name.
func TestModelsThatNeedMore(t *testing.T) {
	for want, args := range map[string][]string{
		"model: rgcn, but the graph's edges have no types": {"--data", sites(t), "--mode", "standalone", "--model", "rgcn"},
		"model: rgcn is trained end to end":                {"--data", typedSites(t), "--model", "rgcn"},
		"norm: batch takes its statistics of all peers'":   {"--data", sites(t), "--norm", "batch"},
	} {
		exit, _, stderr := call(t.Context(), append([]string{"train"}, args...)...)
		if exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, want 2 and %q in\n%s", exit, want, stderr)
		}
	}
}
