package compare

import (
	"errors"
	"testing"
)

// Every way to train on every graph is a sound plan.
func TestPlansAreSound(t *testing.T) {
	for graph, s := range tuned {
		for _, w := range ways {
			p := w.plan(s)
			if err := errors.Join(p.Validate(), p.Only("train")); err != nil {
				t.Errorf("%s, %s: %v", graph, w.name, err)
			}
		}
	}
}
