package retexo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/recovery"
	"github.com/heddle-gnn/heddle/train/session"
)

func TestSurvivalNeedsAllOfTheGraph(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	c.Survival, c.Inductive = recovery.Survival{MinPeers: 3, FailedRows: "drop"}, true
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "inductive") {
		t.Errorf("%v, want a word on inductive", err)
	}
}

// together runs one generation of the given trainers (nil: not there) and returns their errors. delay, if not nil, is
// how long a member takes to send; without is whom rank 0 will not go on with, −1: nobody.
func together(t *testing.T, trainers []*Trainer, least, without int, delay func(rank int) time.Duration) []error {
	t.Helper()
	size := len(trainers)
	network := netsim.New(size, netsim.Config{})
	here, errs := make([]bool, size), make([]error, size)
	for r, tr := range trainers {
		here[r] = tr != nil
	}
	var all sync.WaitGroup
	for r, tr := range trainers {
		if tr == nil {
			continue
		}
		all.Go(func() {
			transport := &spy{Transport: network.Transport(r), see: func(int, comm.Door, []byte) {
				if delay != nil {
					time.Sleep(delay(r))
				}
			}}
			g := comm.NewGroup(transport, r, size)
			last, err := tr.Generation()
			no := make([]bool, size)
			if r == 0 && without >= 0 {
				no[without] = true
			}
			if err == nil {
				err = g.Agree(t.Context(), here, no, least, last)
			}
			if err == nil {
				err = tr.Run(t.Context(), g, g)
			}
			errs[r] = err
			g.Close()
		})
	}
	all.Wait()
	return errs
}

func trainersOf(t *testing.T, c Config, shards []*shard.Shard) []*Trainer {
	t.Helper()
	all := make([]*Trainer, len(shards))
	for r, s := range shards {
		m, err := c.NewModel()
		if err != nil {
			t.Fatal(err)
		}
		if all[r], err = New(c, s, m); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestDropIsTheGraphWithoutTheLost: three of four peers that go without the rows of the fourth train as four do over the
// graph in which its nodes have no edges and no labels.
func TestDropIsTheGraphWithoutTheLost(t *testing.T) {
	const lost = 2
	for _, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 2, Dropout: 0.3},
		{Model: "sage", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1},
		{Model: "gin", Encoder: "raw", LayerOutput: "logits", Layers: 1, Hidden: 8, Hops: 2},
		{Model: "gat", Encoder: "mlp", LayerOutput: "hidden", Layers: 2, Hidden: 8, Heads: 2, Hops: 1},
	} {
		for _, sparse := range []bool{false, true} {
			g := toy{sparse: sparse, hasWeights: p.Model == "gcn"}.graph(t)
			c := configOf(t, g, p)
			shards := cut(t, g, "random", 4)
			c.Survival = recovery.Survival{MinPeers: 3, FailedRows: "drop"}
			some := trainersOf(t, c, shards)
			some[lost] = nil
			if err := errors.Join(together(t, some, 3, -1, nil)...); err != nil {
				t.Fatal(err)
			}

			bare := *g
			bare.Split = slices.Clone(g.Split)
			mark := make([]graph.Split, g.N())
			for _, i := range shards[lost].Global[:shards[lost].Owned] {
				bare.Split[i], mark[i] = graph.None, graph.Test
			}
			bare.Adj = *g.Adj.Without(mark, graph.Test)
			c.Survival = recovery.Survival{}
			want := mustTrain(t, c, cut(t, &bare, "random", 4), nil)
			sameCurve(t, p.name(), want.result[0].Curve(), some[0].Result().Curve(), 1e-4)
			rows := 0
			for _, r := range []int{0, 1, 3} {
				for _, info := range some[r].Result().LostRows {
					if info.Peer != lost || info.Action != "drop" || info.Rows != shards[r].HaloPtr[lost+1]-shards[r].HaloPtr[lost] {
						t.Errorf("%s: peer %d did %+v", p.name(), r, info)
					}
					rows += info.Rows
				}
			}
			if rows == 0 {
				t.Errorf("%s: nothing was dropped", p.name())
			}
		}
	}
}

