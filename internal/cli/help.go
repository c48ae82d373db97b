package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpColumns is how wide help is at most, where its words allow.
const helpColumns = 80

// fitHelp makes the help of root and of the commands below it fit 80 columns.
func fitHelp(root *cobra.Command) {
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
		if c.HasAvailableSubCommands() {
			fmt.Fprint(w, "\nAvailable Commands:\n")
			for _, one := range c.Commands() {
				if one.IsAvailableCommand() || one.Name() == "help" {
					fmt.Fprintf(w, "  %-*s %s\n", one.NamePadding(), one.Name(), one.Short)
				}
			}
		}
		if f := c.LocalFlags(); f.HasAvailableFlags() {
			fmt.Fprintf(w, "\nFlags:\n%s", f.FlagUsagesWrapped(helpColumns))
		}
		if c.HasAvailableSubCommands() {
			fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more information about a command.\n", c.CommandPath())
		}
		return nil
	})
}

// writeUsage writes how a command is called, with its examples.
func writeUsage(w io.Writer, c *cobra.Command) {
	fmt.Fprintln(w, "Usage:")
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", wrapWords(strings.Fields(c.UseLine()), "\n      ", helpColumns-2))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprint(w, "\nExamples:\n")
		for line := range strings.SplitSeq(strings.ReplaceAll(c.Example, " \\\n   ", ""), "\n") {
			fmt.Fprintf(w, "  %s\n", wrapWords(shellWords(line), " \\\n    ", helpColumns-2))
		}
	}
}

// paragraphs fills paragraphs, which empty lines separate; indented lines stay as they are.
func paragraphs(text string) string {
	var out []string
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if !strings.HasPrefix(part, " ") && !strings.Contains(part, "\n\t") && !strings.HasPrefix(part, "\t") {
			part = wrapWords(strings.Fields(part), "\n", helpColumns)
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

// wrapWords joins words with blanks, or with end where a line would be longer than width.
func wrapWords(words []string, end string, width int) string {
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
