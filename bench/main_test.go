package main

import (
	"flag"
	"strings"
	"testing"
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
	err := bench(t.Context(), []string{"neon", "-times", "2", "all"})
	if err == nil || !strings.Contains(err.Error(), `(got "all")`) {
		t.Errorf("error must name what is not a flag (got %v)", err)
	}
}
