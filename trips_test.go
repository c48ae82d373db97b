package heddle_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// TestTripsOfARun: over links of latency L and of a rate, a run takes its trips times L, and at most the time of all
// peers' bytes over one link. Time is simulated: computation takes none.
func TestTripsOfARun(t *testing.T) {
	// helpers of kernels watch the clock, which stands still while they run
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, shards, frugal, err := comparison()
	if err != nil {
		t.Fatal(err)
	}
	layers := heddle.Defaults(plan.LayerWise, "")
	layers.Policy, layers.Transport, layers.Gradient().Rounds = frugal.Policy, frugal.Transport, 3
	together := heddle.Defaults(plan.FullBatch, "")
	together.Policy, together.Transport, together.Gradient().Rounds = frugal.Policy, frugal.Transport, 3
	turns := together // each peer's gradients after those of another
	turns.FullBatch.Order, turns.FullBatch.Fetch = "fixed", "sar"
	for name, p := range map[string]heddle.Plan{"frugal": frugal, "layers": layers, "together": together,
		"in turn": turns} {
		t.Run(name, func(t *testing.T) {
			const latency, rate = 100 * time.Millisecond, 10e6 / 8
			p.Link = "latency=100ms,rate=10Mbit"
			var r *heddle.Result
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				if r, err = (heddle.Local{Plan: p, Shards: shards}).Train(t.Context()); err != nil {
					t.Fatal(err)
				}
				took, least := time.Since(begun), time.Duration(r.Load.Trips)*latency
				sum := r.Total()
				most := least + time.Duration(float64(sum.Total())/rate*float64(time.Second))
				// A member that leaves a barrier first begins the next sum first: a part of a latency may be saved.
				if took < least-latency/2 || took > most || r.Load.Trips < 10 {
					t.Errorf("%d trips and %d bytes took %v, must be %v to %v", r.Load.Trips, sum.Total(), took, least,
						most)
				}
				if waited := time.Duration(r.Waited * float64(time.Second)); (waited - took).Abs() > latency {
					t.Errorf("peers waited for %v of %v, in which they computed for none", waited, took)
				}
				t.Logf("%v: %d trips, %d messages, %d bytes", took, r.Load.Trips, sum.Messages, sum.Total())
			})
		})
	}
}

// TestSumsGoBesideRows: in a run as users start it, the gradients of wide layers are summed separately while the
// gradients of the layers before are computed. Each epoch has one more sum than if all gradients together are too few
// for that.
func TestSumsGoBesideRows(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 200}, rng.New(1))
	const rounds = 2
	messages := func(hidden int) int64 {
		p := heddle.Defaults(plan.FullBatch, "")
		p.Transport, p.Policy, p.Peers = "memory", "random", 2
		p.Gradient().Layers, p.Gradient().Hidden, p.Gradient().Rounds, p.Gradient().EvalEvery = 3, hidden, rounds,
			rounds
		r, err := heddle.Train(t.Context(), g, p)
		if err != nil {
			t.Fatal(err)
		}
		return r.Total().Messages
	}
	narrow, wide := messages(64), messages(512)  // 512×512 gradients are a bucket
	if more := wide - narrow; more != 4*rounds { // a sum is two messages at each of two peers
		t.Errorf("messages for %d sums more are %d, must be %d", rounds, more, 4*rounds)
	}
}
