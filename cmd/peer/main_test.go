package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestLean: a site's server links nothing that reads tables, writes Parquet or draws.
func TestLean(t *testing.T) {
	t.Parallel()
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`.*(parquet|arrow|/svg|/dataset|/dgl|/report|html/template).*`).FindAll(list,
		-1); found != nil {
		t.Errorf("linked: %s", found)
	}
}

// TestOtherCommands: for a command that only heddle has, the error names heddle, and texts name the commands as this
// program's.
func TestOtherCommands(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"train --data x": "it has approve, doctor, init, join, status; the " +
			"program heddle has all other commands: heddle train",
		"jion":                  "did you mean join?",
		"approve --help":        "which peer join --approval requires",
		"doctor --identity x/y": "the command init makes a key",
	} {
		var out bytes.Buffer
		program.Run(t.Context(), strings.Fields(args), &out, &out)
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("%s: %s must have %q", args, text, want)
		}
	}
}