// TestPreviousRows: the rows of the exchange before stand for those of a lost peer where they are as wide, and edges are
// dropped where they are not. A peer that comes back gets rows computed for it, and everybody has its rows again.
func TestPreviousRows(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 3, Hidden: 8, Hops: 1})
	c.Rounds, c.Survival = 4, recovery.Survival{MinPeers: 3, FailedRows: "previous"}
	all := trainersOf(t, c, cut(t, g, "random", 4))
	gone := errors.New("gone")
	on(all[3], train.RoundEnd, func(i train.Event) {
		if i.Stage == 2 && i.Round == 2 {
			panic(gone)
		}
	})
	lose := func() []error {
		network := netsim.New(4, netsim.Config{})
		errs := make([]error, 4)
		var wait sync.WaitGroup
		for r, tr := range all {
			wait.Go(func() {
				defer func() {
					if r == 3 && recover() != nil {
						network.Lose(3)
					}
				}()
				g := comm.NewGroup(network.Transport(r), r, 4)
				if errs[r] = g.Agree(t.Context(), []bool{true, true, true, true}, nil, 3, 0); errs[r] == nil {
					errs[r] = tr.Run(t.Context(), g, g)
				}
				g.Close()
			})
		}
		wait.Wait()
		return errs
	}
	for r, err := range lose()[:3] {
		if lost, ok := errors.AsType[*comm.PeerError](err); !ok {
			t.Fatalf("peer %d: %v, want a PeerError", r, lost)
		}
	}
	fresh := trainersOf(t, c, cut(t, g, "random", 4))[3]
	all[3] = nil
	for _, tr := range all[:3] { // the lost one is back in the third stage
		tr.RejoinAsked = func() bool { return tr.machine.at.Stage == 3 && tr.machine.at.Round == 1 }
	}
	for r, err := range together(t, all, 3, -1, nil)[:3] {
		if !errors.Is(err, session.ErrRejoin) {
			t.Fatalf("peer %d: %v, want session.ErrRejoin", r, err)
		}
		stood := all[r].Result().LostRows
		if len(stood) != 1 || stood[0].Stage != 3 || stood[0].Peer != 3 || stood[0].Action != "previous" {
			t.Errorf("peer %d did %+v, want the previous rows of peer 3 at stage 3", r, stood)
		}
	}
	before := slices.Clone(all[0].full.src.Dense.Data)
	all[3] = fresh
	if err := errors.Join(together(t, all, 3, -1, nil)...); err != nil {
		t.Fatal(err)
	}
	var models []*nn.Model
	for _, tr := range all {
		models = append(models, tr.model)
		if i := tr.Result().Generations[len(tr.Result().Generations)-1]; i.Stage != 3 || i.Round != 2 || len(i.Members) != 4 {
			t.Errorf("the last generation is %+v, want all four from stage 3, round 2", i)
		}
		if n := len(tr.Result().Curve()); n != 12 {
			t.Errorf("%d rounds are in the result, want 12", n)
		}
	}
	sameModels(t, models)
	if slices.Equal(before, all[0].full.src.Dense.Data) {
		t.Error("with the lost peer back, its earlier rows are still used")
	}
}

// TestSlowPeer: a peer that is slower than the limit is named, by its rank, and the others go on without it.
func TestSlowPeer(t *testing.T) {
	g := toy{}.graph(t)
	for _, hidden := range []int{4, 400} { // short vectors have one owner, long ones many
		for slow := range 4 {
			synctest.Test(t, func(t *testing.T) {
				c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: hidden, Hops: 1})
				c.Rounds, c.Survival = 3, recovery.Survival{MinPeers: 3, FailedRows: "drop", Straggler: "drop", RoundLimit: time.Second}
				all := trainersOf(t, c, cut(t, g, "random", 4))
				errs := together(t, all, 3, -1, func(rank int) time.Duration {
					if all[rank].machine.next.Work.Kind == doRound && all[rank].machine.at.Round == 1 && rank == slow {
						return time.Minute
					}
					return time.Millisecond
				})
				named := false
				for r, err := range errs {
					lost, ok := errors.AsType[*comm.PeerError](err)
					if !ok {
						if r != slow || !errors.Is(err, session.ErrSlow) { // its own frames are what it waited for
							t.Errorf("peer %d: %v, want a PeerError", r, err)
						}
						continue
					}
					if errors.Is(err, session.ErrSlow) && r != slow {
						named = true
						if lost.Rank != slow {
							t.Errorf("peer %d takes peer %d for slow, not %d: %v", r, lost.Rank, slow, err)
						}
					}
				}
				if !named {
					t.Errorf("nobody says that peer %d is slow: %v", slow, errs)
				}
				if slow == 0 {
					return
				}
				errs = together(t, all, 3, slow, nil)
				for r, err := range errs {
					if r == slow && !errors.Is(err, comm.ErrLeftOut) || r != slow && err != nil {
						t.Errorf("peer %d: %v", r, err)
					}
				}
			})
		}
	}
}

// TestSharedState: what others fetch has the optimiser's moments where all take the same steps, and not where each has
// seen its own gradients only.
func TestSharedState(t *testing.T) {
	g := toy{}.graph(t)
	for _, local := range []int{1, 3} {
		c := configOf(t, g, everyPlan()[0])
		c.LocalSteps = local
		tr, _ := atRound(t, c, g, 2)
		if err := tr.enter(2); err != nil {
			t.Fatal(err)
		}
		tr.machine.at.Round = 1
		if whole := tr.state(); len(whole.Moments) == 0 || len(whole.Slab) == 0 || len(whole.Slab) > tr.participant().Shape.Slab {
			t.Errorf("%d moments, %d parameters in training of at most %d", len(whole.Moments), len(whole.Slab), tr.participant().Shape.Slab)
		}
		if shared := tr.shared(); (local == 1) != (len(shared.Moments) > 0) {
			t.Errorf("%d local steps: %d moments travel", local, len(shared.Moments))
		}
	}
}

// TestGroupMustHaveAgreed: a run that goes on without lost peers refuses a group of nobody knows whom.
func TestGroupMustHaveAgreed(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	c.Survival = recovery.Survival{MinPeers: 2}
	tr := trainersOf(t, c, cut(t, g, "random", 2))[0]
	group := comm.NewGroup(netsim.New(2, netsim.Config{}).Transport(0), 0, 2)
	if err := tr.Run(context.Background(), group, group); err == nil || !strings.Contains(err.Error(), "no generation") {
		t.Errorf("%v, want a word on the generation", err)
	}
}
