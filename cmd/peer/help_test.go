package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/cmd/peer/flags"
)

// TestHelpIsShort: help is a phrase of at most 60 characters, not counting the choices of a
// setting.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			text := f.Usage
			if flags.IsSetting(f) {
				text, _, _ = strings.Cut(text, ":")
			}
			if n := len([]rune(text)); n > 60 || strings.HasSuffix(text, ".") {
				t.Errorf("%s --%s: help must be a phrase of at most 60 characters (got %d: %q)", c.CommandPath(), f.Name, n, text)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	root, _ := newRoot()
	visit(root)
}

// TestHelpShowsEveryFlag: no section of settings is left out.
func TestHelpShowsEveryFlag(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"train", "tune", "join", "plan", "partition"} {
		root, _ := newRoot()
		c, _, err := root.Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		help := must(t, command, "--help")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if shown := strings.Contains(help, " --"+f.Name+" "); shown == f.Hidden {
				t.Errorf("peer %s --help: --%s is shown: %t", command, f.Name, shown)
			}
		})
	}
}
