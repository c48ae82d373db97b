package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
)

// typedSites writes a generated data set with edges of two relations.
func typedSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "typed")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 40, Train: 0.2, Val: 0.2},
		rng.New(3))
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
	"gcn, sparse labels":       {"--model", "gcn", "--label-inputs", "0.5", "--correct-smooth", "10"},
	"sage, labels, no dropout": {"--model", "sage", "--label-inputs", "0.3", "--dropout", "0"},
	"sign":                     {"--model", "sign", "--hops", "2", "--row-norm", "l1"},
	"batch norm":               {"--model", "sage", "--norm", "batch", "--layers", "3"},
}

// TestEndToEndModels: each reaches the same metric with three peers, from shards, as with one, and
// predict computes it again from the model file.
func TestEndToEndModels(t *testing.T) {
	t.Parallel()
	data, dir := typedSites(t), t.TempDir()
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	for name, args := range endToEndModels {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--encoder", "raw"}, args...)
			one, three := filepath.Join(dir, name+"-1"), filepath.Join(dir, name+"-3")
			mustTrain(t, one, slices.Concat([]string{"--data", data, "--method", "full-batch", "--peers", "1"},
				args)...)
			mustTrain(t, three,
				slices.Concat([]string{"--shards", parts, "--method", "full-batch", "--transport", "memory"}, args)...)
			a, b := figures(t, filepath.Join(one, "result.json")), figures(t, filepath.Join(three, "result.json"))
			equal(t, "test accuracy", *b.Test, *a.Test)
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

// TestTypedTables: tables whose edges have relations train a model of relations, which predicts for
// tables with and without edges.
func TestTypedTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	nodes, edges := "id,site,age,outcome\n", "source,target,kind\n"
	for i := range 120 {
		nodes += fmt.Sprintf("n%d,%s,%d,%d\n", i, []string{"north", "south"}[i%2], 20+5*(i%3)+i%7, i%3)
		for k, kind := range []string{"refers", "treats"} { // the one stays in a class, the other leaves it
			edges += fmt.Sprintf("n%d,n%d,%s\n", i, (i+3*(i%5+1)+k)%120, kind)
		}
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tables := []string{"--nodes", at("nodes.csv"), "--edges", at("edges.csv")}
	if said := must(t, slices.Concat([]string{"import", "--label-column", "outcome", "--site-column", "site",
		"--relation-column", "kind", "--out", at("data")}, tables)...); !strings.Contains(said, "of 4 relations") {
		t.Error(said)
	}
	if said := must(t, "inspect", at("data")); !strings.Contains(said,
		"refers (120), treats (120), refers (inverse) (120)") {
		t.Error(said)
	}
	mustTrain(t, at("run"), "--data", at("data"), "--policy", "by-column", "--method", "full-batch", "--model", "rgcn",
		"--encoder", "raw", "--transport", "memory")
	if r := figures(t, at("run/result.json")); !(*r.Test > 0.6) { // a third without edges
		t.Errorf("accuracy %v", *r.Test)
	}
	predicts(t, at("run"), "--data", at("data"))
	must(t, slices.Concat([]string{"predict", "--model", at("run/model.safetensors"), "-o", at("again.csv")},
		tables)...)
	alone := []string{"predict", "--model", at("run/model.safetensors"), "-o", at("alone.csv"), "--nodes",
		at("nodes.csv")}
	refuse(t, 2, []string{"reads the rows of neighbours", "--edges"}, alone...)
	head, _, _ := bytes.Cut(contents(t, at("edges.csv")), []byte("\n"))
	if err := os.WriteFile(at("none.csv"), append(head, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, append(alone, "--edges", at("none.csv"))...)
	refuse(t, 2, []string{"relation-column"}, "import", "--edges", at("edges.csv"), "--relation-column", "kind",
		"--out", at("x"))
	refuse(t, 2, []string{"relation-column"},
		slices.Concat([]string{"import", "--relation-column", "kind", "--out", at("x.graph")}, tables)...)
}

// TestModelsThatNeedMore: a model that the data or the method cannot train is refused by name.
func TestModelsThatNeedMore(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"model rgcn needs typed edges": {"--data", sites(t), "--method",
			"full-batch", "--peers", "1", "--model", "rgcn"},
		"model must be gcn, sage, sage-sum, sage-pool, gat, gatv2, gin": {"--data", typedSites(t),
			"--method", "layer-wise", "--model", "rgcn"},
		"norm: unknown setting of layer-wise; it belongs to full-batch and mini-batch": {"--data", sites(t), "--method",
			"layer-wise", "--norm", "batch"},
	} {
		exit, _, stderr := call(t.Context(), append([]string{"train"}, args...)...)
		if exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, must be 2 and %q in\n%s", exit, want, stderr)
		}
	}
}
