package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mostTypos is how many letters of a name may be mistyped for it to be suggested.
const mostTypos = 2

// meant completes the error of a flag or an argument of c by the names that the user may have meant.
func meant(c *cobra.Command, err error, args []string) error {
	var names []string
	var flag *pflag.NotExistError
	switch command := c.HasSubCommands() && len(args) > 0; {
	case !command && errors.As(err, &flag):
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && near(flag.GetSpecifiedName(), f.Name) {
				names = append(names, "--"+f.Name)
			}
		})
	case command:
		if errors.As(err, &flag) { // of the command that was mistyped
			err = fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
		}
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() && (near(args[0], below.Name()) || strings.HasPrefix(below.Name(), args[0])) {
				names = append(names, below.Name())
			}
		}
	}
	if full := c.Annotations[fullProgram]; len(names) == 0 && full != "" && len(args) > 0 {
		for _, below := range c.Commands() {
			if name := below.Name(); name != "help" && name != "completion" {
				names = append(names, name)
			}
		}
		return fmt.Errorf("%w: it has %s; all other commands are those of the program %s: %[3]s %s", err,
			strings.Join(names, ", "), full, args[0])
	}
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(names, " or "))
}

// near reports whether name may have been meant by typed: at most mostTypos letters, and fewer than half of them, are
// missing, too many, others or swapped with the next one (the distance of Damerau, Communications of the ACM 7, 1964,
// with no letter moved twice).
func near(typed, name string) bool {
	before, last := []int(nil), make([]int, len(name)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(typed) {
		row := make([]int, len(name)+1)
		row[0] = i + 1
		for j := range len(name) {
			cost := 1
			if typed[i] == name[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && typed[i] == name[j-1] && typed[i-1] == name[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	distance := last[len(name)]
	return distance <= mostTypos && 2*distance < len(name)
}
