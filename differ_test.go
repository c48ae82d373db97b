package heddle

import (
	"reflect"
	"testing"
)

// TestDifferences: settings that differ, or that one of two plans does not read, are named once, in the plan's order.
func TestDifferences(t *testing.T) {
	a := Defaults(Plan{})
	b := a
	b.LR, b.Solver, b.Momentum = 0.5, "sgd", 0.9
	want := []difference{{"solver", `"adam"`, `"sgd"`}, {"lr", `"0.003"`, `"0.5"`}, {"momentum", "not read", `"0.9"`}}
	if got := differences(a.agreed(), b.agreed()); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	b = a
	b.CheckpointEvery, b.Relays, b.Link, b.Policy = 3, []string{"/ip4/10.0.0.1/tcp/1/p2p/12D3"}, "rate=5Mbit", "ldg"
	if got := differences(a.agreed(), b.agreed()); got != nil {
		t.Errorf("sites may differ in %q", got)
	}
}
