package results

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/bench/page"
)

// Every row of every table, and every variant among which validation chooses, is a sound plan.
func TestPlansAreSound(t *testing.T) {
	for _, table := range tables() {
		for _, data := range table.data {
			for _, r := range table.rows(data) {
				for _, change := range append(r.grid, func(*experiment) {}) {
					e := r.experiment
					change(&e)
					if err := errors.Join(e.Validate(), e.Only("train")); err != nil {
						t.Errorf("%s, %s, %s: %v", table.name, data, e.setting(), err)
					}
				}
			}
		}
	}
}

// The setting of a row repeats it: only what differs from the defaults is named.
func TestSetting(t *testing.T) {
	e := quick()
	want := "--data cora --method=layer-wise --row-norm=l2 --metric=accuracy --encoder=pca:16 --layers=1 " +
		"--hidden=64 --rounds=60 --dropout=0.5 --exchange=halo --peers=4 --policy=random"
	if got := e.setting(); got != want {
		t.Errorf("setting must be\n%s (got\n%s)", want, got)
	}
}

// Every command of heddle train in the figures is still a sound plan, under today's names.
func TestCommandsOfFigures(t *testing.T) {
	files, err := filepath.Glob("*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		lines, err := page.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			flags, ok := strings.CutPrefix(l.Command, "heddle train ")
			if !ok || tried[flags] {
				continue
			}
			tried[flags] = true
			plan, err := parse(withoutData(strings.Fields(flags)))
			if err == nil {
				err = errors.Join(plan.Validate(), plan.Only("train"))
			}
			if err != nil {
				t.Errorf("%s: %s: %v", file, l.Command, err)
			}
		}
	}
	if len(tried) < 10 {
		t.Errorf("found %d commands", len(tried))
	}
}

// withoutData leaves out the flags that are not settings.
func withoutData(args []string) (settings []string) {
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--data", "--split", "--seeds":
			i++
		default:
			settings = append(settings, args[i])
		}
	}
	return settings
}
