package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestMistyped: a nearly right command or flag gets a suggestion, and a text that is like none gets nothing.
func TestMistyped(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"trian":               "did you mean train?",
		"comapre --data x":    "did you mean compare?",
		"roster shwo":         "did you mean show?",
		"train --peeers 3":    "did you mean --peers?",
		"train --hiden 3":     "did you mean --hidden?",
		"join --receivelimit": "did you mean --receive-limit?",
		"status " +
			"127.0.0.1:80": `heddle status takes flags only (got "127.0.0.1:80"); usage: heddle status [--http ADDRESS]`,
		"frobnicate": "",
		// Deleted settings of privacy: a user who asks for one must not be led to another one.
		"train --label-epsilon 4": "",
		"train --clip-means":      "",
		"train --least-in-sum 3":  "",
		"train --zzz":             "",
	} {
		exit, _, stderr := call(t.Context(), strings.Fields(args)...)
		if exit != 2 || !strings.Contains(stderr, want) || want == "" && strings.Contains(stderr, "did you mean") {
			t.Errorf("%s: exit %d, %q, must be %q", args, exit, stderr, want)
		}
	}
}

// TestManual: every command that help lists has a manual page, and --version is listed. A release takes the pages
// from the folder $HEDDLE_MAN, so that the program needs no code to write them.
func TestManual(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("HEDDLE_MAN")
	if dir == "" {
		dir = t.TempDir()
	}
	pages, _ := program.Root(nil)
	pages.DisableAutoGenTag = true
	config, err := os.UserConfigDir()
	if err == nil {
		elsewhere(pages, config)
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil { // SOURCE_DATE_EPOCH replaces the day on which they are written
		err = doc.GenManTree(pages, &doc.GenManHeader{Section: "1", Source: "Heddle", Manual: "Heddle"}, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := contents(t, filepath.Join(dir, "heddle-compare.1"))
	for _, want := range []string{".TH", "--seeds", "heddle compare"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page of heddle compare has no %q", want)
		}
	}
	if join := contents(t, filepath.Join(dir, "heddle-join.1")); !bytes.Contains(join,
		[]byte(`~/.config/heddle/identity.key`)) {
		t.Error("the default of --identity must be below ~/.config, not this machine's directory")
	}
	root, _ := program.Root(nil)
	for _, c := range root.Commands() {
		if _, err := os.Stat(filepath.Join(dir, "heddle-"+c.Name()+".1")); err != nil && c.IsAvailableCommand() {
			t.Error(err)
		}
	}
	help := must(t, "--help")
	if strings.Contains(help, "completion ") || !strings.Contains(help, "--version") {
		t.Errorf("help lists completion or no version:\n%s", help)
	}
	if text := must(t, "--version"); !strings.HasPrefix(text, "heddle version ") {
		t.Errorf("%q", text)
	}
	if text := must(t, "completion", "bash"); !strings.Contains(text, "__heddle_debug") {
		t.Errorf("%.100q", text)
	}
	for _, args := range [][]string{{"completion", "foo"}, {"completion", "bash", "foo"}} {
		if exit, _, stderr := call(t.Context(), args...); exit != 2 || !strings.Contains(stderr, "foo") {
			t.Errorf("%v: exit %d: %s", args, exit, stderr)
		}
	}
}

// elsewhere replaces this machine's directory by ~/.config in the defaults of flags of c and of the commands below it.
func elsewhere(c *cobra.Command, config string) {
	c.Flags().VisitAll(func(f *pflag.Flag) { f.DefValue = strings.ReplaceAll(f.DefValue, config, "~/.config") })
	for _, below := range c.Commands() {
		elsewhere(below, config)
	}
}

// TestSignals: a signal ends a run with 128 and its number, after a checkpoint from which it continues to the model of
// an undisturbed run; a run that was not disturbed ends with 0.
func TestSignals(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	args := []string{"train", "--data", data, "--transport", "memory", "--peers", "3", "-q", "--method", "layer-wise",
		"--encoder", "pca:16", "--hidden", "16", "--rounds", "300", "--checkpoint-every", "25"}
	whole := filepath.Join(dir, "whole")
	if err := process(t, append(args[:len(args):len(args)], "-o", whole)...).Run(); err != nil {
		t.Fatal(err)
	}
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		out := filepath.Join(dir, signal.String())
		c := process(t, append(args[:len(args):len(args)], "-o", out)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for {
			if held, _ := checkpoint.Find(filepath.Join(out, "checkpoints")); len(held) == 3 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		c.Wait()
		if got := c.ProcessState.ExitCode(); got != want {
			t.Errorf("%v: exit %d, must be %d", signal, got, want)
		}
		must(t, "train", "--config", filepath.Join(out, "checkpoints", "run.yaml"), "--resume", "-q")
		if !bytes.Equal(contents(t, filepath.Join(out, "model.safetensors")),
			contents(t, filepath.Join(whole, "model.safetensors"))) {
			t.Errorf("%v: the run ends with another model", signal)
		}
	}
}
