package cli

import (
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
			one := described(&pflag.Flag{Name: s.Flag, Value: &settingValue{setting: s}}, method, s)
			if one.Hidden = s.Experimental; s.Type == "true or false" {
				one.NoOptDefVal = "true"
			}
			f.AddFlag(one)
		}
	}
}

// described returns f with the help and the default of a method's setting.
func described(f *pflag.Flag, method string, s plan.Setting) *pflag.Flag {
	one := *f
	if one.Usage = s.Help; len(s.Choices) > 0 {
		one.Usage += " (" + strings.Join(s.Choices, ", ") + ")"
	}
	usual := plan.Defaults(method, "")
	usual.Method = plan.Methods()[0]
	one.DefValue = usual.Get(s)
	return &one
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

// FlagSection annotates a flag with the title under which --help-all lists it.
const FlagSection = "section"

// settingBlock is flags under a title.
type settingBlock struct {
	title string
	flags *pflag.FlagSet
}

// settingBlocks returns the flags of c's settings with the defaults of a method or, without one, of each method those
// that differ from the methods before it.
func settingBlocks(c *cobra.Command, method string) (all []settingBlock) {
	methods, listed := plan.Methods(), map[string]bool{}
	if method != "" {
		methods = []string{method}
	}
	for _, one := range methods {
		b := settingBlock{"Settings of " + one, newFlagSet()}
		if len(all) > 0 {
			b.title = "Other settings of " + one
		}
		for _, s := range plan.Settings(one) {
			if f := c.LocalFlags().Lookup(s.Flag); f != nil && IsSetting(f) {
				if f = described(f, one, s); !listed[f.Name+f.Usage+f.DefValue] {
					listed[f.Name+f.Usage+f.DefValue] = true
					b.flags.AddFlag(f)
				}
			}
		}
		all = append(all, b)
	}
	return all
}

// IsSetting reports whether f is the flag of a setting.
func IsSetting(f *pflag.Flag) bool {
	_, is := f.Value.(*settingValue)
	return is
}
