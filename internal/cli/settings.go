package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/plan"
)

// settingValue is the flag of a setting. Its value stays text until a plan is made.
type settingValue struct {
	setting plan.Setting
	text    string
	given   bool
}

// Set implements pflag.Value.
func (v *settingValue) Set(text string) error {
	if err := v.setting.Parse(text); err != nil {
		return err
	}
	if v.given && v.setting.Type == "list" { // a repeated flag adds to the list
		text = v.text + "," + text
	}
	v.text, v.given = text, true
	return nil
}

// Type implements pflag.Value.
func (v *settingValue) Type() string {
	switch kind := v.setting.Type; kind {
	case "integer":
		return "number"
	case "true or false":
		return "bool"
	default:
		return kind
	}
}

func (v *settingValue) String() string { return v.text }

// BindSettings adds the flags of the settings that a command takes, of those that wanted accepts:
// train, or join for what the peers of several machines agree on. Experimental settings are hidden.
func BindSettings(f *pflag.FlagSet, command string, wanted func(plan.Setting) bool) {
	for _, method := range plan.Methods() {
		for _, s := range plan.Settings(method) {
			if s.Only != "" && s.Only != command || !wanted(s) || f.Lookup(s.Flag) != nil {
				continue
			}
			one := f.VarPF(&settingValue{setting: s}, s.Flag, "", "")
			describe(one, method, s)
			if one.Hidden = s.Experimental; s.Type == "true or false" {
				one.NoOptDefVal = "true"
			}
		}
	}
}

// describe gives a flag the help and the default of a method's setting.
func describe(f *pflag.Flag, method string, s plan.Setting) {
	if f.Usage = s.Help; len(s.Choices) > 0 {
		f.Usage += ": " + strings.Join(s.Choices, ", ")
	}
	usual := plan.Defaults(method, "")
	usual.Method = plan.Methods()[0]
	f.DefValue = usual.Get(s)
}

// GivenSettings returns the settings that flags set.
func GivenSettings(f *pflag.FlagSet) map[string]string {
	given := make(map[string]string)
	f.Visit(func(one *pflag.Flag) {
		if v, ok := one.Value.(*settingValue); ok {
			given[v.setting.Name] = v.text
		}
	})
	return given
}

// sections are those of a method's help, in order. Flags that are not settings are in the first or the last one.
func sections(method string) []string {
	all := []string{"data"}
	for _, s := range plan.Settings(method) {
		if !slices.Contains(all, s.Group) {
			all = append(all, s.Group)
		}
	}
	return append(all, "output")
}

// FlagSection annotates a flag that does not set a field of a plan with its section of the help.
const FlagSection = "section"

// GroupFlags groups the flags in c's help by section. Settings are those of the method that --method names, or of the
// default. The flags in data, besides settings, are in section data.
func GroupFlags(c *cobra.Command, data ...string) {
	c.Flags().SortFlags = false
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		writeUsage(w, c)
		method := plan.Methods()[0]
		if f := c.Flags().Lookup("method"); f != nil && f.Changed && len(plan.Settings(f.Value.String())) > 0 {
			method = f.Value.String()
		}
		of := map[string]*pflag.FlagSet{}
		var more []string // sections
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := "output"
			if v, ok := f.Value.(*settingValue); ok {
				s, ok := plan.Lookup(method, v.setting.Name)
				if !ok {
					return
				}
				name = s.Group
				describe(f, method, s)
			} else if in := f.Annotations[FlagSection]; len(in) > 0 {
				name = in[0]
				more = append(more, name)
			} else if slices.Contains(data, f.Name) {
				name = "data"
			}
			if of[name] == nil {
				of[name] = pflag.NewFlagSet("", pflag.ContinueOnError)
				of[name].SortFlags = false
			}
			of[name].AddFlag(f)
		})
		slices.Sort(more)
		for _, name := range slices.Concat(sections(method), slices.Compact(more)) {
			if s := of[name]; s != nil && s.HasAvailableFlags() {
				fmt.Fprintf(w, "\n%s:\n%s", strings.ToUpper(name[:1])+name[1:], flagUsages(s))
			}
		}
		if c.Flags().Lookup("method") != nil {
			fmt.Fprintf(w, "\nThese are the settings of %s. For another method: --method NAME --help\n", method)
		}
		return nil
	})
}

// IsSetting reports whether f is the flag of a setting.
func IsSetting(f *pflag.Flag) bool {
	_, is := f.Value.(*settingValue)
	return is
}
