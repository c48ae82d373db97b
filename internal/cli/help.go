package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/plan"
)

// helpColumns is the largest width of help, if its words allow.
const helpColumns = 80

// fitHelp makes the help of root and of the commands below it fit 80 columns, and lists root's commands in these
// groups.
func fitHelp(root *cobra.Command, groups [][]string) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := cmp.Or(c.Long, c.Short+".")
		if isShort(c) {
			text, _, _ = strings.Cut(text, "\n\n")
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
		writeFlags(w, c)
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

// commonFlags annotates a command with the flags of its short help.
const commonFlags = "common flags"

// ShortHelp makes the help of c list these flags in this order, after the first paragraph of its text. --help-all shows
// everything, and --method NAME --help the settings of a method.
func ShortHelp(c *cobra.Command, names ...string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[commonFlags] = strings.Join(names, " ")
}

// helpAll is the value of --help-all, which implies --help.
type helpAll struct{ flags *pflag.FlagSet }

func (h helpAll) Set(string) error { return h.flags.Set("help", "true") }
func (helpAll) Type() string       { return "bool" }
func (helpAll) String() string     { return "" }

// isShort reports whether c's help is short.
func isShort(c *cobra.Command) bool {
	return c.Annotations[commonFlags] != "" && !c.Flags().Changed("help-all")
}

// writeFlags writes the help of c's flags.
func writeFlags(w io.Writer, c *cobra.Command) {
	chosen := c.LocalFlags().Lookup("method") // whose settings are shown with the settings of all methods
	method := ""
	if chosen != nil && chosen.Changed && len(plan.Settings(chosen.Value.String())) > 0 {
		method = chosen.Value.String()
	}
	var first settingBlock
	blocks := []settingBlock{{"Flags", newFlagSet()}}
	if isShort(c) {
		for name := range strings.FieldsSeq(c.Annotations[commonFlags]) {
			if f := c.LocalFlags().Lookup(name); f != nil && !(method != "" && IsSetting(f)) {
				blocks[0].flags.AddFlag(f)
			}
		}
	} else {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch in := f.Annotations[FlagSection]; {
			case chosen != nil && IsSetting(f):
			case in == nil:
				blocks[0].flags.AddFlag(f)
			default:
				if first.flags == nil {
					first = settingBlock{in[0], newFlagSet()}
				}
				first.flags.AddFlag(f)
			}
		})
	}
	if first.flags != nil {
		blocks = append(blocks, first)
	}
	if chosen != nil && (method != "" || !isShort(c)) {
		blocks = append(blocks, settingBlocks(c, method)...)
	}
	for _, b := range blocks {
		if b.flags.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", b.title, flagUsages(b.flags))
		}
	}
	if isShort(c) {
		fmt.Fprintf(w, "\nAll flags: %s --help-all\n", c.CommandPath())
	}
	if isShort(c) && chosen != nil {
		fmt.Fprintf(w, "Settings of another method: %s --method %s --help\n", c.CommandPath(), plan.LayerWise)
	}
}

// newFlagSet returns a set of flags that keeps their order.
func newFlagSet() *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	return set
}

// flagUsages is the help of flags, without the names of types of Go. A default is written after the choices.
func flagUsages(set *pflag.FlagSet) string {
	kinds := map[string]string{"string": "text", "stringArray": "text", "stringSlice": "list", "stringToString": "list",
		"float64Slice": "list", "float64": "number", "int": "number", "int64": "number", "uint64": "number",
		"func": "text"}
	shown := newFlagSet()
	set.VisitAll(func(f *pflag.Flag) {
		one := *f
		one.Value = shownValue{f.Value, cmp.Or(kinds[f.Value.Type()], f.Value.Type())}
		value := strings.Replace(f.DefValue, "m0s", "m", 1)
		if one.DefValue = ""; !strings.Contains(f.Usage, "default") && !slices.Contains(noDefaults, value) {
			one.Usage += " (default " + value + ")"
			one.Usage = strings.Replace(one.Usage, ") (default", "; default", 1)
		}
		shown.AddFlag(&one)
	})
	return shown.FlagUsagesWrapped(helpColumns)
}

// noDefaults are default values that help does not show.
var noDefaults = []string{"", "[]", "false", "0", "0s", "-1"}

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
