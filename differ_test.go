package heddle

import (
	"errors"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/p2p"
)

// TestDifferences: settings that differ, or that one of two plans does not read, are named once, in the plan's order.
// Sites may differ in some settings.
func TestDifferences(t *testing.T) {
	said := func(a, b Plan) string {
		fault := &p2p.MemberMismatchError{Name: "north", OurPlan: a.Agreed(), PeerPlan: b.Agreed()}
		text, _ := strings.CutPrefix(p2p.Explained(fault).Error(), fault.Error()+". ")
		return text
	}
	a := Defaults("layer-wise", "")
	b := a
	b.Gradient().LR, b.Gradient().Solver, b.Gradient().Momentum = 0.5, "sgd", 0.9
	want := `Settings that differ: solver is "adam" at this site and "sgd" at north; ` +
		`lr is "0.01" at this site and "0.5" at north; momentum is not read at this site and "0.9" at north`
	if got := said(a, b); got != want {
		t.Errorf("%q, must be %q", got, want)
	}
	b = a
	b.Gradient().CheckpointEvery, b.Relays, b.Link, b.Policy = 3, []string{"/ip4/10.0.0.1/tcp/1/p2p/12D3"},
		"rate=5Mbit", "fennel"
	if got := said(a, b); !strings.HasPrefix(got, "The settings are the same") {
		t.Errorf("sites may differ in %q", got)
	}
	if err := errors.New("another"); p2p.Explained(err) != err {
		t.Error("an error that is not about plans changes")
	}
}
