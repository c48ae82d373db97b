package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"os"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// The files have what the tutorial is about, and read as it says.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range files(1) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := dataset.ImportConfig{Nodes: filepath.Join(dir, "accounts.csv"), Edges: filepath.Join(dir, "transfers.csv"),
		ID: "account", Label: "fraud", Site: "region", Weight: "amount", Merge: "sum", Text: []string{"note:64"},
		Age: []string{"born:2024-01-01"}, Seed: 1,
		Format: table.Format{DecimalComma: true, Faults: &table.Faults{Skip: true}}}
	g, f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if f.Tables[0].Encoding != "latin1" || f.Tables[0].Skipped != 2 || f.Tables[1].Skipped < 2 ||
		f.Edges.Repeated == 0 || g.N() != accounts-1 {
		t.Errorf("%+v", f)
	}
	for _, want := range []string{"holder is dropped", "chargebacks alone predicts fraud"} {
		if !slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning %q in %q", want, f.Warnings)
		}
	}
}
