package eval

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestRanking: figures are those of SciPy and scikit-learn for the same scores (testdata/links.py), whoever counts
// which link.
func TestRanking(t *testing.T) {
	b, err := os.ReadFile("testdata/links.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Link     []float32
		Drawn    [][]float32
		MRR, AUC float64
		Hits     [4]float64
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	parts := []*Ranking{NewRanking(DefaultBins), NewRanking(DefaultBins), NewRanking(DefaultBins)}
	for i, s := range golden.Link {
		parts[i%3].Add(s, golden.Drawn[i])
		parts[i%3].Lost(0.5)
	}
	sum := parts[0].Vector()
	for _, p := range parts[1:] {
		for k, n := range p.Vector() {
			sum[k] += n
		}
	}
	r, err := parts[0].Read(sum)
	if err != nil {
		t.Fatal(err)
	}
	must := Ranks{Links: 60, MRR: golden.MRR, AUC: golden.AUC, Loss: 0.5}
	near := func(what string, is, must, within float64) {
		if math.Abs(is-must) > within {
			t.Errorf("%s is %v, must be %v", what, is, must)
		}
	}
	near("links", float64(r.Links), float64(must.Links), 0)
	near("MRR", r.MRR, must.MRR, 1e-6)
	near("AUC", r.AUC, must.AUC, 2e-3)
	near("loss", r.Loss, must.Loss, 1e-9)
	for k := range Hits {
		near("hits", r.Hits[Hits[k]], golden.Hits[k], 1e-9)
	}
	for m, must := range map[Metric]float64{"mrr": r.MRR, "hits@3": r.Hits[3], "auc": r.AUC} {
		if m.Fits(graph.Links) != nil || r.Of(m) != must {
			t.Errorf("%s is %v (%v), must be %v", m, r.Of(m), m.Fits(graph.Links), must)
		}
	}
	for _, m := range []Metric{"accuracy", "r2", "hits@7"} {
		if m.Fits(graph.Links) == nil {
			t.Errorf("%s is accepted for links, must be refused", m)
		}
	}
	if Metric("mrr").Fits(graph.Single) == nil || Metric("mrr").Fits(graph.Numbers) == nil {
		t.Error("mrr is accepted for nodes, must be refused")
	}
	if sum[1]++; sum[1] <= sum[2] {
		sum[1] = sum[2] + 1
	}
	if _, err := parts[0].Read(sum); err == nil {
		t.Error("counts that cannot be are accepted, must be refused")
	}
	if none, err := NewRanking(10).Read(NewRanking(10).Vector()); err != nil || none.MRR == none.MRR {
		t.Errorf("the figures of no link are %+v (%v), must be NaN", none, err)
	}
}
