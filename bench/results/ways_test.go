package results

import (
	"errors"
	"testing"
)

// Every way to train on every data set is a sound plan.
func TestWaysAreSound(t *testing.T) {
	sound := func(e experiment) {
		t.Helper()
		if err := errors.Join(e.Validate(), e.Only("train")); err != nil {
			t.Errorf("%s, %s: %v", e.Name, e.setting(), err)
		}
	}
	for _, g := range ownChoices {
		e, err := planned("frugal", g.data, "")
		if err != nil {
			t.Fatal(err)
		}
		sound(e)
		policy, peers := "random", 4
		if g.data == "twitch" {
			policy, peers = "by-column", 7
		}
		if e.Policy != policy || e.Peers != peers {
			t.Errorf("%s: policy %s, %d peers", g.data, e.Policy, e.Peers)
		}
		for _, w := range ways {
			r, err := w.row(g.data, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range append(r.grid, func(*experiment) {}) {
				e := r.onData(g.data)
				change(&e)
				sound(e)
			}
		}
	}
}

// Settings are read as the command line reads them.
func TestParse(t *testing.T) {
	for _, bad := range []string{"--hops=2 more", "--hops=two", "--no-such-setting=1", "--carry=scores"} {
		if _, err := planned("x", "cora", bad); err == nil {
			t.Errorf("%q must be refused", bad)
		}
	}
	e, err := planned("x", "tolokers", "--method layer-wise --hops=3 --hidden=64")
	if err != nil || e.Gradient().Hops != 3 || e.Gradient().Hidden != 64 || e.Peers != 4 || e.Metric != "auc" {
		t.Errorf("hops %d, hidden %d, peers %d, metric %s: %v", e.Gradient().Hops, e.Gradient().Hidden, e.Peers,
			e.Metric, err)
	}
}
