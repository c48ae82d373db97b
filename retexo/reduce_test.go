package retexo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// noises are the ledgers of so many members.
func noises(t *testing.T, peers int, amount float64) []*commtest.Noise {
	all := make([]*commtest.Noise, peers)
	for r := range all {
		all[r] = &commtest.Noise{T: t, Amount: amount}
	}
	return all
}

// trainNoisily runs c with noise added to every update. The peers must agree without ever fetching parameters again.
func trainNoisily(t *testing.T, c Config, shards []*shard.Shard, noise []*commtest.Noise,
	setup func(rank int, tr *Trainer)) (run, error) {
	t.Helper()
	through := func(rank int, g *comm.Group) comm.Reducer { return noise[rank].Over(g) }
	r, errs := trainThrough(within(t), func(int) Config { return c }, shards, netsim.New(len(shards),
		netsim.Config{}).Transports(), through, func(rank int, tr *Trainer) {
		on(tr, train.Resync, func(e train.Event) { t.Errorf("peer %d: %+v", rank, e) })
		if setup != nil {
			setup(rank, tr)
		}
	})
	return r, errors.Join(errs...)
}

// TestNoiseLeavesDigestsAlone trains every kind of plan through a reducer that adds noise to updates. No reduction has
// the name of another, the peers' digests agree all the same, and they end with the same bits.
func TestNoiseLeavesDigestsAlone(t *testing.T) {
	type variant struct {
		name   string
		amount float64
		set    func(c *Config)
	}
	variants := []variant{
		{"one step", 1e-2, func(*Config) {}},
		{"local steps", 1e-2, func(c *Config) { c.LocalSteps = 3 }},
		{"sgd, balanced", 1e-2, func(c *Config) { c.Optimizer, c.Balanced = sgd, true }},
		{"inductive, every third", 1e-2, func(c *Config) { c.Inductive, c.EvalEvery = true, 3 }},
		{"fixed point", 1e-2, func(c *Config) { c.Updates, c.Sums = "int8", "int16" }},
	}
	g := toy{sparse: true}.graph(t)
	for _, p := range everyPlan() {
		for _, v := range variants {
			t.Run(p.name()+", "+v.name, func(t *testing.T) {
				c := configOf(t, g, p)
				c.Rounds, c.PCAPasses = 5, 2
				v.set(&c)
				noise := noises(t, 3, v.amount)
				r, err := trainNoisily(t, c, cut(t, g, "random", 3), noise, nil)
				if err != nil {
					t.Fatal(err)
				}
				sameModels(t, r.models)
				if noise[0].Reductions()[ofRound] < c.Rounds {
					t.Errorf("reductions %v, want one each round", noise[0].Reductions())
				}
			})
		}
	}
}

// TestNoiseAndInterruption interrupts noisy runs and goes on from checkpoints: rounds that are done again have other
// names, and the peers still agree.
func TestNoiseAndInterruption(t *testing.T) {
	g := toy{}.graph(t)
	for _, p := range everyPlan() {
		t.Run(p.name(), func(t *testing.T) {
			c := configOf(t, g, p)
			c.Rounds, c.Checkpoint = 6, 2
			shards, noise, dir := cut(t, g, "random", 3), noises(t, 3, 1e-2), t.TempDir()
			for _, at := range []int{1, 3, 5} { // each before the next checkpoint
				ctx, cancel := context.WithCancel(within(t))
				through := func(rank int, g *comm.Group) comm.Reducer { return noise[rank].Over(g) }
				_, errs := trainThrough(ctx, func(int) Config { return c }, shards, netsim.New(3,
					netsim.Config{}).Transports(), through, func(rank int, tr *Trainer) {
					stores(dir)(rank, tr)
					on(tr, train.RoundEnd, func(e train.Event) {
						if rank == 1 && e.Round == at {
							cancel()
						}
					})
				})
				if !errors.Is(errors.Join(errs...), context.Canceled) {
					t.Fatal(errs)
				}
				cancel()
			}
			r, err := trainNoisily(t, c, shards, noise, stores(dir))
			if err != nil {
				t.Fatal(err)
			}
			sameModels(t, r.models)
		})
	}
}

// liar is the transport of a member that changes what it sends to others.
type liar struct {
	comm.Transport
	forge func(head, body []byte) []byte
}

func (f liar) Send(ctx context.Context, to int, head, body []byte) error {
	return f.Transport.Send(ctx, to, head, f.forge(head, slices.Clone(body)))
}

const statementStep = 0 // comm: the step of a reduction in which each member sends its Meta

// isStatement reports whether a frame is a member's statement in a reduction.
func isStatement(head, body []byte) bool {
	return head[1] == 0 && comm.Door(head[2]) == comm.Control && head[3] == statementStep && len(body) == statementLen
}

