package cli

import (
	"encoding/json"
	"testing"
)

// TestOverRuns: a mean needs a figure of every run.
func TestOverRuns(t *testing.T) {
	t.Parallel()
	runs := []RunOfAll{{Split: 1}, {Split: 0}}
	b, err := json.Marshal(over(runs, func(r RunOfAll) *float64 { return r.Test }))
	if err != nil || string(b) != `{"mean":null,"deviation":null}` {
		t.Errorf("without test nodes: %s, %v", b, err)
	}
}
