package retexo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// within fails the test, instead of waiting for ever, where a run hangs.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(func() {
		if ctx.Err() != nil {
			t.Error("the run hung")
		}
		cancel()
	})
	return ctx
}

// TestPlansMustAgree starts peers that were told unlike things; all of them refuse, before any row or update leaves.
func TestPlansMustAgree(t *testing.T) {
	g := toy{}.graph(t)
	plain := configOf(t, g, everyPlan()[0])
	shards := cut(t, g, "random", 3)
	other := plain
	other.Seed = 9
	foreign := slices.Clone(shards)
	foreign[1] = cut(t, g, "contiguous", 3)[1]
	for _, test := range []struct {
		name   string
		config func(rank int) Config
		shards []*shard.Shard
		want   string
	}{
		{"plan", func(rank int) Config {
			if rank == 1 {
				return other
			}
			return plain
		}, shards, "has another plan"},
		{"partition", func(int) Config { return plain }, foreign, "has a shard of another partition"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, errs := trainOver(within(t), test.config, test.shards, netsim.New(3, netsim.Config{}).Transports(), nil)
			for rank, err := range errs {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("peer %d: %v, want %q", rank, err, test.want)
				}
			}
			if r.bytes.Halo+r.bytes.Reduce > 0 {
				t.Errorf("%+v left before the plans were compared", r.bytes)
			}
		})
	}
}

// TestNoTrainingNode refuses a graph that has none; one peer without any is TestUpdatesAreWeightedByTrainingNodes.
func TestNoTrainingNode(t *testing.T) {
	g := toy{}.graph(t)
	for i, s := range g.Split {
		if s == graph.Train {
			g.Split[i] = graph.None
		}
	}
	c := configOf(t, g, Design{Model: "gcn", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 1, Hidden: 1,
		Hops: 1})
	_, errs := trainOver(within(t), func(int) Config { return c }, cut(t, g, "random", 3),
		netsim.New(3, netsim.Config{}).Transports(), nil)
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "no peer has a training node") {
			t.Errorf("peer %d: %v", rank, err)
		}
	}
}

// TestNothingToValidate trains where no node is for validation and no class has a training node to spare: the last
// state is taken, and a warning says so.
func TestNothingToValidate(t *testing.T) {
	g := toy{}.graph(t)
	for i := range g.Split {
		g.Split[i] = graph.None
		if i < g.Labels.Classes { // a node of each class
			g.Split[i] = graph.Train
		}
	}
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
	said := make([]string, 2)
	r := mustTrain(t, c, cut(t, g, "random", 2), func(rank int, tr *Trainer) {
		on(tr, train.Warning, func(e train.Event) { said[rank] += e.Text })
	})
	for rank, text := range said {
		if !strings.Contains(text, "too few to hold some out") {
			t.Errorf("peer %d said %q", rank, text)
		}
	}
	if s := r.result[0].Final(); s.Val == s.Val || s.Test == s.Test || s.BestRound != c.Rounds {
		t.Errorf("%+v, want the last round and no metrics", s)
	}
}

// TestHeldOutNodesValidate: where no peer has a validation node, the same training nodes validate whatever the number
// of peers, in the same run as where they are marked for validation; and after a resume as well.
func TestHeldOutNodesValidate(t *testing.T) {
	for _, multi := range []bool{false, true} {
		for _, inductive := range []bool{false, true} {
			g := toy{nodes: 150, multi: multi}.graph(t)
			for i := range g.Split {
				if g.Split[i] == graph.Val {
					g.Split[i] = graph.Train
				}
			}
			c := configOf(t, g, Design{Model: "sage", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2,
				Hidden: 8, Hops: 1})
			c.Inductive, c.Balanced = inductive, !multi
			if multi {
				c.Metric = "micro-f1"
			}
			first := mustTrain(t, c, cut(t, g, "random", 1), nil).result[0]
			if first.Final().Val != first.Final().Val {
				t.Fatal("nothing validates")
			}
			marked := *g
			marked.Split = slices.Clone(g.Split)
			counts, err := train.CountLabels(t.Context(), alone{}, comm.ReduceID{}, shard.Whole(g), c.Draw())
			if err != nil || counts.HeldOut < 3 {
				t.Fatalf("%+v, %v", counts, err)
			}
			marked.Split = counts.HoldOut(shard.Whole(g)).Split
			sameCurve(t, "marked nodes", first.Curve(),
				mustTrain(t, c, cut(t, &marked, "random", 1), nil).result[0].Curve(), 0)
			for _, peers := range []int{2, 7} {
				warnings := atomic.Int32{}
				got := mustTrain(t, c, cut(t, g, "random", peers), func(_ int, tr *Trainer) {
					on(tr, train.Warning, func(e train.Event) {
						if strings.Contains(e.Text, "sampled by the seed, validate") {
							warnings.Add(1)
						}
					})
				})
				sameCurve(t, fmt.Sprintf("multi %t, %d peers", multi, peers), first.Curve(), got.result[0].Curve(),
					1e-4)
				if int(warnings.Load()) != peers {
					t.Errorf("%d of %d peers warn", warnings.Load(), peers)
				}
			}
		}
	}
}

