package retexo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestFaultSchedules runs seeded schedules of faults: in each of up to four sessions a peer is killed at some frame,
// all are interrupted, the network parts or loses, a disk is full, a parameter is corrupted. After every session each
// peer has ended, with a typed error or with the model; what a killed peer had on its disk is what it had at that
// frame. Then a session without faults ends with the model and the curve of a run that nothing happened to, and it
// never begins anew once all peers had a checkpoint.
//
// HEDDLE_SCHEDULES says how many; a violation names the seed, and HEDDLE_SCHEDULE runs that one alone, or begins there
// where both are set.
func TestFaultSchedules(t *testing.T) {
	first, count := seeds(t, 150, 30)
	worlds := scheduled(t)
	kinds := map[string]int{}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		w := worlds[seed%len(worlds)]
		synctest.Test(t, func(t *testing.T) { w.live(t, seed, kinds) })
	}
	t.Logf("faults: %v", kinds)
	if count >= 150 && len(kinds) < 6 {
		t.Errorf("only %v of six kinds of faults came up", kinds)
	}
}

// seeds returns which seeds of schedules to run, fewer where time is short: HEDDLE_SCHEDULES says how many,
// HEDDLE_SCHEDULE the first one, or the only one where it is set alone.
func seeds(t *testing.T, count, short int) (first, n int) {
	if testing.Short() {
		count = short
	}
	if env := os.Getenv("HEDDLE_SCHEDULE"); env != "" {
		first, count = integer(t, env), 1
	}
	if env := os.Getenv("HEDDLE_SCHEDULES"); env != "" {
		count = integer(t, env)
	}
	return first, count
}

func integer(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// world is a plan with the run that nothing happens to.
type world struct {
	config Config
	shards []*shard.Shard
	want   run
	frames int // that one peer sends in it
}

func scheduled(t *testing.T) (all []*world) {
	g := toy{nodes: 40, features: 6, sparse: true}.graph(t)
	for i, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 4, Hops: 1, Dropout: 0.3},
		{Model: "sage", Encoder: "pca", Components: 3, LayerOutput: "hidden", Layers: 1, Hidden: 4, Hops: 2},
		{Model: "gat", Encoder: "mlp", LayerOutput: "logits", Layers: 1, Hidden: 4, Heads: 2, Hops: 1, Dropout: 0.3},
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 4, Hops: 2, Dropout: 0.3},
	} {
		c := configOf(t, g, p)
		c.Rounds, c.Checkpoint = 6, 2
		switch i {
		case 1:
			c.Sums, c.Updates = "int16", "int8"
		case 3:
			c.LocalSteps, c.Updates = 3, "int8"
		}
		w := &world{config: c, shards: cut(t, g, "random", 3)}
		counted, transports := spies(3)
		var errs []error
		if w.want, errs = trainOver(context.Background(), func(int) Config { return c }, w.shards, transports,
			nil); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		for _, n := range []comm.Door{comm.Halo, comm.Reduce, comm.Control} {
			w.frames += int(counted[1].frames[n].Load())
		}
		all = append(all, w)
	}
	return all
}

// live runs one schedule.
func (w *world) live(t *testing.T, seed int, kinds map[string]int) {
	dir := memoryDir(t)
	key := rng.New(uint64(seed)).FoldString("schedule")
	begun := false // all peers had a checkpoint
	ids := make([]commtest.Noise, 3)
	for r := range ids {
		ids[r].T = t
	}
	faults := 1 + int(key.Uint64(0)%4)
	for session := range faults + 1 {
		draws := key.Fold(uint64(session + 1))
		f := fault{kind: "none"}
		if session < faults {
			f = w.draw(draws)
			kinds[f.kind]++
		}
		restored, r, errs := w.session(t, dir, draws, f, ids)
		about := fmt.Sprintf("seed %d, session %d, %+v", seed, session, f)
		if begun && slices.Contains(restored, false) && (errors.Join(errs...) == nil || f.kind == "corrupt") {
			t.Errorf("%s: began anew though all had a checkpoint: %v", about, restored)
		}
		begun = true
		for rank := range errs {
			list, err := (&checkpoint.Store{Dir: filepath.Join(dir, fmt.Sprint(rank))}).List()
			begun = begun && len(list) > 0 && err == nil
		}
		for rank, err := range errs {
			var lost *comm.PeerError
			switch {
			case err == nil:
				w.same(t, fmt.Sprintf("%s, peer %d", about, rank), rank, r)
			case f.kind == "none" || f.kind == "corrupt":
				t.Errorf("%s, peer %d: %v", about, rank, err)
			case f.kind == "disk" && errors.As(err, new(*os.PathError)), errors.As(err, &lost),
				errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			default:
				t.Errorf("%s, peer %d: %v, want a PeerError or the context's", about, rank, err)
			}
		}
	}
}

