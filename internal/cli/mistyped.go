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
		typed := flag.GetSpecifiedName()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && (near(typed, f.Name) || otherNames[typed] == f.Name) {
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
		return fmt.Errorf("%w: it has %s; the program %s has all other commands: %[3]s %s", err,
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

// otherNames are flags of other programs, with our names for them.
var otherNames = map[string]string{"epochs": "rounds", "learning-rate": "lr", "weight-decay": "decay",
	"clients": "peers", "parts": "peers", "dataset": "data", "output": "out", "arch": "model"}

// badValue names what the value of a flag must be, if err is about one.
func badValue(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	if v, is := wrong.GetFlag().Value.(*settingValue); is {
		return errors.New(strings.Replace(errors.Unwrap(wrong).Error(), v.setting.Name, "--"+v.setting.Flag, 1))
	}
	must := map[string]string{"int": "an integer", "int64": "an integer",
		"uint64": "an integer of at least 0", "float64": "a number", "duration": "a duration, as 30s or 5m",
		"float64Slice": "numbers with commas between", "bool": "true or false"}
	kind := must[wrong.GetFlag().Value.Type()]
	if kind == "" {
		return fmt.Errorf("--%s: %w", wrong.GetFlag().Name, errors.Unwrap(wrong))
	}
	return fmt.Errorf("--%s must be %s (got %q)", wrong.GetFlag().Name, kind, wrong.GetValue())
}

// incomplete names the flags that c needs, if err is that they are not given.
func incomplete(c *cobra.Command, err error) error {
	text, joint := err.Error(), " and "
	names, missing := strings.CutPrefix(text, "required flag(s) ")
	if !missing {
		names, missing = strings.CutPrefix(text, "at least one of the flags in the group ")
		joint = " or "
	}
	if !missing {
		return err
	}
	names = names[:strings.LastIndexAny(names, `"]`)]
	all := strings.FieldsFunc(names, func(r rune) bool { return strings.ContainsRune(`[, "`, r) })
	return fmt.Errorf("%s needs --%s (see %[1]s --help)", c.CommandPath(), strings.Join(all, joint+"--"))
}
