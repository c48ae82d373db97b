package retexo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/recovery"
	"github.com/heddle-gnn/heddle/train/session"
)

// TestSurvivalSchedules runs seeded schedules of faults in runs that go on without lost peers: four peers, three of them
// enough. In each of up to four generations one is killed at some frame, in whatever role, or the network parts. It
// comes back a generation later, with its checkpoints, without them, or never, or knocks in the middle of a generation.
// After each generation:
//
//   - whoever ended did so with a typed error or with the model, and nobody hangs;
//   - peers that are at the same place hold the same bits;
//   - the next generation goes on where the furthest survivor was, or one round before the one that was lost.
//
// In the end every survivor has the model, the same bits, and a loss that was learned.
func TestSurvivalSchedules(t *testing.T) {
	first, count := seeds(t, 60, 15)
	worlds := survivals(t)
	seen := map[string]int{}
	// First those that once ended badly. 2179: a peer that came back with checkpoints, inductive, exchanged once more than the
	// others. 3505: of those whose last state of a stage was the best, only some had seen that. 2859: inductive, a peer was lost
	// while they told each other what is held out. 4905: some had measured the best state again, and some had not.
	all := []int{2179, 3505, 2859, 4905}
	for seed := first; seed < first+count; seed++ {
		all = append(all, seed)
	}
	for _, seed := range all {
		if t.Failed() {
			break
		}
		f := &fleet{world: worlds[seed%len(worlds)], seed: seed, seen: seen}
		synctest.Test(t, f.live)
	}
	t.Logf("what happened: %v", seen)
	for _, want := range []string{"kill", "part", "never", "back", "back empty", "knock", "went on without"} {
		if count >= 60 && seen[want] == 0 {
			t.Errorf("in %d schedules there was no %q: %v", count, want, seen)
		}
	}
}

const peers, enough = 4, 3

func survivals(t *testing.T) (all []*world) {
	g := toy{nodes: 60, features: 6, sparse: true}.graph(t)
	for i, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 4, Hops: 1, Dropout: 0.3},
		{Model: "sage", Encoder: "pca", Components: 3, LayerOutput: "hidden", Layers: 2, Hidden: 4, Hops: 2},
		{Model: "gat", Encoder: "mlp", LayerOutput: "logits", Layers: 2, Hidden: 4, Heads: 2, Hops: 1, Dropout: 0.3},
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 3, Hidden: 4, Hops: 2, Dropout: 0.3},
		{Model: "gcn", Encoder: "mlp", LayerOutput: "hidden", Layers: 2, Hidden: 4, Hops: 1},
	} {
		c := configOf(t, g, p)
		c.Rounds, c.Checkpoint, c.Survival = 5, 2, recovery.Survival{MinPeers: enough, FailedRows: []string{"drop", "previous", "drop", "previous", "wait"}[i]}
		switch i {
		case 1:
			c.Sums, c.Updates, c.WarmStart = "int8", "int8", true
		case 3:
			c.LocalSteps, c.Updates, c.WarmStart = 3, "int4", true
		case 4:
			c.Inductive = true
		}
		w := &world{config: c, shards: cut(t, g, "random", peers)}
		f := &fleet{world: w, seen: map[string]int{}}
		synctest.Test(t, func(t *testing.T) {
			f.dir = t.TempDir()
			f.generation(t, plain{kind: "none"})
			for r := range f.sent {
				w.frames = max(w.frames, int(f.sent[r].Load()))
			}
		})
		all = append(all, w)
	}
	return all
}

// fleet is the peers of one schedule.
type fleet struct {
	world    *world
	seed     int
	dir      string
	trainers [peers]*Trainer // nil: not running
	models   [peers]*nn.Model
	away     [peers]string // why a peer does not run: "never", or what it comes back with
	sent     [peers]atomic.Int64
	ids      [peers]commtest.Noise
	seen     map[string]int
	need     int // members that the next generation must have
	furthest train.Position
}

// plain is what happens in one generation.
type plain struct {
	kind   string // none, kill, part
	victim int
	frame  int64
	after  string // what becomes of the victim
	knock  int64  // round at which the peers hear a lost one knock; 0: never
}

