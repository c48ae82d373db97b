package retexo

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/train"
)

// TestCostsBeforeAnythingTravels: a closed form that no site would wait for is refused when its trainer is made, and a
// long one is announced once.
func TestCostsBeforeAnythingTravels(t *testing.T) {
	g := toy{features: 5000, sparse: true}.graph(t)
	c := configOf(t, g, Design{Model: "gcn", Encoder: "pca", Components: 1000, LayerOutput: "hidden", Layers: 1,
		Hidden: 1, Hops: 1})
	s := cut(t, g, "random", 2)[0]
	start := func() (*Trainer, error) {
		m, err := c.NewModel()
		if err != nil {
			t.Fatal(err)
		}
		return New(c, s, m)
	}
	tr, err := start()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	tr.OnEvent = func(e train.Event) { said = append(said, string(e.Kind)+": "+e.Text) }
	group := comm.NewGroup(netsim.New(2, netsim.Config{}).Transport(0), 0, 2)
	defer group.Close()
	tr.join(group, group)
	tr.warnOfCosts()
	tr.warnOfCosts()
	if len(said) != 1 || !strings.HasPrefix(said[0], "warning: encoder pca:1000 over 5000 features takes about") ||
		group.Bytes().Total() != 0 {
		t.Errorf("said %q after %d bytes, want one warning before any", said, group.Bytes().Total())
	}
	s.HaloPtr, s.Boundary = []int{0, 0, 1 << 19}, [][]int32{nil, make([]int32, 1<<19)}
	said, tr.warned, tr.config.Spec.Layers[0].Hops = nil, false, 2
	if tr.warnOfCosts(); len(said) != 2 || !strings.Contains(said[0], "up to 4194 MB of rows, of 524288 nodes") {
		t.Errorf("said %q, want a warning of the rows", said)
	}
	c = configOf(t, g, Design{Model: "gcn", Encoder: "pca", Components: 1025, LayerOutput: "hidden", Layers: 1,
		Hidden: 1, Hops: 1})
	if _, err := start(); err == nil || !strings.Contains(err.Error(), "components must be at most 1024") {
		t.Errorf("%v, want that 1025 components are refused", err)
	}
}
