package p2p

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// BenchmarkStrangers trains with three peers in this process while strangers in another try to
// connect to one of them a thousand times a second, for two seconds, in turn with as long without
// them:
//
//	go test ./p2p -run - -bench Strangers -benchtime 8x
//
// here: the strangers are at the members' own network address, as behind one router; elsewhere: at one where no member
// is; initials: they send the first packets of connections only, anywhere: with addresses of their choice.
// cpu-us/attempt is the processor time that one attempt costs that process while it does not train. The rest are
// medians: rounds a second with strangers over those just before without, by processor time of the training process
// (cpu-ratio) and by the clock (wall-ratio), which the strangers' own work on the same machine slows down; and attempts
// a second. MiB is how much more memory the training process used at most.
func BenchmarkStrangers(b *testing.B) {
	for _, transport := range transports {
		from := map[string]string{"here": "127.0.0.1", "elsewhere": "127.0.0.9"}
		if transport == "quic" {
			from["initials-here"], from["initials-elsewhere"], from["initials-anywhere"] = "initials@127.0.0.1",
				"initials@127.0.0.9", "initials@"
		}
		for where, from := range from {
			b.Run(transport+"/"+where, func(b *testing.B) { strangers(b, transport, from) })
		}
	}
}

func strangers(b *testing.B, transport, from string) {
	const span = 2 * time.Second
	ss := sessions(b, transport, 3)
	cost := func() float64 {
		started, stop := flood(b, ss[1].host, transport, from, 1000)
		<-started
		time.Sleep(time.Second) // they use up what may come at once
		used := processTime()
		time.Sleep(span)
		all := (processTime() - used).Seconds()
		tried, _ := stop()
		return 1e6 * all / (float64(tried) * span.Seconds() / (time.Second + span).Seconds())
	}()
	rounds, end := training(b, ss)
	defer end()
	for rounds() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	measure := func() (cpu, wall float64) {
		n, used, begun := rounds(), processTime(), time.Now()
		time.Sleep(span)
		done := float64(rounds() - n)
		return done / (processTime() - used).Seconds(), done / time.Since(begun).Seconds()
	}
	var byCPU, byWall, attempts []float64
	before, most, served := heap(), int64(0), 0
	for range b.N {
		cpu, wall := measure()
		started, stop := flood(b, ss[1].host, transport, from, 1000)
		<-started
		begun := time.Now()
		cpu2, wall2 := measure()
		most = max(most, heap()-before)
		tried, got := stop()
		served += got
		attempts = append(attempts, float64(tried)/time.Since(begun).Seconds())
		byCPU, byWall = append(byCPU, cpu2/cpu), append(byWall, wall2/wall)
	}
	if served > 0 {
		b.Errorf("%d strangers were served", served)
	}
	b.ReportMetric(cost, "cpu-us/attempt")
	b.ReportMetric(median(byCPU), "cpu-ratio")
	b.ReportMetric(median(byWall), "wall-ratio")
	b.ReportMetric(median(attempts), "attempts/s")
	b.ReportMetric(float64(most)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// training trains layer by layer over ss for as long as it takes, and counts the rounds of the
// first peer.
func training(b *testing.B, ss []*Mesh) (rounds func() int64, end func()) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 6000, Sites: len(ss), Classes: 5, Columns: 200, Train: 0.5, Val: 0.1},
		rng.New(1))
	shards, err := partition.Partition(g, partition.ByColumn{}, 0, 1)
	if err != nil {
		b.Fatal(err)
	}
	spec, err := retexo.Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 64,
		Hops: 1}.Spec("single", g.X.Cols(), g.Labels.Classes)
	if err != nil {
		b.Fatal(err)
	}
	c := retexo.Defaults(spec)
	c.Rounds, c.Patience = math.MaxInt32, 0
	ctx, cancel := context.WithCancel(context.Background())
	var count atomic.Int64
	var all sync.WaitGroup
	for r, s := range ss {
		all.Go(func() {
			m, err := c.NewModel()
			if err != nil {
				b.Error(err)
				return
			}
			t, err := retexo.New(c, shards[r], m)
			if err != nil {
				b.Error(err)
				return
			}
			if r == 0 {
				t.OnEvent = func(e train.Event) {
					if e.Kind == train.RoundEnd {
						count.Add(1)
					}
				}
			}
			group := comm.NewGroup(s, r, len(ss))
			if err := t.Run(ctx, group, group); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
	return count.Load, func() {
		cancel()
		all.Wait()
		runtime.GC()
	}
}
