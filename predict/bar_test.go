package predict_test

import (
	"slices"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/predict"
	"github.com/heddle-gnn/heddle/rng"
)

// TestBar: on 50,000 nodes (5,000 in short) a prediction for one node takes less than a millisecond and at most
// 64 allocations, and equals the whole graph's, also after a change. What all takes is logged.
func TestBar(t *testing.T) {
	nodes := 5000
	if testenv.LongForm(t) {
		nodes = 50_000
	}
	g := dataset.Sites(dataset.SitesConfig{Nodes: nodes}, rng.New(1))
	gcn, err := nn.Preset("gcn", "single", g.X.Cols(), g.Labels.Classes, 64, 2)
	if err != nil {
		t.Fatal(err)
	}
	gat, err := nn.Preset("gat", "single", g.X.Cols(), g.Labels.Classes, 64, 2)
	if err != nil {
		t.Fatal(err)
	}
	all := []struct {
		name string
		spec nn.Spec
		bar  bool
	}{{"gcn", gcn, true}, {"gat", gat, false}}
	for _, target := range []string{"labels", "residual"} {
		c := classmeans.Config{Task: "single", Features: g.X.Cols(), Classes: g.Labels.Classes, Metric: "accuracy",
			RowNorm: "none", Target: target, LeaveOut: classmeans.Auto, Hops: 6, Random: -1}
		layout := c.Layout()
		all = append(all, struct {
			name string
			spec nn.Spec
			bar  bool
		}{"class means, " + target, nn.Spec{Task: "single", Features: c.Features, Classes: c.Classes,
			LayerOutput: nn.Hidden, Closed: &layout, Encoder: nn.EncoderSpec{Kind: "closed", Out: c.Classes}}, true})
	}
	for _, one := range all {
		t.Run(one.name, func(t *testing.T) {
			m := model(t, one.spec)
			p, err := predict.New(m, modelfile.Card{}, g)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			whole, err := heddle.Predict(m, g)
			pass := time.Since(began)
			if err != nil {
				t.Fatal(err)
			}
			took, bytes := p.Built()
			key := rng.New(2)
			ask := func(n int) (times []time.Duration) {
				for k := range n {
					i := int(key.Uint64(uint64(k)) % uint64(g.N()))
					began := time.Now()
					got, err := p.Predict(i)
					times = append(times, time.Since(began))
					if err == nil {
						err = same(got, whole, []int{i})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				return times
			}
			first := ask(300)
			slices.Sort(first)
			node := 0
			allocations := testing.AllocsPerRun(50, func() {
				node = (node + 997) % g.N()
				if _, err := p.Predict(node); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("reach %d hops; built in %v, %d MB; whole graph %v; one node %v (median), %v (slowest of 300), "+
				"%.0f allocations", p.Reach(), took.Round(time.Millisecond), bytes>>20, pass.Round(time.Millisecond),
				first[150], first[299], allocations)
			if one.bar && first[150] > time.Millisecond {
				t.Errorf("a prediction took %v, must be less than 1ms", first[150])
			}
			if one.bar && allocations > 64 {
				t.Errorf("a prediction took %.0f allocations, must be at most 64", allocations)
			}
			for range 2 { // the lists grow only once
				began = time.Now()
				err = p.Update(false, func(c *predict.Change) error {
					node, err := c.AddNode(make([]float32, g.X.Cols()))
					for k := 0; err == nil && k < 5; k++ {
						err = c.AddEdge(predict.Edge{From: nodes / 6 * k, To: node, OneWay: true})
					}
					if err == nil {
						_, err = c.Predict(node)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("a new node that reads five others, taken back: %v", time.Since(began))
			}
			began, far := time.Now(), nodes-nodes/5
			if err := p.AddEdge(predict.Edge{From: 11, To: far}); err != nil {
				t.Fatal(err)
			}
			added := time.Since(began)
			h := *g
			h.Adj = with(t, g, 11, int32(far))
			if whole, err = heddle.Predict(m, &h); err != nil {
				t.Fatal(err)
			}
			times := ask(300)
			began = time.Now()
			end, err := p.Predict(11)
			times = append(times, time.Since(began))
			if err == nil {
				err = same(end, whole, []int{11})
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("after an edge, added in %v: first prediction %v, slowest of the next 299 %v, of an end %v", added,
				times[0], slices.Max(times[1:300]), times[300])
		})
	}
}
