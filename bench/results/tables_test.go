package results

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
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
	want := "--data cora --method=layer-wise --encoder=pca:16 --layers=1 --hidden=64 --row-norm=l2 --rounds=60 --dropout=0.5 " +
		"--metric=accuracy --exchange=halo --peers=4 --policy=random"
	if got := e.setting(); got != want {
		t.Errorf("setting must be\n%s (got\n%s)", want, got)
	}
}

// Every settings line of the page of results is still a sound plan, under today's names; but ridge on components, which was
// measured before it was taken away (docs/adr/0084-no-components-by-default.md).
func TestRecordedSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/measurements/results.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^  `(--.+)`$").FindAllStringSubmatch(string(text), -1)
	if len(lines) < 80 {
		t.Fatalf("found %d settings lines", len(lines))
	}
	for _, line := range lines {
		args := strings.Fields(line[1])
		if strings.Contains(line[1], "--solver ridge") {
			continue
		}
		if len(args) > 1 && args[0] == "--data" {
			args = args[2:]
		}
		plan, err := parse(args)
		if err == nil {
			err = errors.Join(plan.Validate(), plan.Only("train"))
		}
		if err != nil {
			t.Errorf("%s: %v", line[1], err)
		}
	}
}
