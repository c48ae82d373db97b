package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpIsShort: help is a phrase of at most 60 characters, not counting the choices of a
// setting.
func TestHelpIsShort(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			text := f.Usage
			if _, setting := f.Value.(*settingValue); setting {
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
