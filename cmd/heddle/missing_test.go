package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
)

// TestMissingFiles: a file that is not there is refused by the flag or argument that names it, with what it must be.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone.yaml")
	for _, test := range []struct{ args, must string }{
		{"recommend --model GONE --data GONE",
			"--data must be a data set: a directory that heddle import wrote, or its .npz file"},
		{"recommend --model GONE --data GONE", "--model must be a model file, such as model.safetensors of a run"},
		{"check --plan GONE --shard GONE", "--shard must be a part, such as parts/part-0"},
		{"compare --plan GONE --shard GONE", "--plan must be a plan, as heddle plan writes it"},
		{"import --nodes patient=GONE --out o", "--nodes must be a table of nodes"},
		{"train --config GONE", "--config must be a YAML file of settings"},
		{"inspect GONE", "PATH must be a data set, partition, part, run, model or checkpoint"},
		{"audit verify GONE", "LOG must be an audit log"},
		{"roster show GONE", "FILE must be a roster, such as federation.yaml"},
	} {
		refuse(t, 2, []string{test.must, `gone.yaml": no such file or directory)`},
			strings.Fields(strings.ReplaceAll(test.args, "GONE", gone))...)
	}
	dir := t.TempDir()
	refuse(t, 2, []string{"--model must be a model file, such as model.safetensors of a run (got ", "is a directory)"},
		"predict", "--model", dir, "--data", sites(t), "-o", gone)
	refuse(t, 2, []string{"--config must be a YAML file of settings (got ", "is a directory)"}, "train", "--config",
		dir)
	refuse(t, 2, []string{"data must be a data set", "no such file or directory)"}, "train", "--config",
		write(t, "data: "+gone+"\n"))
}

// TestReadFlagsAreMarked: every command that reads what flags of these names name refuses what is not there.
func TestReadFlagsAreMarked(t *testing.T) {
	t.Parallel()
	names := []string{"data", "shards", "shard", "plan", "config", "model", "like", "approval", "roster", "nodes",
		"edges", "ogb", "dgl", "leaves", "secret", "http-token-file", "run"}
	root, _ := program.Root(nil)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, marked := f.Annotations["read"]; slices.Contains(names, f.Name) && !marked && !cli.IsSetting(f) &&
				strings.HasPrefix(f.Value.Type(), "string") {
				t.Errorf("%s --%s is not marked as what is read", c.CommandPath(), f.Name)
			}
		})
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(root)
}