func (f *fleet) live(t *testing.T) {
	f.dir = memoryDir(t)
	key := rng.New(uint64(f.seed)).FoldString("survival")
	faults := 1 + int(key.Uint64(0)%4)
	for n := range faults + 12 {
		draw := key.Fold(uint64(n + 1))
		p := plain{kind: "none", knock: 1 + int64(draw.Uint64(5)%4)}
		if running := f.running(); n < faults && len(running) == peers || n < faults && draw.Uint64(6)%3 == 0 {
			p.kind = []string{"kill", "kill", "kill", "part"}[draw.Uint64(1)%4]
			p.victim, p.frame = int(draw.Uint64(2)%peers), int64(draw.Uint64(3)%uint64(f.world.frames))
			p.after = []string{"back", "back", "back empty", "never"}[draw.Uint64(4)%4]
		}
		f.furthest = f.reached()
		if done := f.generation(t, p); done || t.Failed() {
			return
		}
	}
	t.Errorf("seed %d: no end after %d generations; at %+v, away %v", f.seed, faults+12, f.reached(), f.away)
}

// running are the ranks that take part in the next generation.
func (f *fleet) running() (ranks []int) {
	never := 0
	for r := range peers {
		if f.away[r] == "never" {
			never++
		}
	}
	for r := range peers {
		// Whoever is never to come back does when the others cannot go on without it.
		if f.away[r] != "never" || f.need > peers-never {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// reached is the furthest position of all that run.
func (f *fleet) reached() (at train.Position) {
	for _, tr := range f.trainers {
		if tr != nil && tr.machine.held && tr.machine.at.Seq() > at.Seq() {
			at = tr.machine.at
		}
	}
	return at
}

func (f *fleet) start(t *testing.T, r int) {
	c := f.world.config
	m, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(c, f.world.shards[r], m)
	if err != nil {
		t.Fatal(err)
	}
	tr.Checkpoints = &checkpoint.Store{Dir: filepath.Join(f.dir, fmt.Sprint(r))}
	f.trainers[r], f.models[r] = tr, m
}

// generation runs one generation of whoever is there, and says whether the model is trained.
func (f *fleet) generation(t *testing.T, p plain) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	about := fmt.Sprintf("seed %d, %+v", f.seed, p)
	members := f.running()
	if len(members) < enough {
		f.need = enough
		members = f.running()
	}
	// Of those who were away, all are back at once, or knock in the middle of the generation.
	late := -1
	for _, r := range members {
		if f.trainers[r] == nil && f.away[r] != "" && p.knock > 1 && len(members)-1 >= max(enough, f.need) {
			late = r
		}
	}
	members = slices.DeleteFunc(members, func(r int) bool { return r == late })
	cfg := netsim.Config{Seed: uint64(f.seed), Links: netsim.Table{All: netsim.Model{Latency: time.Millisecond}}, Spread: 19 * time.Millisecond}
	if p.kind == "part" {
		cfg.Partitions = []netsim.Partition{{Ranks: []int{p.victim}, Start: time.Duration(p.frame) * 5 * time.Millisecond}}
	}
	network := netsim.New(peers, cfg)
	disk, killed := filepath.Join(f.dir, fmt.Sprint(p.victim)), ""
	kill := sync.OnceFunc(func() {
		killed = copyDir(t, disk)
		network.Lose(p.victim)
	})
	here := make([]bool, peers)
	for _, r := range members {
		here[r] = true
	}
	f.seen[p.kind]++
	var knocked atomic.Bool
	type loss struct {
		generation   uint64
		stage, round int
	}
	var mu sync.Mutex
	losses := map[loss]float64{}
	errs := make([]error, peers)
	begun := make([]*train.Event, peers)
	var all sync.WaitGroup
	for _, r := range members {
		f.ids[r].T = t
		if f.trainers[r] == nil {
			f.start(t, r)
			if f.away[r] != "" {
				f.seen[f.away[r]]++
			}
			f.away[r] = ""
		}
		tr := f.trainers[r]
		rounds := int64(0)
		tr.OnEvent = nil // of the generation before
		on(tr, train.Generation, func(i train.Event) { begun[r] = &i })
		on(tr, train.RoundEnd, func(i train.Event) {
			rounds++
			mu.Lock()
			defer mu.Unlock()
			at := loss{tr.group.Generation(), i.Stage, i.Round}
			if was, ok := losses[at]; ok && was != i.Loss {
				t.Errorf("%s: %+v: loss %v at peer %d, %v at another", about, at, i.Loss, r, was)
			}
			losses[at] = i.Loss
		})
		tr.RejoinAsked = func() bool {
			yes := late >= 0 && rounds >= p.knock
			if yes {
				knocked.Store(true)
			}
			return yes
		}
		var transport comm.Transport = &spy{Transport: network.Transport(r), see: func(int, comm.Door, []byte) {
			if f.sent[r].Add(1); p.kind == "kill" && r == p.victim && f.sent[r].Load() > p.frame {
				kill()
			}
		}}
		f.sent[r].Store(0)
		all.Go(func() {
			g := comm.NewGroup(transport, r, peers)
			last, err := tr.Generation()
			meeting, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			if err == nil {
				err = g.Agree(meeting, here, nil, max(enough, f.need), last)
			}
			if err == nil {
				err = tr.Run(ctx, g, f.ids[r].Over(g))
			}
			if errs[r] = err; err != nil {
				g.Close()
			}
		})
	}
	all.Wait()

	f.need = 0
	for _, r := range members {
		var lost *comm.PeerError
		var few *comm.TooFewError
		switch err := errs[r]; {
		case err == nil, errors.Is(err, session.ErrRejoin), errors.As(err, &few), errors.Is(err, context.DeadlineExceeded):
		case errors.As(err, &lost):
			if errors.Is(err, session.ErrRowsNeeded) {
				f.need = peers
			}
		default:
			t.Errorf("%s, peer %d: %v, want a PeerError", about, r, err)
		}
	}
	// A generation goes on where the furthest survivor was; the victim of the one before may have been a round further.
	for r, i := range begun {
		if i == nil {
			continue
		}
		if len(i.Members) < peers {
			f.seen["went on without"]++
		}
		at := train.Position{Stage: i.Stage, Round: i.Round}
		if f.furthest.Seq() > at.Seq() {
			t.Errorf("%s, peer %d: went on at stage %d, round %d, after stage %d, round %d", about, r, i.Stage, i.Round, f.furthest.Stage, f.furthest.Round)
		}
	}
	victim := f.trainers[p.victim]
	if killed != "" || p.kind == "part" && slices.Contains(members, p.victim) {
		if killed == "" {
			killed = copyDir(t, disk)
		}
		f.trainers[p.victim], f.away[p.victim] = nil, p.after
		if err := errors.Join(os.RemoveAll(disk), os.Rename(killed, disk)); err != nil {
			t.Fatal(err)
		}
		if p.after != "back" {
			os.RemoveAll(disk)
		}
		if at := f.reached(); victim.machine.held && victim.machine.at.Seq() > at.Seq() && f.running() != nil {
			if v := victim.machine.at; v.Stage == at.Stage && v.Round > at.Round+1 || v.Stage > at.Stage+1 {
				t.Errorf("%s: the lost peer was at stage %d, round %d, the others are at stage %d, round %d", about, v.Stage, v.Round, at.Stage, at.Round)
			}
		}
	}
	if knocked.Load() {
		f.seen["knock"]++
	}
	return f.compare(t, about, late)
}

// compare holds the survivors against each other, and says whether all are done.
func (f *fleet) compare(t *testing.T, about string, late int) bool {
	type at struct {
		generation, seq uint64
	}
	states := map[at][32]byte{}
	done := true
	first := -1
	for r, tr := range f.trainers {
		if tr == nil {
			continue
		}
		done = done && tr.Done()
		if tr.machine.held {
			k, sum := at{tr.agreed, tr.machine.at.Seq()}, tr.shared().Digest()
			if other, ok := states[k]; ok && other != sum {
				t.Errorf("%s: peer %d holds another state than others at %+v", about, r, k)
			}
			states[k] = sum
		}
		if first < 0 {
			first = r
		}
	}
	if !done {
		return false
	}
	survivors := 0
	for r, tr := range f.trainers {
		if tr == nil {
			continue
		}
		survivors++
		for i, p := range f.models[r].Params() {
			for k, v := range p.Value.Data {
				if want := f.models[first].Params()[i].Value.Data[k]; math.Float32bits(v) != math.Float32bits(want) {
					t.Errorf("%s: peer %d: %s[%d] = %v, peer %d has %v", about, r, p.Name, k, v, first, want)
					return true
				}
			}
		}
		rounds := tr.Result().Curve()
		for i := 1; i < len(rounds); i++ {
			if a, b := rounds[i-1], rounds[i]; b.Stage == a.Stage && b.Round != a.Round+1 {
				t.Errorf("%s: peer %d: round %d of stage %d follows round %d", about, r, b.Round, b.Stage, a.Round)
			}
		}
		if n := len(tr.Result().Stages); tr.Result().Stages[n-1].Stage != f.world.config.Stages()-1 {
			t.Errorf("%s: peer %d: the last stage measured is %+v", about, r, tr.Result().Stages[n-1])
		}
	}
	if survivors < enough-1 { // who is lost when all the others are done costs them nothing
		t.Errorf("%s: %d peers have the model", about, survivors)
	}
	return true
}
