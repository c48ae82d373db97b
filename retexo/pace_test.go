package retexo

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// TestSharesAddUpToTheWhole: over the rounds in which all training nodes have their turn, the gradients of shares, each node for
// as many as it stands for, have the gradient of all nodes as their mean; so have loss and count.
func TestSharesAddUpToTheWhole(t *testing.T) {
	g := toy{nodes: 520}.graph(t)
	for _, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 2},
		{Model: "gat", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Heads: 2, Hops: 1},
	} {
		c := configOf(t, g, p)
		c.Survival.Straggler, c.Balanced = "adapt", true
		tr, _ := atRound(t, c, g, 1)
		if err := tr.enter(1); err != nil {
			t.Fatal(err)
		}
		st := tr.stage
		n := st.train.rows
		turns := n / 35
		share := float64(n/turns) / float64(n)
		loss, count := st.update(c, st.train, 1, 1, 0)
		want := slices.Clone(st.slab.Grad)
		mean := make([]float64, len(want))
		var losses, counts float64
		rounds := n // n rounds of n/turns nodes: each has had as many turns
		seen := map[int64]int{}
		for r := range rounds {
			b, each := tr.sample(work{Kind: doRound, Stage: 1, Round: r, Share: share})
			if b.rows != n/turns {
				t.Fatalf("%s: %d of %d nodes, want %d", p.Model, b.rows, n, n/turns)
			}
			for _, i := range b.in.Nodes[:b.rows] {
				seen[i]++
			}
			s, k := st.update(c, b, each, 1, r)
			losses, counts = losses+s/float64(rounds), counts+k/float64(rounds)
			for i, v := range st.slab.Grad {
				mean[i] += float64(v) / float64(rounds)
			}
		}
		if len(seen) != n {
			t.Errorf("%s: %d of %d nodes had a turn", p.Model, len(seen), n)
		}
		for i, k := range seen {
			if k != n/turns {
				t.Errorf("%s: node %d had %d turns, want %d", p.Model, i, k, n/turns)
			}
		}
		if math.Abs(losses-loss) > 1e-4*loss || math.Abs(counts-count) > 1e-4*count {
			t.Errorf("%s: loss %v of %v labels, want %v of %v", p.Model, losses, counts, loss, count)
		}
		for i, v := range want {
			if math.Abs(mean[i]-float64(v)) > 1e-3 {
				t.Errorf("%s: gradient[%d] is %v in the mean, want %v", p.Model, i, mean[i], v)
			}
		}
	}
}

// TestStragglerAdapts: one of four peers takes eight times as long for a node, for a while. It is given less work, which
// makes rounds as short as they are without it but for what cannot be made less; it has all of its work back when it is
// fast again; all members decide alike and end with the same bits, as good a model as that of a run that waits.
func TestStragglerAdapts(t *testing.T) {
	const slow, perNode = 2, time.Millisecond
	g := toy{nodes: 4000}.graph(t)
	for _, local := range []int{1, 3} {
		shards := cut(t, g, "random", 4)
		accuracy := map[string]float64{}
		for _, straggler := range []string{"", "adapt"} {
			c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 1})
			c.Rounds, c.LocalSteps, c.Survival.Straggler = 60, local, straggler
			synctest.Test(t, func(t *testing.T) {
				took := make([]time.Duration, c.Rounds) // of each round
				last := time.Now()
				r := mustTrain(t, c, shards, func(rank int, tr *Trainer) {
					tr.busy = func(nodes int) {
						each := perNode
						if at := tr.machine.at.Round; rank == slow && 10 <= at && at < 40 {
							each *= 8
						}
						time.Sleep(time.Duration(nodes) * each)
					}
					if rank == 0 {
						on(tr, train.RoundEnd, func(i train.Event) { took[i.Round], last = time.Since(last), time.Now() })
					}
				})
				accuracy[straggler] = r.result[0].Stages[0].Test
				if straggler == "" {
					return
				}
				shares := r.result[0].Shares
				t.Logf("%d local steps: %+v; rounds took %v before, %v at first, %v with less work, %v after", local, shares, took[5], took[12], took[35], took[55])
				for rank := range 4 {
					if !reflect.DeepEqual(r.result[rank].Shares, shares) {
						t.Errorf("peer %d has seen shares %+v, peer 0 %+v", rank, r.result[rank].Shares, shares)
					}
				}
				if took[12] < 6*took[5] || took[35] > 2*took[5] || took[55] > took[5]*11/10 {
					t.Error("the slow peer was not adapted to")
				}
				for _, s := range shares {
					if s.Peer != slow || s.Round < 10 {
						t.Errorf("%+v, want changes of peer %d after round 10 only", s, slow)
					}
				}
				if len(shares) < 2 || shares[0].Share > 0.2 || shares[len(shares)-1].Share != 1 {
					t.Errorf("shares %+v, want at first about an eighth, at last all", shares)
				}
			})
		}
		t.Logf("%d local steps: test accuracy %.4f adapting, %.4f waiting", local, accuracy["adapt"], accuracy[""])
		if accuracy["adapt"] < accuracy[""]-0.03 { // of some 1200 test nodes
			t.Errorf("%d local steps: test accuracy %.4f, waiting gives %.4f", local, accuracy["adapt"], accuracy[""])
		}
	}
}

// TestPaceOfAGeneration: when a member is lost, those who go on give everybody all of its work again, and adapt anew.
func TestPaceOfAGeneration(t *testing.T) {
	g := toy{nodes: 4000}.graph(t)
	synctest.Test(t, func(t *testing.T) {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 4, Hops: 1})
		c.Rounds, c.Survival = 30, recovery.Survival{MinPeers: 3, FailedRows: "drop", Straggler: "adapt"}
		all := trainersOf(t, c, cut(t, g, "random", 4))
		network := netsim.New(4, netsim.Config{})
		for r, tr := range all {
			tr.busy = func(nodes int) {
				each := time.Millisecond
				if r == 1 {
					each *= 4
				}
				time.Sleep(time.Duration(nodes) * each)
				if r == 3 && tr.machine.at.Round == 12 && len(tr.Result().Generations) == 1 {
					network.Lose(3)
				}
			}
		}
		errs := make([]error, 4)
		done := make(chan bool)
		for r, tr := range all {
			go func() {
				group := comm.NewGroup(network.Transport(r), r, 4)
				if errs[r] = group.Agree(t.Context(), []bool{true, true, true, true}, nil, 3, 0); errs[r] == nil {
					errs[r] = tr.Run(t.Context(), group, group)
				}
				group.Close()
				done <- true
			}()
		}
		for range all {
			<-done
		}
		for r, err := range errs[:3] {
			if _, ok := errors.AsType[*comm.PeerError](err); !ok {
				t.Fatalf("peer %d: %v, want a PeerError", r, err)
			}
		}
		all[3] = nil
		if err := errors.Join(together(t, all, 3, -1, nil)...); err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, s := range all[0].Result().Shares {
			if s.Peer == 1 {
				got = append(got, math.Round(8*s.Share)/8)
			}
		}
		if want := []float64{0.25, 1, 0.25}; !slices.Equal(got, want) {
			t.Errorf("shares of the slow peer: %v, want %v", got, want)
		}
		for _, r := range []int{1, 2} {
			if !reflect.DeepEqual(all[r].Result().Shares, all[0].Result().Shares) {
				t.Errorf("peer %d has seen shares %+v, peer 0 %+v", r, all[r].Result().Shares, all[0].Result().Shares)
			}
		}
	})
}
