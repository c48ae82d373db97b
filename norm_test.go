package heddle

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// counted is a graph whose nodes have five counts each in a number of columns, as bags of words do.
func counted(columns int) *graph.Graph {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 120}, rng.New(1))
	x := mat.New(g.N(), columns)
	for i := range x.Rows {
		for k := range 5 {
			x.Set(i, (7*i+k*k+int(g.Labels.Class[i]))%columns, float32(k+1))
		}
	}
	g.X = graph.Features{Dense: x}
	return g
}

// TestNormByFeatures: all sites divide features alike, by what all of them have: one value below 0 at one site decides
// for all. A model that is final keeps its norm, and gives the same logits again.
func TestNormByFeatures(t *testing.T) {
	below, full := counted(80), counted(80)
	below.X.Dense.Set(119, 3, -1)
	for i := range full.X.Dense.Data {
		full.X.Dense.Data[i]++
	}
	sparse := counted(80)
	few := &mat.Sparse{Rows: sparse.N(), Cols: 80, RowPtr: []int64{0}}
	for i := range few.Rows {
		for j, v := range sparse.X.Dense.Row(i) {
			if v != 0 {
				few.Col, few.Val = append(few.Col, int32(j)), append(few.Val, v)
			}
		}
		few.RowPtr = append(few.RowPtr, int64(len(few.Val)))
	}
	sparse.X = graph.Features{Sparse: few}
	for _, c := range []struct {
		name string
		g    *graph.Graph
		want bool
	}{{"counts", counted(80), true}, {"sparse", sparse, true}, {"one below 0", below, false},
		{"few zeros", full, false}, {"few columns", counted(64), false}} {
		for _, settings := range []string{"method: full-batch\norder: fixed\nrounds: 3",
			"method: layer-wise\nrounds: 2", "method: mini-batch\nrounds: 2",
			"method: layer-wise\ntask: links\nrounds: 2", "method: full-batch\ntask: links\nrounds: 2"} {
			for _, peers := range []int{1, 3} {
				few, links := c.name != "counts" && c.name != "one below 0", strings.Contains(settings, "links")
				if peers == 1 && (few || links) || few && !strings.Contains(settings, "full-batch\norder") {
					continue // the others are to show that sites agree
				}
				p := read(t, settings+"\ntransport: memory\npolicy: contiguous")
				p.Peers = peers
				shards, err := Split(c.g, p)
				if err != nil {
					t.Fatal(err)
				}
				l := Local{Plan: p, Shards: shards, State: t.TempDir()}
				var logits [][]float32
				for range 2 {
					r, err := l.Train(t.Context())
					if err != nil {
						t.Fatalf("%s, %q: %v", c.name, settings, err)
					}
					if e := r.Model.Spec.Encoder; e.L2Norm != c.want || r.Model.Encoder.Spec.L2Norm != c.want {
						t.Errorf("%s, %q, %d peers: length 1 is %t, must be %t", c.name, settings, peers, e.L2Norm,
							c.want)
					}
					logits = append(logits, r.Own[0].Logits.Data)
				}
				if !slices.Equal(logits[0], logits[1]) {
					t.Errorf("%s, %q, %d peers: a final model gives other logits", c.name, settings, peers)
				}
			}
		}
	}
}