// TestNobodySpeaksForAnother: a member that sends the others whatever it likes changes what they believe of itself
// alone. It cannot make the digests of two honest members look alike or unlike, so it gets nobody to take its
// parameters.
func TestNobodySpeaksForAnother(t *testing.T) {
	g := toy{}.graph(t)
	for _, attacker := range []int{0, 2} { // the first member also sums short vectors
		t.Run(fmt.Sprintf("member %d", attacker), func(t *testing.T) {
			c := configOf(t, g, everyPlan()[0])
			shards := cut(t, g, "random", 3)
			network := netsim.New(3, netsim.Config{})
			transports := network.Transports()
			transports[attacker] = liar{transports[attacker], func(head, body []byte) []byte {
				if isStatement(head, body) {
					binary.LittleEndian.PutUint32(body, 0xbad) // a lie
				}
				return body
			}}
			var mu sync.Mutex
			var synced []train.Event
			_, errs := trainOver(within(t), func(int) Config { return c }, shards, transports, func(rank int,
				tr *Trainer) {
				on(tr, train.Resync, func(e train.Event) {
					mu.Lock()
					defer mu.Unlock()
					if rank != attacker {
						synced = append(synced, e)
					}
				})
			})
			for _, i := range synced {
				if i.Peer == attacker || i.Other != attacker || i.Differed {
					t.Errorf("honest members were told %+v", i)
				}
			}
			named := false
			for r, err := range errs {
				if err == nil {
					t.Errorf("peer %d went on", r)
					continue
				}
				fault, ok := errors.AsType[*comm.PeerError](err)
				named = named || r != attacker && ok && (fault.Rank == attacker || comm.FoundBy(err) == attacker)
			}
			if !named {
				t.Errorf("%v, want an error that names peer %d, or that it has made", errs, attacker)
			}
		})
	}
}

// TestSyncBridgesRoundingOnly: of two peers without a majority the lower rank's parameters are taken. What it sends has
// to be what its digest says, and near the other's own: else nobody takes it.
func TestSyncBridgesRoundingOnly(t *testing.T) {
	g := toy{}.graph(t)
	for _, test := range []struct {
		name string
		by   float32
		want string // empty: it is taken
	}{
		{"rounding", 1e-6, ""},
		{"other parameters", 0.5, "parameters of peers 0 and 1 differ by"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := configOf(t, g, everyPlan()[0])
			var synced [2]int
			_, errs := trainOver(within(t), func(int) Config { return c }, cut(t, g, "random", 2), netsim.New(2,
				netsim.Config{}).Transports(), func(rank int, tr *Trainer) {
				on(tr, train.RoundEnd, func(e train.Event) {
					if rank == 0 && e.Stage == 1 && e.Round == 3 {
						for k := range tr.stage.slab.Value {
							tr.stage.slab.Value[k] += test.by
						}
					}
				})
				on(tr, train.Resync, func(e train.Event) {
					synced[rank]++
					if e.Peer != 0 || e.Other != 1 || e.Differed != (rank == 1) ||
						rank == 1 && !(e.Distance > 0 && e.Distance < train.MostApart) {
						t.Errorf("peer %d was told %+v", rank, e)
					}
				})
			})
			err := errors.Join(errs...)
			if test.want == "" && (err != nil || synced != [2]int{1, 1}) ||
				test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, synced %v; want %q", err, synced, test.want)
			}
		})
	}
	t.Run("not what was announced", func(t *testing.T) {
		c := configOf(t, g, everyPlan()[0])
		transports := netsim.New(3, netsim.Config{}).Transports()
		transports[0] = liar{transports[0], func(head, body []byte) []byte {
			if head[1] == 3 { // broadcast: nothing but what a sync sends
				for i := range body {
					body[i] = 0
				}
			}
			return body
		}}
		_, errs := trainOver(within(t), func(int) Config { return c }, cut(t, g, "random",
			3), transports, func(rank int, tr *Trainer) {
			on(tr, train.RoundEnd, func(e train.Event) {
				if rank == 2 && e.Stage == 1 && e.Round == 3 {
					tr.stage.slab.Value[0] += 1e-6
				}
			})
		})
		for _, r := range []int{1, 2} {
			fault, ok := errors.AsType[*comm.PeerError](errs[r])
			if !ok || fault.Rank != 0 && fault.Rank != 3-r {
				t.Errorf("peer %d: %v, want a PeerError of peer 0 or of who noticed first", r, errs[r])
			}
		}
		if !strings.Contains(errors.Join(errs...).Error(), "are not those that it announced") {
			t.Errorf("%v, want a word on what was announced", errs)
		}
	})
}

// TestGenerationsFarAhead: a peer whose last generation is far beyond this one's is refused by its name.
func TestGenerationsFarAhead(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	dir := t.TempDir()
	if err := (&checkpoint.Store{Dir: dir + "/1"}).KeepNote("generation",
		[]byte("18446744073709551614\n")); err != nil {
		t.Fatal(err)
	}
	_, errs := trainOver(within(t), func(int) Config { return c }, cut(t, g, "random", 3),
		netsim.New(3, netsim.Config{}).Transports(), stores(dir))
	named := false
	for _, r := range []int{0, 2} {
		fault, ok := errors.AsType[*comm.PeerError](errs[r])
		named = named || ok && fault.Rank == 1 && strings.Contains(errs[r].Error(), "too far beyond")
	}
	if !named {
		t.Errorf("%v, want one that refuses peer 1", errs)
	}
}
