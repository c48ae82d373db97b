package retexo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// meetings is where the members of a run meet, in place of sockets: a session begins when all are there.
type meetings struct {
	mu      sync.Mutex
	size    int
	waiting map[int]chan comm.Transport
	network *netsim.Network // of the last session
	see     func(rank int)  // before each frame
}

func (m *meetings) meet(ctx context.Context, rank int) (comm.Transport, error) {
	m.mu.Lock()
	mine := make(chan comm.Transport, 1)
	m.waiting[rank] = mine
	if len(m.waiting) == m.size {
		m.begin()
	}
	m.mu.Unlock()
	select {
	case c := <-mine:
		return c, nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.waiting[rank] == mine {
			delete(m.waiting, rank)
		}
		return nil, ctx.Err()
	}
}

// lose cuts a member off the last session.
func (m *meetings) lose(rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.network.Lose(rank)
}

// begin begins a session of those who wait.
func (m *meetings) begin() {
	m.network = netsim.New(m.size, netsim.Config{Links: netsim.Table{All: netsim.Model{Latency: 5 * time.Millisecond}}})
	for r, c := range m.waiting {
		c <- &spy{Transport: m.network.Transport(r), see: func(int, comm.Door, []byte) { m.see(r) }}
	}
	clear(m.waiting)
}

// WireBytes counts a byte for each connection.
func (s *spy) WireBytes() (sent, received int64) { return 1, 0 }

// TestMembersSurviveKills kills a member at a drawn frame, of the run or of its end, and starts it again after a drawn
// time. All end, with one model: that of a run that nothing happened to.
func TestMembersSurviveKills(t *testing.T) {
	first, count := seeds(t, 40, 10)
	g := toy{nodes: 40, features: 6}.graph(t)
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 4, Hops: 1,
		Dropout: 0.3})
	c.Rounds, c.Checkpoint = 5, 2
	shards := cut(t, g, "random", 3)
	want := mustTrain(t, c, shards, nil)
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			key := rng.New(uint64(seed)).FoldString("member")
			victim, frame, pause := int(key.Uint64(0)%3), int64(key.Uint64(1)%160),
				time.Duration(key.Uint64(2)%4000)*time.Millisecond
			about := fmt.Sprintf("seed %d: peer %d killed at frame %d, back after %v", seed, victim, frame, pause)
			dir := memoryDir(t)
			disk := filepath.Join(dir, fmt.Sprint(victim))
			place := &meetings{size: 3, waiting: map[int]chan comm.Transport{}}
			dying, kill := context.WithCancel(t.Context())
			var sent atomic.Int64
			killed := make(chan bool)
			once := sync.OnceFunc(func() {
				copyDir(t, disk)
				place.lose(victim)
				kill()
				close(killed)
			})
			place.see = func(rank int) {
				if rank == victim && sent.Add(1) > frame {
					once()
				}
			}
			trainers, errs := make([]*Trainer, 3), make([]error, 3)
			run := func(ctx context.Context, r int) error {
				m := &session.Session{Rank: r, Names: []string{"a", "b", "c"},
					Progress: time.Minute, Wait: 10 * time.Minute, Rejoin: 10 * time.Minute,
					Place: train.Place{Checkpoints: &checkpoint.Store{Dir: filepath.Join(dir, fmt.Sprint(r))}},
					Event: func(train.Event) {}, Final: func(*train.Trained, session.Usage) error { return nil }}
				var last *Trainer
				training := func(ctx context.Context, m *session.Session) (*train.Trained, error) {
					tr := trainersOf(t, c, shards)[r]
					out, err := train.RunTrainer(ctx, &m.Place, tr, c)
					if out != nil {
						last = tr
					}
					return out, err
				}
				m.Meet = func(ctx context.Context) (comm.Transport, error) { return place.meet(ctx, r) }
				_, usage, err := m.Run(ctx, training)
				if err == nil {
					trainers[r] = last
					if usage.Wire < 1 {
						err = errors.New("no session was counted")
					}
				}
				return err
			}
			begun := time.Now()
			var all sync.WaitGroup
			for r := range 3 {
				all.Go(func() {
					ctx := t.Context()
					if r == victim {
						ctx = dying
					}
					errs[r] = run(ctx, r)
					if r != victim {
						return
					}
					select {
					case <-killed:
					default:
						return // it was done before
					}
					time.Sleep(pause)
					if err := errors.Join(os.RemoveAll(disk), os.Rename(disk+".killed", disk)); err != nil {
						t.Error(err)
					}
					trainers[r] = nil
					errs[r] = run(t.Context(), r)
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Errorf("%s: %v", about, err)
				return
			}
			if took := time.Since(begun); took > 5*time.Minute {
				t.Errorf("%s: it took %v", about, took)
			}
			var models []*nn.Model
			for _, tr := range trainers {
				models = append(models, tr.model)
			}
			sameModels(t, slices.Concat(want.models[:1], models))
		})
	}
}

// TestUsageSurvivesRestarts: a process that goes on from checkpoints counts on where the one before it ended, or had
// written its last checkpoint before it was killed.
func TestUsageSurvivesRestarts(t *testing.T) {
	g := toy{nodes: 40, features: 6}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	c.Rounds, c.Checkpoint = 6, 2
	shards := cut(t, g, "random", 1)
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(memoryDir(t), "0")
		run := func(ctx context.Context, at func(train.Event)) (session.Usage, error) {
			place := &meetings{size: 1, waiting: map[int]chan comm.Transport{}, see: func(int) {}}
			m := &session.Session{Names: []string{"a"}, Wait: time.Minute,
				Place: train.Place{Checkpoints: &checkpoint.Store{Dir: dir}}, Event: at}
			m.Meet = func(ctx context.Context) (comm.Transport, error) { return place.meet(ctx, 0) }
			_, usage, err := m.Run(ctx, func(ctx context.Context, m *session.Session) (*train.Trained, error) {
				return train.RunTrainer(ctx, &m.Place, trainersOf(t, c, shards)[0], c)
			})
			return usage, err
		}
		second := func(e train.Event) { // each round takes a second
			if e.Kind == train.RoundEnd {
				time.Sleep(time.Second)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		saved := 0
		usage, err := run(ctx, func(e train.Event) {
			second(e)
			if e.Kind == train.Saved && e.Round == 4 { // the third, or later
				if saved++; saved == 1 {
					copyDir(t, dir)
				}
			}
			if e.Kind == train.RoundEnd && e.Stage == 2 && e.Round == 1 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || usage.Wire != 1 || usage.Seconds != 8 || saved < 1 {
			t.Fatalf("%+v, %v, %d checkpoints, want 8 rounds and that it was interrupted", usage, err, saved)
		}
		interrupted := dir
		usage, err = run(t.Context(), second)
		// the round in which it was interrupted is done again
		if err != nil || usage.Wire != 2 || usage.Seconds != 8+5 {
			t.Errorf("%+v, %v, want two sessions of 8 and 5 rounds", usage, err)
		}
		if dir = interrupted + ".killed"; err != nil {
			return
		}
		usage, err = run(t.Context(), second)
		if err != nil || usage.Wire != 2 || usage.Seconds != 4+8 {
			t.Errorf("%+v, %v, want two sessions, of 4 rounds up to the checkpoint and of the 8 that follow", usage,
				err)
		}
	})
}