// alone is the reducer of one peer.
type alone struct{}

// Reduce implements comm.Reducer.
func (alone) Reduce(context.Context, *comm.Contribution) (r comm.Reduced, err error) { return r, nil }

// TestLostPeer loses a peer in each kind of work. Nobody hangs; everybody's error is a PeerError; one at least names
// the lost one, and those that name another name one that had gone for this reason.
func TestLostPeer(t *testing.T) {
	g := toy{sparse: true}.graph(t)
	trained := configOf(t, g, Design{Model: "sage", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2,
		Hidden: 8, Hops: 2})
	trained.Inductive, trained.Rounds = true, 3
	for kind := doHello; kind < doFinish; kind++ {
		if kind == doRestore || kind == doAggregate || kind == doApply {
			continue // nothing travels
		}
		t.Run(kind.String(), func(t *testing.T) {
			c := trained
			lost := 2
			if kind == doSync {
				lost = 0 // whose parameters the others are about to take
			}
			network := netsim.New(4, netsim.Config{})
			transports := network.Transports()
			var trainers [4]*Trainer
			once := sync.OnceFunc(func() { network.Lose(lost) })
			transports[lost] = &spy{Transport: transports[lost], see: func(int, comm.Door, []byte) {
				if trainers[lost].machine.next.Work.Kind == kind {
					once()
				}
			}}
			_, errs := trainOver(within(t), func(int) Config { return c }, cut(t, g, "random",
				4), transports, func(rank int, tr *Trainer) {
				trainers[rank] = tr
				if kind == doSync { // corrupt, so that there is one
					on(tr, train.RoundEnd, func(info train.Event) {
						if rank == 1 {
							tr.stage.slab.Value[0] += 1e-6
						}
					})
				}
			})
			named := false
			for rank, err := range errs {
				fault, ok := errors.AsType[*comm.PeerError](err)
				if !ok {
					t.Errorf("peer %d: %v, want a PeerError", rank, err)
					continue
				}
				named = named || rank != lost && fault.Rank == lost
				if rank == lost && !strings.HasPrefix(err.Error(), kind.String()) { // the others may be a step behind
					t.Errorf("peer %d: %v does not say that it was at %s", rank, err, kind)
				}
			}
			if !named {
				t.Errorf("nobody names the lost peer: %v", errs)
			}
		})
	}
}

// TestSyncMendsParameters moves a value of one peer's parameters in mid-run as rounding does, before a round's step.
// The next round notices and does not commit; all take the majority's, the run goes on, and its bits are those of a run
// in which nothing happened.
func TestSyncMendsParameters(t *testing.T) {
	g := toy{}.graph(t)
	for _, local := range []int{1, 3} {
		updates := map[int]string{1: "int8"}[local]
		// the last: found by Evaluate
		for _, at := range []train.Position{{Stage: 1, Round: 3}, {Stage: 2, Round: 0}, {Stage: 2, Round: 9}} {
			for _, corrupted := range []int{0, 2} {
				t.Run(fmt.Sprintf("%d steps, stage %d, round %d, peer %d", local, at.Stage, at.Round,
					corrupted), func(t *testing.T) {
					c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2,
						Hidden: 8, Hops: 1, Dropout: 0.3})
					c.LocalSteps, c.Updates = local, updates
					shards := cut(t, g, "random", 3)
					want := mustTrain(t, c, shards, nil)
					var mu sync.Mutex
					var seen []string
					flipped := false
					got := mustTrain(t, c, shards, func(rank int, tr *Trainer) {
						on(tr, train.RoundEnd, func(info train.Event) {
							if rank == corrupted && !flipped && info.Stage == at.Stage && info.Round == at.Round {
								flipped = true
								tr.stage.slab.Value[5] += 1e-6
							}
						})
						on(tr, train.Resync, func(e train.Event) {
							mu.Lock()
							defer mu.Unlock()
							seen = append(seen,
								fmt.Sprintf("stage %d, round %d from %d for %d", e.Stage, e.Round, e.Peer, e.Other))
							if e.Differed != (rank == corrupted) || e.Differed != (e.Distance > 0) {
								t.Errorf("peer %d was told %+v", rank, e)
							}
						})
					})
					from := 0
					if corrupted == 0 {
						from = 1
					}
					sync := fmt.Sprintf("stage %d, round %d from %d for %d", at.Stage, at.Round+1, from, corrupted)
					if !slices.Equal(seen, []string{sync, sync, sync}) {
						t.Errorf("synced %q, want %q on all", seen, sync)
					}
					sameModels(t, []*nn.Model{want.models[0], got.models[0]})
					sameCurve(t, "rounds that were reported", want.result[0].Curve(), got.result[0].Curve(), 0)
				})
			}
		}
	}
}

