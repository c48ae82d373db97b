package main

import (
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
)

// bareSites writes a generated data set of nodes without features and returns its directory.
func bareSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bare")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 2, Classes: 3, Columns: 40, Train: 0.2, Val: 0.2},
		rng.New(3))
	g.X = graph.Features{}
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}

// severalSites writes a generated data set of nodes with several classes, one of them scarce, and returns its
// directory.
func severalSites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "several")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 2, Classes: 3, Columns: 40, Train: 0.3, Val: 0.4},
		rng.New(3))
	several := graph.Labels{Classes: 3}
	for i, k := range g.Labels.Class {
		one := []uint8{0, uint8(i % 2), map[bool]uint8{true: 1}[i%50 == 0]}
		one[k/2] = 1
		several.Bits = append(several.Bits, one...)
	}
	g.Labels = several
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}
