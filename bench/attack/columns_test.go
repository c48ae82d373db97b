package attack

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// TestColumns: rows of six independent columns have at most three numbers and reveal about as large a share of the
// variance; an attacker that knows five columns finds the sixth. If rows have as many numbers as there are columns, the
// same attack finds nearly all.
func TestColumns(t *testing.T) {
	g, err := made("six", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings    string
		most        int     // numbers sent
		least, less float64 // share of variance
		known       float64 // the same, given all other columns
	}{
		{"method=class-means", 3, 0.2, 0.6, 0.9},
		{"method=class-means rows=float32", 3, 0.2, 0.6, 0.99},
		{"method=layer-wise encoder=raw layers=1 rounds=5", 6, 0.9, 1, 0.9}, // whose factor by degree is not linear
	} {
		b := &inference{seed: 1}
		run, err := b.run(t.Context(), g, c.settings, 3, false)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := run.Sent(1)
		if err != nil {
			t.Fatal(err)
		}
		all, err := run.FewColumns(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			t.Log(c.settings, f)
		}
		if share, known := all[0].Value, all[4].Value; sent < 1 || sent > c.most || share < c.least || share > c.less ||
			known < c.known {
			t.Errorf("%s: %d numbers reveal a share of %.3f, and %.3f given all others; "+
				"must be at most %d, %g to %g, and %g", c.settings, sent, share, known, c.most, c.least, c.less,
				c.known)
		}
		if all[0].Base > 0.1 || all[4].Base > 0.1 {
			t.Errorf("%s: without rows independent columns are guessed: %v, %v", c.settings, all[0], all[4])
		}
		f, err := run.Attribute(1, func(int64) float32 { return 1 })
		if err != nil || f[0].Value != 0 {
			t.Errorf("a constant is read off rows: %v, %v", f, err)
		}
		f, err = run.Attribute(1, func(node int64) float32 { return g.X.Dense.At(int(node), 2) })
		if err != nil || f[0].Value < 0.7 {
			t.Errorf("%s: the column that matters of neighbours must be read off rows as an attribute: %v, %v",
				c.settings, f, err)
		}
	}
}

// TestMade: a made graph has its columns, labels and splits, and none is made by another name.
func TestMade(t *testing.T) {
	if g, err := made("cora", 1); g != nil || err != nil {
		t.Errorf("no graph of that name is made: %v, %v", g, err)
	}
	g, err := made("sixteen", 2)
	if err != nil || g.X.Cols() != 16 || len(g.InSplit(graph.Test)) != g.N()/3 || len(g.Adj.Col) < 4*g.N() {
		t.Errorf("the graph of 16 columns is %v: %v", g, err)
	}
}
