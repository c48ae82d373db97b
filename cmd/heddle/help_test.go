package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/plan"
)

// TestHelpIsShort: help is a phrase of at most 60 characters, not counting the choices of a
// setting.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			text := f.Usage
			if cli.IsSetting(f) {
				text, _, _ = strings.Cut(text, " (")
			}
			if n := len([]rune(text)); n > 60 || strings.HasSuffix(text, ".") {
				t.Errorf("%s --%s: help must be a phrase of at most 60 characters (got %d: %q)", c.CommandPath(),
					f.Name, n, text)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	root, _ := program.Root(nil)
	visit(root)
}

// TestGroups: help lists every command that is not hidden in one group, and at most 26.
func TestGroups(t *testing.T) {
	t.Parallel()
	help, visible := must(t, "--help"), 0
	root, _ := program.Root(nil)
	for _, c := range root.Commands() {
		line := "\n  " + c.Name() + " "
		if c.IsAvailableCommand() {
			visible++
		}
		if n := strings.Count(help, line); c.IsAvailableCommand() != (n == 1) {
			t.Errorf("%s is listed %d times, and available: %t", c.Name(), n, c.IsAvailableCommand())
		}
	}
	if visible > 26 || strings.Contains(help, "Available Commands") {
		t.Errorf("%d commands must be at most 26, in groups:\n%s", visible, help)
	}
	if text := must(t, "import", "--help") + must(t, "partition", "--help"); strings.Contains(text, "string") {
		t.Errorf("help must not name types of Go:\n%s", text)
	}
}

// TestHelpFits: help is at most 80 columns wide and 48 lines long, except for the default path of a key, and for train
// 40 lines. Examples stay commands.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		help := must(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		for line := range strings.SplitSeq(help, "\n") {
			if n := len([]rune(line)); n > 80 && !strings.Contains(line, config) {
				t.Errorf("%s --help: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if n, most := strings.Count(help, "\n"), map[bool]int{true: 40, false: 48}[c.Name() == "train"]; n > most {
			t.Errorf("%s --help: %d lines must be at most %d:\n%s", c.CommandPath(), n, most, help)
		}
		plain := func(text string) string {
			return strings.Join(strings.Fields(strings.ReplaceAll(text, "\\\n", "")), " ")
		}
		if !strings.Contains(plain(help), plain(c.Example)) {
			t.Errorf("%s --help has other examples:\n%s", c.CommandPath(), help)
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	root, _ := program.Root(nil)
	root.InitDefaultCompletionCmd()
	visit(root)
	if help := must(t, "import", "--help"); !strings.Contains(help, "\\\n    --label-column outcome ") {
		t.Errorf("a flag and its value are on one line:\n%s", help)
	}
}

// TestHelpShowsEveryFlag: --help-all leaves out no flag, and --method has all settings of a method.
func TestHelpShowsEveryFlag(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"train", "compare", "join", "plan", "partition", "import", "match",
		"predict", "relay"} {
		root, _ := program.Root(nil)
		c, _, err := root.Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		help := must(t, command, "--help-all")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if shown := strings.Contains(help, " --"+f.Name+" "); shown == f.Hidden {
				t.Errorf("%s --help-all: --%s is shown: %t", command, f.Name, shown)
			}
		})
		if c.LocalFlags().Lookup("method") == nil {
			continue
		}
		for _, method := range plan.Methods() {
			help := must(t, command, "--method", method, "--help")
			for _, s := range plan.Settings(method) {
				shown := strings.Contains(help, " --"+s.Flag+" ")
				if f := c.LocalFlags().Lookup(s.Flag); f != nil && cli.IsSetting(f) && shown == f.Hidden {
					t.Errorf("%s --method %s --help: --%s is shown: %t", command, method, s.Flag, shown)
				}
			}
		}
	}
}
