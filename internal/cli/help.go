package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is how wide help is at most, where its words allow.
const helpColumns = 80

// fitHelp makes the help of root and of the commands below it fit 80 columns, and lists root's commands in these
// groups.
func fitHelp(root *cobra.Command, groups [][]string) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s", paragraphs(text), c.UsageString())
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		writeUsage(w, c)
		of := groups
		if c.HasParent() || groups == nil {
			of = [][]string{{"Commands"}}
			for _, one := range c.Commands() {
				of[0] = append(of[0], one.Name())
			}
		}
		for _, group := range of {
			if c.HasAvailableSubCommands() {
				fmt.Fprintf(w, "\n%s:\n", group[0])
			}
			for _, name := range group[1:] {
				if one, _, err := c.Find([]string{name}); err == nil && one.IsAvailableCommand() {
					fmt.Fprintf(w, "  %-*s %s\n", one.NamePadding(), name, one.Short)
				}
			}
		}
		if f := c.LocalFlags(); f.HasAvailableFlags() {
			fmt.Fprintf(w, "\nFlags:\n%s", flagUsages(f))
		}
		if c.HasAvailableSubCommands() {
			fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more information about a command.\n", c.CommandPath())
		}
		return nil
	})
}

// shownValue is a flag's value with a kind in plain words.
type shownValue struct {
	pflag.Value
	kind string
}

// Type implements pflag.Value.
func (v shownValue) Type() string { return v.kind }

// flagUsages is the help of flags, without the names of types of Go.
func flagUsages(set *pflag.FlagSet) string {
	kinds := map[string]string{"string": "text", "stringArray": "text", "stringSlice": "list", "stringToString": "list",
		"float64Slice": "list", "float64": "number", "int": "number", "int64": "number", "uint64": "number"}
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = set.SortFlags
	set.VisitAll(func(f *pflag.Flag) {
		one := *f
		if kind := kinds[f.Value.Type()]; kind != "" {
			one.Value = shownValue{f.Value, kind}
		}
		if f.DefValue == "[]" || f.DefValue == "0s" {
			one.DefValue = ""
		}
		shown.AddFlag(&one)
	})
	return shown.FlagUsagesWrapped(helpColumns)
}

// writeUsage writes how a command is called, with its examples.
func writeUsage(w io.Writer, c *cobra.Command) {
	fmt.Fprintln(w, "Usage:")
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", WrapWords(strings.Fields(c.UseLine()), "\n      ", helpColumns-2))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprint(w, "\nExamples:\n")
		for line := range strings.SplitSeq(strings.ReplaceAll(c.Example, " \\\n   ", ""), "\n") {
			fmt.Fprintf(w, "  %s\n", WrapWords(shellWords(line), " \\\n    ", helpColumns-2))
		}
	}
}

// paragraphs fills paragraphs, which empty lines separate; indented lines stay as they are.
func paragraphs(text string) string {
	var out []string
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if !strings.HasPrefix(part, " ") && !strings.Contains(part, "\n\t") && !strings.HasPrefix(part, "\t") {
			part = WrapWords(strings.Fields(part), "\n", helpColumns)
		}
		out = append(out, part)
	}
	return strings.Join(out, "\n\n")
}

// shellWords cuts a command at blanks outside quotes, but not between a flag and what follows it.
func shellWords(line string) (words []string) {
	quoted := rune(0)
	for k, word := range strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case r == quoted:
			quoted = 0
		case quoted == 0 && (r == '\'' || r == '"'):
			quoted = r
		}
		return quoted == 0 && r == ' '
	}) {
		if k > 0 && strings.HasPrefix(words[len(words)-1], "-") && !strings.HasPrefix(word, "-") {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
	}
	return words
}

// WrapWords joins words with blanks, or with end where a line would be longer than width.
func WrapWords(words []string, end string, width int) string {
	before, indent, _ := strings.Cut(end, "\n")
	width -= len(before)
	var b strings.Builder
	at := 0
	for k, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case k == 0:
		case at+1+n > width:
			b.WriteString(end)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
