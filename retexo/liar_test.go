package retexo

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// deceiver changes what one peer gives to reductions of one kind.
type deceiver struct {
	comm.Reducer
	kind string
	lie  func(c *comm.Contribution)
}

func (l deceiver) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind == l.kind {
		l.lie(c)
	}
	return l.Reducer.Reduce(ctx, c)
}

// TestLiesEndTheRun: what one of three peers sends that no data explain ends the run at the others; where one of them
// sees what it sent, by its name.
func TestLiesEndTheRun(t *testing.T) {
	g := toy{}.graph(t)
	pca := configOf(t, g, Design{Model: "gcn", Encoder: "pca", Components: 3, LayerOutput: "hidden", Layers: 1,
		Hidden: 1, Hops: 1})
	trained := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 4,
		Hops: 1})
	trained.Rounds = 3
	scaled := func(by float32) func(c *comm.Contribution) {
		return func(c *comm.Contribution) {
			for i := range c.Update {
				c.Update[i] *= by
			}
		}
	}
	for name, test := range map[string]struct {
		config Config
		kind   string
		lie    func(c *comm.Contribution)
		want   string
		named  bool
	}{
		"negative labels": {trained, ofLabels, func(c *comm.Contribution) { c.Counts[1] = -7 },
			"a label count must be at most 60 (got 65529)", true},
		"long rows of pca":     {pca, ofProducts, scaled(1e9), "a product with the Gram matrix must be", true},
		"large projected rows": {pca, "projected Gram matrix", scaled(1e3), "the projected Gram matrix", true},
		"negative projected one": {pca, "projected Gram matrix", scaled(-1),
			"the projected Gram matrix's diagonal must be at least 0", true},
		"many labels": {trained, ofRound, func(c *comm.Contribution) { c.Counts[5] = 1e9 },
			"the labels that a round learns from must be 0 to", false},
		"negative labels learnt": {trained, ofRound, func(c *comm.Contribution) { c.Counts[5] = -1e6 },
			"the labels that a round learns from must be 0 to", false},
		"validation nodes": {trained, ofValidation, func(c *comm.Contribution) { c.Counts[5] += 1e6 },
			"the labelled validation nodes must be at most", false},
		"NaN in a gradient": {trained, ofRound, func(c *comm.Contribution) { c.Update[3] = float32(math.NaN()) },
			"update[3] must be finite (got NaN)", true},
	} {
		t.Run(name, func(t *testing.T) {
			shards := cut(t, g, "random", 3)
			net := netsim.New(3, netsim.Config{})
			errs := make([]error, 3)
			done := make(chan bool)
			for r, s := range shards {
				go func() {
					defer func() { done <- true }()
					m, err := test.config.NewModel()
					if err != nil {
						panic(err)
					}
					tr, err := New(test.config, s, m)
					if err != nil {
						panic(err)
					}
					group := comm.NewGroup(net.Transport(r), r, 3)
					defer group.Close()
					var by comm.Reducer = group
					if r == 1 {
						by = deceiver{group, test.kind, test.lie}
					}
					errs[r] = group.Refuse(within(t), tr.Run(within(t), group, by))
				}()
			}
			for range shards {
				<-done
			}
			for r, err := range errs {
				at, ok := errors.AsType[*comm.PeerError](err)
				if r != 1 && (!errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), test.want) ||
					test.named && (!ok || at.Rank != 1)) {
					t.Errorf("peer %d must refuse what peer 1 sent since %q (got %v)", r, test.want, err)
				}
			}
		})
	}
}
