package attack

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// random returns a map of f columns to d measurements.
func random(f, d int) mat.Dense {
	m := mat.New(f, d)
	for i := range m.Data {
		m.Data[i] = float32(rng.New(3).Normal(uint64(i)))
	}
	return m
}

// TestPursue: a sparse row is found from random measurements of it, and only up to its length.
func TestPursue(t *testing.T) {
	m := random(400, 60)
	for n := 1; n <= 12; n++ {
		set := rng.New(uint64(n)).Perm(400)[:n]
		slices.Sort(set)
		y := make([]float32, 60)
		for _, j := range set {
			for i := range y {
				y[i] += 0.3 * m.At(int(j), i)
			}
		}
		guess := NewDictionary(m).Pursue(y, 30, Sound)
		if !slices.Equal(guess.Col, set) || !guess.Equal() || guess.Miss > Sound {
			t.Errorf("%v is found as %v, values %.3g, missing %.2g", set, guess.Col, guess.Value, guess.Miss)
		}
	}
}

// bagOf returns a problem whose answer is set.
func bagOf(f, d int, size float64, set []int32) *Bag {
	b := &Bag{K: len(set), Prior: make([]float64, f), Target: make([]float64, d)}
	for _, v := range random(f, d).Data {
		b.Atom = append(b.Atom, size*float64(v))
	}
	for _, j := range set {
		add(b.Target, b.atom(j))
	}
	for i, v := range b.Target {
		b.Target[i] = math.RoundToEven(v)
	}
	return b
}

// consistent reports whether rounding explains what a set leaves of the measurements.
func (b *Bag) consistent(set []int32) bool {
	left := slices.Clone(b.Target)
	for _, j := range set {
		sub(left, b.atom(j))
	}
	return b.miss(left, 1) == 0
}

// TestSearch: sets of few columns are found from rounded measurements.
func TestSearch(t *testing.T) {
	for n := 1; n <= 7; n++ {
		set := rng.New(uint64(n)).Perm(120)[:n]
		slices.Sort(set)
		b := bagOf(120, 12, 20, set)
		if !b.consistent(set) {
			t.Fatalf("%v does not agree with its own measurements", set)
		}
		if found := b.Search(20_000_000, rng.New(1)); !slices.Equal(found.Set, set) {
			t.Errorf("%v is found as %+v", set, found)
		}
	}
}

// TestBagsTogether: coarse measurements of several runs name the set together.
func TestBagsTogether(t *testing.T) {
	set := []int32{3, 30, 50, 77}
	var all *Bag
	for d := 3; d <= 8; d++ {
		one := bagOf(120, d, 4, set)
		all = both(all, one)
	}
	if !all.consistent(set) || len(all.Target) != 33 {
		t.Errorf("%d measurements, must be 33 that the set agrees with", len(all.Target))
	}
	if found := all.Search(1_000_000, rng.New(1)); !slices.Equal(found.Set, set) {
		t.Errorf("%v is found as %+v", set, found)
	}
}

// TestSpread: the first numbers are spread evenly, and none comes twice.
func TestSpread(t *testing.T) {
	order := Spread(100)
	first := slices.Sorted(slices.Values(order[:10]))
	for i := range 9 {
		if gap := first[i+1] - first[i]; gap < 5 || gap > 20 {
			t.Errorf("the first ten are %v", first)
		}
	}
	if slices.Sort(order); order[0] != 0 || order[99] != 99 || len(slices.Compact(order)) != 100 {
		t.Errorf("not each of 100 numbers once: %v", order)
	}
}

// cora returns the parts of Cora, and the plan of some settings.
func cora(t *testing.T, parts int, given map[string]string) ([]*shard.Shard, plan.Plan) {
	t.Helper()
	g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return split(t, g, parts, given)
}

func split(t *testing.T, g *graph.Graph, parts int, given map[string]string) ([]*shard.Shard, plan.Plan) {
	t.Helper()
	p, err := plan.Read(nil, given, nil)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g.Numbered(), policy, parts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return shards, *p
}