// TestSyncGivesUp ends a run in which one peer's parameters cannot be kept right.
func TestSyncGivesUp(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	_, err := runAll(within(t), c, cut(t, g, "random", 3), func(rank int, tr *Trainer) {
		if rank != 1 {
			return
		}
		spoil := func() { tr.stage.slab.Value[0] += 1e-6 }
		on(tr, train.RoundEnd, func(_ train.Event) { spoil() })
		on(tr, train.Resync, func(_ train.Event) { spoil() })
	})
	if err == nil ||
		!strings.Contains(err.Error(), "parameters of peer 1 still differ from peer 0's after 3 syncs") {
		t.Error(err)
	}
}

// TestCancel ends a run at once, with the context's error, wherever it is.
func TestCancel(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	for _, round := range []int{-1, 0, 7} {
		ctx, cancel := context.WithCancel(within(t))
		if round < 0 {
			cancel()
		}
		_, errs := trainOver(ctx, func(int) Config { return c }, cut(t, g, "random", 3), netsim.New(3,
			netsim.Config{}).Transports(), func(rank int, tr *Trainer) {
			on(tr, train.RoundEnd, func(info train.Event) {
				if rank == 1 && info.Round == round {
					cancel()
				}
			})
		})
		for rank, err := range errs {
			_, peer := errors.AsType[*comm.PeerError](err)
			if !errors.Is(err, context.Canceled) && !peer || rank == 1 && !errors.Is(err, context.Canceled) {
				t.Errorf("round %d, peer %d: %v", round, rank, err)
			}
		}
		cancel()
	}
}

// TestCancelKeepsTheBestState stops a run between a round that found the best state and its step: resumed, it must not
// have forgotten that state.
func TestCancelKeepsTheBestState(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 1})
	c.Rounds, c.Optimizer.LR = 25, 0.5
	shards := cut(t, g, "random", 1)
	want := mustTrain(t, c, shards, nil)
	best := want.result[0].Final().BestRound
	if best == 0 || best == c.Rounds {
		t.Fatalf("the best round is %d: the test shows nothing", best)
	}
	store := checkpoint.Store{Dir: t.TempDir()}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := runAll(ctx, c, shards, func(_ int, tr *Trainer) {
		tr.Checkpoints = &store
		on(tr, train.RoundEnd, func(info train.Event) {
			if info.Round == best {
				cancel()
			}
		})
	}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got := mustTrain(t, c, shards, func(_ int, tr *Trainer) { tr.Checkpoints = &store })
	sameModels(t, []*nn.Model{want.models[0], got.models[0]})
}

// stores gives each peer a checkpoint directory below dir.
func stores(dir string) func(rank int, tr *Trainer) {
	return func(rank int, tr *Trainer) {
		tr.Checkpoints = &checkpoint.Store{Dir: filepath.Join(dir, fmt.Sprint(rank))}
	}
}

