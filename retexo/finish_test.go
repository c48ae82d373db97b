package retexo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// ending is a run of three peers that ends, with what was on the disks of those that were killed.
type ending struct {
	config   Config
	dir      string
	trainers [3]*Trainer
	shards   func() [3]*Trainer // trainers as new processes have them
}

func (e *ending) restart(t *testing.T, r int) {
	e.trainers[r] = e.shards()[r]
	e.trainers[r].Checkpoints = &checkpoint.Store{Dir: filepath.Join(e.dir, fmt.Sprint(r))}
}

// session runs the peers. see is shown what each is about to send, before it leaves; network.Lose kills.
func (e *ending) session(t *testing.T, see func(network *netsim.Network, rank int, tr *Trainer)) [3]error {
	network := netsim.New(3, netsim.Config{})
	var errs [3]error
	var all sync.WaitGroup
	for r, tr := range e.trainers {
		all.Go(func() {
			transport := &spy{Transport: network.Transport(r), see: func(int, comm.Door, []byte) {
				if see != nil {
					see(network, r, tr)
				}
			}}
			g := comm.NewGroup(transport, r, 3)
			defer g.Close()
			errs[r] = tr.Run(t.Context(), g, g)
		})
	}
	all.Wait()
	return errs
}

// TestEndsWithTheBestStage: the model ends with the stage that validates best, the same at every peer and after a
// restart, and an event says so; keep_last keeps all layers.
func TestEndsWithTheBestStage(t *testing.T) {
	ended := map[int]bool{}
	for seed := range uint64(3) {
		g := toy{seed: seed}.graph(t)
		for _, p := range everyPlan() {
			p.Layers = 3
			c := unmoved(configOf(t, g, p))
			c.Seed, c.Rounds = seed, 4
			shards, dir := cut(t, g, "random", 2), t.TempDir()
			store := func(rank int) *checkpoint.Store {
				return &checkpoint.Store{Dir: filepath.Join(dir, fmt.Sprint(rank))}
			}
			said := ""
			r := mustTrain(t, c, shards, func(rank int, tr *Trainer) {
				tr.Checkpoints = store(rank)
				if rank == 0 {
					on(tr, train.Note, func(e train.Event) { said += e.Text })
				}
			})
			got := r.result[1]
			best := got.Stages[0]
			for _, s := range got.Stages[1:] {
				if s.Val > best.Val {
					best = s
				}
			}
			ended[best.Stage] = true
			if final := got.Final(); got.Ends != best.Stage || final.Stage != best.Stage || final.Test != best.Test ||
				len(r.models[1].Layers) != best.Stage {
				t.Errorf("%s, seed %d: the model of %d layers ends with stage %d, of %+v; stage %d validates best",
					p.name(), seed, len(r.models[1].Layers), got.Ends, got.Stages, best.Stage)
			}
			if text := "the model ends with " + best.Name; (best.Stage == 3) != (said == "") ||
				best.Stage < 3 && !strings.HasSuffix(said, text) {
				t.Errorf("%s, seed %d: said %q, want %q", p.name(), seed, said, text)
			}
			again := trainersOf(t, c, shards)[1]
			again.Checkpoints = store(1)
			if done, err := again.Resume(again); !done || err != nil {
				t.Fatalf("%t, %v", done, err)
			}
			m, err := again.Trained()
			if err != nil {
				t.Fatal(err)
			}
			sameModels(t, []*nn.Model{r.models[1], m})
			if c.KeepLast = true; len(mustTrain(t, c, shards, nil).models[0].Layers) != 3 {
				t.Errorf("%s, seed %d: a layer is gone in spite of keep_last", p.name(), seed)
			}
		}
	}
	if len(ended) < 4 {
		t.Errorf("models end with stages %v only, want the encoder and each layer among them", ended)
	}
}

// TestTheEndIsOneModel kills two of three peers while the run ends, when each has sent so many frames of its last
// barrier. They come back, and the third with them, which may have a model already. Nobody ends with another model.
func TestTheEndIsOneModel(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, everyPlan()[0])
	c.Rounds = 4
	shards := cut(t, g, "random", 3)
	for frames := range 3 {
		t.Run(fmt.Sprintf("%d frames", frames), func(t *testing.T) {
			e := &ending{config: c, dir: t.TempDir(),
				shards: func() [3]*Trainer { return [3]*Trainer(trainersOf(t, c, shards)) }}
			for r := range e.trainers {
				e.restart(t, r)
			}
			var mu sync.Mutex
			var sent [3]int
			kill := func(network *netsim.Network, r int) {
				disk := filepath.Join(e.dir, fmt.Sprint(r))
				switch sent[r]++; {
				case sent[r] == frames+1: // of two
					copyDir(t, disk)
					network.Lose(r)
				case sent[r] == frames && frames == 2: // both leave, and it does nothing more
					copyDir(t, disk)
				}
			}
			errs := e.session(t, func(network *netsim.Network, r int, tr *Trainer) {
				mu.Lock()
				defer mu.Unlock()
				if r > 0 && tr.machine.next.Work.Kind == doFinish {
					kill(network, r)
				}
			})
			mu.Lock()
			for r := 1; r < 3; r++ {
				disk := filepath.Join(e.dir, fmt.Sprint(r))
				if err := errors.Join(os.RemoveAll(disk), os.Rename(disk+".killed", disk)); err != nil {
					t.Fatal(err)
				}
				e.restart(t, r)
			}
			mu.Unlock()
			final := e.trainers[0].Done()
			if final != (errs[0] == nil) {
				t.Errorf("peer 0: done %t, error %v", final, errs[0])
			}
			first := e.trainers[0]
			e.restart(t, 0)
			if errs := e.session(t, nil); errors.Join(errs[:]...) != nil {
				t.Fatal(errs)
			}
			var models []*nn.Model
			for r, tr := range e.trainers {
				if !tr.Done() {
					t.Errorf("peer %d has no final model", r)
				}
				models = append(models, tr.model)
			}
			if final {
				models = append(models, first.model)
			}
			sameModels(t, models)
			for r, tr := range e.trainers {
				if n := len(tr.Result().Curve()); n != len(tr.Result().Stages)*c.Rounds {
					t.Errorf("peer %d has %d rounds of %d stages", r, n, len(tr.Result().Stages))
				}
			}
		})
	}
}
