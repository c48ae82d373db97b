package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Record is what a run keeps next to its checkpoints: a settings file, with which it continues.
type Record struct {
	Path     string // of the record itself
	Again    string // command that continues the run
	Settings []byte // as a settings file
}

// again is what the line with the command begins with.
const again = "# To continue: "

// RecordOf is the place of the record of checkpoints in state.
func RecordOf(state string) string { return filepath.Join(state, "run.yaml") }

// ReadRecord reads the record of checkpoints in state, or returns nil if there is none.
func ReadRecord(state string) (*Record, error) {
	text, err := os.ReadFile(RecordOf(state))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head, settings, _ := bytes.Cut(text, []byte("\n"))
	r := &Record{Path: RecordOf(state), Settings: settings}
	r.Again, _ = strings.CutPrefix(string(head), again)
	return r, nil
}

// Keep writes r durably.
func (r Record) Keep() error {
	if err := disk.MkdirAll(disk.OS{}, filepath.Dir(r.Path), 0o700); err != nil {
		return err
	}
	return disk.WriteFile(disk.OS{}, r.Path, 0o600, []byte(again+r.Again+"\n"+string(r.Settings)))
}

// Differ names the settings in which now, as a settings file, differs from the record.
func (r *Record) Differ(now []byte) (all []string, err error) {
	names, before, err := values(r.Settings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	more, after, err := values(now)
	if err != nil {
		return nil, err
	}
	for _, name := range append(names, more...) {
		s, known := plan.Lookup("", name)
		// init is the digest of init_file
		if before[name] == after[name] || known && s.Local || name == "out" || name == "init_file" {
			continue
		}
		show := func(text string) string {
			if text == "" {
				return "not set"
			}
			return text
		}
		all = append(all, fmt.Sprintf("%s is %s, and was %s", name, show(after[name]), show(before[name])))
		before[name] = after[name]
	}
	return all, nil
}

// Value returns a setting of the record as text, or "" if it has none of that name.
func (r *Record) Value(name string) string {
	_, of, err := values(r.Settings)
	if err != nil {
		return ""
	}
	return of[name]
}

// values returns the values of a settings file by name, from all its sections, in order.
func values(text []byte) (names []string, of map[string]string, err error) {
	var all yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.UseOrderedMap()); err != nil {
		return nil, nil, err
	}
	of = map[string]string{}
	for len(all) > 0 {
		one := all[0]
		all = all[1:]
		if section, ok := one.Value.(yaml.MapSlice); ok {
			all = append(section, all...)
			continue
		}
		value, err := yaml.Marshal(one.Value)
		if err != nil {
			return nil, nil, err
		}
		name := fmt.Sprint(one.Key)
		names, of[name] = append(names, name), strings.Join(strings.Fields(string(value)), " ")
	}
	return names, of, nil
}

// Explain adds to an error about the checkpoints of another run in which settings that run differs
// from now, a settings file. Other errors stay as they are.
func Explain(err error, state string, now []byte) error {
	var other *checkpoint.MismatchError
	if !errors.As(err, &other) {
		return err
	}
	r, reading := ReadRecord(state)
	if r == nil || reading != nil {
		return err
	}
	differ, reading := r.Differ(now)
	switch {
	case reading != nil:
		return err
	case len(differ) == 0:
		return fmt.Errorf("%w. The settings are the same: the data or the version of this program differ", err)
	}
	return fmt.Errorf("%w. Settings that differ from the interrupted run: %s", err, strings.Join(differ, "; "))
}
