// Package cli has what all commands share: keys, plans, a site's place in a run, progress
// and files.
package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
)

// Invalid marks err as a fault of what the user gave, which ends the program with exit code 2; nil
// stays nil.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return &heddle.InputError{Err: err}
}

// Invalidf is Invalid of a new error.
func Invalidf(format string, args ...any) error { return Invalid(fmt.Errorf(format, args...)) }

// Required marks flags that have no default.
func Required(c *cobra.Command, names ...string) {
	for _, name := range names {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
