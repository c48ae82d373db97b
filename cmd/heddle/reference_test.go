package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
)

// TestCLIReference compares docs/reference/cli.md with the help of the commands. HEDDLE_WRITE=1
// writes it.
func TestCLIReference(t *testing.T) {
	t.Parallel()
	const page = "../../docs/reference/cli.md"
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "# Command line")
	fmt.Fprintln(&b, "\n<!-- generated: HEDDLE_WRITE=1 go test -run CLIReference ./cmd/heddle -->")
	fmt.Fprintln(&b, "\nThe program `peer`, for the server of a site, has `join`, `init`, `approve`, `status` and `doctor`. Its `join` writes\n"+
		"neither HTML nor Parquet.")
	root, _ := program.Root(nil)
	writeReference(&b, root)
	got := strings.ReplaceAll(b.String(), config, "~/.config")
	if os.Getenv("HEDDLE_WRITE") != "" {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != string(contents(t, page)) {
		t.Errorf("%s differs from the help of the commands: HEDDLE_WRITE=1 go test -run CLIReference ./cmd/heddle", page)
	}
}

// writeReference writes a section for c and for each command below it.
func writeReference(b *bytes.Buffer, c *cobra.Command) {
	if c.HasParent() {
		fmt.Fprintf(b, "\n## %s\n", c.CommandPath())
	}
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "\n%s\n", text)
	if c.Runnable() && c.HasParent() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.ReplaceAll(c.Example, "\n  ", "\n")[2:])
	}
	var lines bytes.Buffer
	settings := false
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if cli.IsSetting(f) && c.Name() != "join" { // join has a few settings, which each site chooses
			settings = true
			return
		}
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		shown := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			shown = "`" + f.DefValue + "`"
			if _, err := time.Parse(time.DateOnly, f.DefValue); err == nil {
				shown = "depends on today"
			}
		}
		fmt.Fprintf(&lines, "| %s | %s | %s | %s |\n", name, kind, shown, strings.ReplaceAll(usage, "|", `\|`))
	})
	if lines.Len() > 0 {
		fmt.Fprintf(b, "\n| flag | type | default | meaning |\n|---|---|---|---|\n%s", lines.String())
	}
	if settings {
		fmt.Fprint(b, "\nEach [setting](settings.md) is a flag, too, with dashes in place of underscores.\n")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			writeReference(b, sub)
		}
	}
}