// TestCheck: a site learns by itself, and soon, what its rows reveal.
func TestCheck(t *testing.T) {
	every := testenv.LongForm(t)
	for _, c := range []struct {
		given       map[string]string
		least, most float64 // fraction of exact rows
	}{
		{map[string]string{"method": "layer-wise", "encoder": "raw"}, 1, 1},
		{map[string]string{"method": "layer-wise", "encoder": "pca:128"}, 0.7, 1},
		{map[string]string{"method": "layer-wise", "encoder": "pca:8"}, 0, 0.2},
		{map[string]string{}, 0, 0},
		// the fraction depends on how many rows fit into the time, and each takes long
		{map[string]string{"method": "layer-wise", "encoder": "mlp"}, 0, 1},
	} {
		if c.given["encoder"] == "mlp" && !every {
			continue
		}
		shards, p := cora(t, 3, c.given)
		r, err := Check(t.Context(), p, shards[1], time.Second/4)
		share := float64(r.Exact) / float64(max(r.Tried, 1))
		if err != nil || r.Tried == 0 || share < c.least || share > c.most {
			t.Errorf("%v: %v, the fraction must be %g to %g: %v", c.given, r, c.least, c.most, err)
		}
	}
	shards, p := cora(t, 3, map[string]string{"method": "layer-wise", "encoder": "mlp", "layer_output": "logits"})
	if r, err := Check(t.Context(), p, shards[1], time.Second); err != ErrUnmeasured {
		t.Errorf("logits of encoder mlp: %v, %v", r, err)
	}
}

// TestShare: numbers of a node reveal as large a share of the variance as principal components do, and the whole row if
// they are as many as the columns that vary.
func TestShare(t *testing.T) {
	const n = 2000
	key := rng.New(8)
	x := mat.New(n, 7)
	for i := range n {
		for j := range 6 {
			x.Set(i, j, float32(100*j)+float32(j+1)*float32(key.Normal(uint64(6*i+j))))
		}
		x.Set(i, 6, 5) // reveals nothing
	}
	percent := func(x mat.Dense, numbers int) (v int) {
		text := Share(graph.Features{Dense: x}, numbers)
		if at := strings.Index(text, "at most "); at >= 0 {
			if _, err := fmt.Sscanf(text[at:], "at most %d %%", &v); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		} else if strings.Contains(text, "can be computed") {
			v = 100
		}
		return v
	}
	for numbers, want := range []int{0, 17, 33, 50, 67, 83, 100, 100} {
		if got := percent(x, numbers); numbers > 0 && (got < want || got > want+4) {
			t.Errorf("%d numbers explain at most %d %% of 6 independent columns, must be %d to %d", numbers, got, want,
				want+4)
		}
	}
	for i := range n {
		x.Set(i, 1, -3*x.At(i, 0))
	}
	if two, four := percent(x, 2), percent(x, 4); two < 50 || two > 54 || four < 83 || four > 88 {
		t.Errorf("where two columns are one, 2 and 4 numbers explain %d and %d %%, must be 50 to 54 and 83 to 88", two,
			four)
	}
	bags := graph.Features{Dense: mat.New(3, 4)}
	bags.Dense.Set(0, 1, 0.5)
	bags.Dense.Set(0, 3, 0.5)
	bags.Dense.Set(2, 0, 2)
	if !Bags(bags) || Bags(graph.Features{Dense: x}) {
		t.Error("rows of one value are bags, and others are not")
	}
	if text := Share(bags, 2); !strings.HasPrefix(text, "not measured") {
		t.Errorf("of three nodes nothing is measured (got %q)", text)
	}
}

// both returns the bag of two measurements of one set, with the odds of b; either may be nil.
func both(b, other *Bag) *Bag {
	switch {
	case b == nil:
		return other
	case other == nil:
		return b
	}
	all := &Bag{K: b.K, Prior: b.Prior, Target: slices.Concat(b.Target, other.Target)}
	for j := range b.Prior {
		all.Atom = append(append(all.Atom, b.atom(int32(j))...), other.atom(int32(j))...)
	}
	return all
}