// interrupted runs c until a round ends and is cancelled there; checkpoints are in dir.
func interrupted(t *testing.T, c Config, shards []*shard.Shard, dir string, stage, round int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := runAll(ctx, c, shards, func(rank int, tr *Trainer) {
		stores(dir)(rank, tr)
		on(tr, train.RoundEnd, func(info train.Event) {
			if rank == 0 && info.Stage == stage && info.Round == round {
				cancel()
			}
		})
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the run was not stopped: %v", err)
	}
}

func TestCheckpointFaults(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	c.Checkpoint = 3
	shards := cut(t, g, "random", 2)

	t.Run("unwritable", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs := trainOver(within(t), func(int) Config { return c }, shards, netsim.New(2,
			netsim.Config{}).Transports(), func(rank int, tr *Trainer) {
			if rank == 1 {
				tr.Checkpoints = &checkpoint.Store{Dir: filepath.Join(file, "states")}
			}
		})
		if errs[1] == nil || !strings.Contains(errs[1].Error(), file) {
			t.Errorf("peer 1: %v, want an error that names %s", errs[1], file)
		}
		if fault, ok := errors.AsType[*comm.PeerError](errs[0]); !ok || fault.Rank != 1 {
			t.Errorf("peer 0: %v, want that peer 1 is gone", errs[0])
		}
	})

	t.Run("full", func(t *testing.T) { // the directory turns into a file in mid-run
		dir := t.TempDir()
		_, errs := trainOver(within(t), func(int) Config { return c }, shards, netsim.New(2,
			netsim.Config{}).Transports(), func(rank int, tr *Trainer) {
			stores(dir)(rank, tr)
			saved := 0
			on(tr, train.Saved, func(_ train.Event) {
				if saved++; rank == 0 && saved == 2 {
					os.RemoveAll(tr.Checkpoints.Dir)
					os.WriteFile(tr.Checkpoints.Dir, nil, 0o600)
				}
			})
		})
		if errs[0] == nil || !strings.Contains(errs[0].Error(), dir) {
			t.Errorf("peer 0: %v, want an error that names %s", errs[0], dir)
		}
		if fault, ok := errors.AsType[*comm.PeerError](errs[1]); !ok || fault.Rank != 0 {
			t.Errorf("peer 1: %v, want that peer 0 is gone", errs[1])
		}
	})

	t.Run("another plan", func(t *testing.T) {
		dir := t.TempDir()
		interrupted(t, c, shards, dir, 1, 5)
		other := c
		other.Seed++
		before := listing(t, dir)
		_, err := runAll(within(t), other, shards, stores(dir))
		if mismatch, ok := errors.AsType[*checkpoint.MismatchError](err); !ok ||
			!slices.Contains(mismatch.Which, "config") {
			t.Errorf("%v, want a mismatch of the config", err)
		}
		if after := listing(t, dir); after != before {
			t.Errorf("the other run's checkpoints were %s, are %s", before, after)
		}
	})

	t.Run("corrupted", func(t *testing.T) {
		want := mustTrain(t, c, shards, nil)
		dir := t.TempDir()
		interrupted(t, c, shards, dir, 2, 7)
		states, err := filepath.Glob(filepath.Join(dir, "1", "state-*"))
		if err != nil || len(states) != 2 {
			t.Fatalf("%q, %v: want two states", states, err)
		}
		slices.Sort(states)
		b, err := os.ReadFile(states[1])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(states[1], b, 0o600); err != nil {
			t.Fatal(err)
		}
		var from []train.Event
		got := mustTrain(t, c, shards, func(rank int, tr *Trainer) {
			stores(dir)(rank, tr)
			if rank == 0 {
				on(tr, train.Restored, func(p train.Event) { from = append(from, p) })
			}
		})
		if len(from) != 1 || from[0].Stage != 2 || from[0].Round != 6 {
			t.Errorf("resumed from %+v, want stage 2, round 6, the newest that both can read", from)
		}
		sameModels(t, []*nn.Model{want.models[0], got.models[0]})
	})
}

// listing describes every file below dir, its bytes included.
func listing(t *testing.T, dir string) (all string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all += fmt.Sprintf("%s: %d bytes, digest %x\n", path, len(b), sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDivergence ends a run whose loss is no number any more, on all peers and with the reason.
func TestDivergence(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[3])
	c.Rounds, c.Optimizer = 50, optim.Config{Name: "sgd", LR: 1e6, Momentum: 0.9}
	for _, updates := range []string{"", "int8"} {
		c.Updates = updates
		_, errs := trainOver(within(t), func(int) Config { return c }, cut(t, g, "random", 2),
			netsim.New(2, netsim.Config{}).Transports(), nil)
		for rank, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "training has diverged") {
				t.Errorf("updates %q, peer %d: %v", updates, rank, err)
			}
		}
	}
}

// unlike is the reducer of a peer whose processor rounds components apart.
type unlike struct {
	comm.Reducer
	trainer *Trainer
}

func (u unlike) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind == ofComponents {
		w := u.trainer.model.Encoder.Proj.W.Value.Data
		w[0] = math.Nextafter32(w[0], 2)
		c.Meta = state(nil, w)
	}
	return u.Reducer.Reduce(ctx, c)
}

// TestUnlikeProcessors lets one peer round the components apart, as an unlike processor would: it takes
// the others', and the model is the same bits on all.
func TestUnlikeProcessors(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, Design{Model: "gcn", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 1, Hidden: 1,
		Hops: 2})
	c.Rounds = 3
	shards := cut(t, g, "random", 3)
	whole, err := runAll(context.Background(), c, shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	var synced [3]int
	trainers := make([]*Trainer, 3)
	r, errs := trainThrough(t.Context(), func(int) Config { return c }, shards,
		netsim.New(3, netsim.Config{}).Transports(), func(rank int, g *comm.Group) comm.Reducer {
			if rank == 1 {
				return unlike{g, trainers[1]}
			}
			return g
		}, func(rank int, tr *Trainer) {
			trainers[rank] = tr
			on(tr, train.Resync, func(e train.Event) {
				if e.Differed {
					synced[rank]++
				}
			})
		})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sameModels(t, append([]*nn.Model{whole.models[0]}, r.models...))
	if synced != [3]int{0, 1, 0} {
		t.Errorf("parameters replaced %v times, want peer 1's components alone", synced)
	}
}
