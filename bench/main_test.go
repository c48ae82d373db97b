package main

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/bench/page"
)

// Help texts are noun phrases that fit beside a flag.
func TestHelp(t *testing.T) {
	names := map[string]bool{}
	for _, e := range experiments {
		if names[e.Name] || e.Name == "" || e.Title == "" || e.Text == "" {
			t.Errorf("subcommand %q must have a name of its own, a title and a text", e.Name)
		}
		names[e.Name] = true
		f := flag.NewFlagSet(e.Name, flag.ContinueOnError)
		e.command(f)
		f.VisitAll(func(one *flag.Flag) {
			if n := len([]rune(one.Usage)); n == 0 || n > 60 || strings.HasSuffix(one.Usage, ".") {
				t.Errorf("%s -%s: help must be a phrase of at most 60 characters (got %d: %q)",
					e.Name, one.Name, n, one.Usage)
			}
		})
	}
}

func TestUnknownSubcommand(t *testing.T) {
	if err := bench(t.Context(), []string{"nothing"}); err == nil || !strings.Contains(err.Error(), `(got "nothing")`) {
		t.Errorf("error must name the subcommand (got %v)", err)
	}
	err := bench(t.Context(), []string{"reorder", "-repeat", "2", "all"})
	if err == nil || !strings.Contains(err.Error(), `(got "all")`) {
		t.Errorf("error must name what is not a flag (got %v)", err)
	}
}

// Every command of a subcommand that a page or a figure names has flags which that subcommand takes.
func TestCommandsOfThePages(t *testing.T) {
	command := regexp.MustCompile("go run ./bench ([a-z]+)([^`\n]*)")
	word := regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
	found := 0
	check := func(path string, text string) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			found++
			var args []string
			for _, w := range word.FindAllString(m[2], -1) {
				args = append(args, strings.Trim(w, `"'`))
			}
			known := m[1] == "page"
			for _, e := range experiments {
				if e.Name != m[1] {
					continue
				}
				known = true
				f := flag.NewFlagSet(e.Name, flag.ContinueOnError)
				f.Bool("write", false, "")
				f.String("heading", "", "")
				e.command(f)
				if err := f.Parse(args); err != nil || f.NArg() > 0 {
					t.Errorf("%s: %s: %v, not flags: %q", path, m[0], err, f.Args())
				}
			}
			if !known {
				t.Errorf("%s: %s: no such subcommand", path, m[0])
			}
		}
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".md":
			text, err := os.ReadFile(path)
			check(path, string(text))
			return err
		case ".jsonl":
			lines, err := page.Read(path)
			for _, l := range lines {
				check(path, l.Command)
			}
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 300 {
		t.Errorf("found %d commands", found)
	}
}
