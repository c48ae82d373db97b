package results

import (
	"errors"
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
	e := frugal(64, 2)
	e.Data = "cora"
	want := "--data cora --preset=frugal --encoder=pca:64 --hops=2 --metric=accuracy --exchange=halo --peers=4"
	if got := e.setting(); got != want {
		t.Errorf("setting must be\n%s (got\n%s)", want, got)
	}
}