// fault is what happens in a session, at the frame that peer sends as its frame-th, at the round'th end of a round,
// or at the checkpoint before it.
type fault struct {
	kind  string
	peer  int
	frame int64
	round int64
}

func (w *world) draw(key rng.Key) fault {
	kinds := []string{"kill", "kill", "kill", "interrupt", "part", "disk", "corrupt", "loss"}
	rounds := uint64(w.config.Rounds * w.config.Stages())
	return fault{kind: kinds[key.Uint64(1)%uint64(len(kinds))], peer: int(key.Uint64(2) % 3),
		frame: int64(key.Uint64(3) % uint64(w.frames)), round: int64(key.Uint64(4) % rounds)}
}

func (w *world) session(t *testing.T, dir string, key rng.Key, f fault,
	ids []commtest.Noise) (restored []bool, r run, errs []error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	cfg := netsim.Config{Seed: key.Uint64(5), Links: netsim.Table{All: netsim.Model{Latency: time.Millisecond}},
		Spread: 19 * time.Millisecond}
	switch f.kind {
	case "loss":
		cfg.Links.All.Loss = 0.2
	case "part": // for ever: the deadline ends it
		at := time.Duration(f.frame) * 5 * time.Millisecond
		cfg.Partitions = []netsim.Partition{{Ranks: []int{f.peer}, Start: at}}
	}
	network := netsim.New(3, cfg)
	transports := network.Transports()
	var sent, rounds, saved atomic.Int64
	disk := filepath.Join(dir, fmt.Sprint(f.peer))
	killed := ""
	kill := sync.OnceFunc(func() {
		killed = copyDir(t, disk)
		network.Lose(f.peer)
	})
	if f.kind == "kill" {
		transports[f.peer] = &spy{Transport: transports[f.peer], see: func(int, comm.Door, []byte) {
			if sent.Add(1) > f.frame {
				kill()
			}
		}}
	}
	restored = make([]bool, 3)
	through := func(rank int, g *comm.Group) comm.Reducer { return ids[rank].Over(g) }
	r, errs = trainThrough(ctx, func(int) Config { return w.config }, w.shards, transports, through, func(rank int,
		tr *Trainer) {
		tr.Checkpoints = &checkpoint.Store{Dir: filepath.Join(dir, fmt.Sprint(rank))}
		on(tr, train.Restored, func(_ train.Event) { restored[rank] = true })
		if rank != f.peer {
			return
		}
		on(tr, train.Saved, func(_ train.Event) { // between two rounds
			if tr.stage == nil { // the model is trained
				return
			}
			if v := tr.stage.slab.Value; f.kind == "corrupt" && saved.Add(1) == 1+f.round/3 {
				i := int(f.frame) % len(v)
				v[i] = math.Nextafter32(v[i], 2) // as rounding does
			}
		})
		on(tr, train.RoundEnd, func(_ train.Event) {
			if rounds.Add(1) != f.round+1 {
				return
			}
			switch f.kind {
			case "interrupt":
				cancel()
			case "disk":
				full := filepath.Join(dir, "full")
				if err := os.WriteFile(full, nil, 0o600); err != nil {
					t.Error(err)
				}
				tr.Checkpoints.Dir = filepath.Join(full, "states")
			}
		})
	})
	if killed != "" { // what the dying process still did to its disk did not happen
		if err := errors.Join(os.RemoveAll(disk), os.Rename(killed, disk),
			os.WriteFile(filepath.Join(disk, ".state-1.tmp"), []byte("half"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return restored, r, errs
}

// same checks that a peer that ended well has the model and the curve of the run that nothing happened to.
func (w *world) same(t *testing.T, about string, rank int, r run) {
	for i, p := range r.models[rank].Params() {
		for k, v := range p.Value.Data {
			if want := w.want.models[0].Params()[i].Value.Data[k]; math.Float32bits(v) != math.Float32bits(want) {
				t.Errorf("%s: %s[%d] = %v, want %v", about, p.Name, k, v, want)
				return
			}
		}
	}
	got, want := r.result[rank].Curve(), w.want.result[0].Curve()
	if len(got) != len(want) {
		t.Errorf("%s: %d rounds were measured, want %d", about, len(got), len(want))
		return
	}
	for i := range got {
		if got[i].Loss != want[i].Loss || got[i].Val != want[i].Val && got[i].Val == got[i].Val {
			t.Errorf("%s: round %+v, want %+v", about, got[i], want[i])
			return
		}
	}
}

// memoryDir is a directory of t, in memory where the system has one: a schedule writes many small files durably.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "heddle")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// copyDir returns a copy of dir as it is now, beside it.
func copyDir(t *testing.T, dir string) string {
	copied := dir + ".killed"
	if err := os.MkdirAll(copied, 0o700); err != nil {
		t.Error(err)
	}
	files, _ := os.ReadDir(dir) // it may not be there yet
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, f.Name()), b, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return copied
}
