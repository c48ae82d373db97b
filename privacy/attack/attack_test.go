package attack

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/leak"
	"github.com/heddle-gnn/heddle/internal/long"
	"github.com/heddle-gnn/heddle/internal/realdata"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
)

func TestMain(m *testing.M) { leak.Main(m) }

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
		guess := NewDictionary(m).Pursue(y, 30, sound)
		if !slices.Equal(guess.Col, set) || !guess.equal() || guess.Miss > sound {
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

// TestSearch: sets of few columns are found from rounded measurements, and one that has as few measurements as other
// sets fit is not, but has rivals.
func TestSearch(t *testing.T) {
	for n := 1; n <= 7; n++ {
		set := rng.New(uint64(n)).Perm(120)[:n]
		slices.Sort(set)
		b := bagOf(120, 12, 20, set)
		if !b.Consistent(set) {
			t.Fatalf("%v does not agree with its own measurements", set)
		}
		if found := b.Search(20_000_000, rng.New(1)); !slices.Equal(found.Set, set) {
			t.Errorf("%v is found as %+v", set, found)
		}
	}
	set := []int32{3, 30, 50, 77, 90, 110}
	if rivals, _ := bagOf(120, 4, 3, set).Rivals(set, 50); rivals != 50 {
		t.Errorf("%d other sets have the same four coarse measurements, there must be many", rivals)
	}
	if rivals, _ := bagOf(120, 12, 20, set).Rivals(set, 50); rivals != 0 {
		t.Errorf("%d other sets have the same twelve fine measurements, there must be none", rivals)
	}
}

// TestBagsTogether: coarse measurements of several runs, each of which many sets agree with, name the set together.
func TestBagsTogether(t *testing.T) {
	set := []int32{3, 30, 50, 77}
	var all *Bag
	for d := 3; d <= 8; d++ {
		one := bagOf(120, d, 4, set)
		if rivals, _ := one.Rivals(set, 3); d < 5 && rivals < 3 {
			t.Errorf("%d other sets agree with %d measurements, there must be more", rivals, d)
		}
		all = all.and(one)
	}
	if !all.Consistent(set) || len(all.Target) != 33 {
		t.Errorf("%d measurements, must be 33 that the set agrees with", len(all.Target))
	}
	if found := all.Search(1_000_000, rng.New(1)); !slices.Equal(found.Set, set) {
		t.Errorf("%v is found as %+v", set, found)
	}
}

// TestSpread: the first numbers lie evenly, and none comes twice.
func TestSpread(t *testing.T) {
	order := spread(100)
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
	g, err := dataset.Read(realdata.Dir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return split(t, g, parts, given)
}

func split(t *testing.T, g *graph.Graph, parts int, given map[string]string) ([]*shard.Shard, plan.Plan) {
	t.Helper()
	p, _, err := plan.Read(nil, given, nil)
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

// TestComponentsLeak: rows of 128 components are found exactly in the bytes of a run, and rows of nodes in the sum
// that finds the components: as docs/measurements/attacks.md has it.
func TestComponentsLeak(t *testing.T) {
	shards, p := cora(t, 3, map[string]string{"encoder": "pca:128", "exchange": "halo", "rounds": "1",
		"secure_sums": "off"})
	run, err := Train(t.Context(), p, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := run.ComponentRows(t.Context(), 1, 40)
	if err != nil || rows.Exact < 36 {
		t.Errorf("%d of 40 rows are found, at least 36 must be: %v", rows.Exact, err)
	}
	if testing.Short() {
		t.Log("SKIPPED: the sum, with -short")
		return
	}
	sum, err := run.ComponentSum(t.Context(), 1)
	if err != nil || sum.Exact < 30 || sum.Claimed != sum.Exact {
		t.Errorf("%d of %d claims from the sum are rows, at least 30 and all must be: %v", sum.Exact, sum.Claimed, err)
	}
}

// TestClassRowsHide: without coarse rows, rows of class means of nodes with few words are found exactly; with
// them, as by default, none is.
func TestClassRowsHide(t *testing.T) {
	for _, c := range []struct {
		coarse      string
		rows        int
		least, most int // exact
	}{{"false", 4, 4, 4}, {"true", 12, 0, 0}} {
		shards, p := cora(t, 3, map[string]string{"preset": "frugal", "exchange": "halo", "coarse_rows": c.coarse})
		run, err := Train(t.Context(), p, shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.ClassRows(t.Context(), 1, Effort{Rows: c.rows, Tries: 1_000_000, Least: 2})
		if err != nil || r.Tried != c.rows || r.Exact < c.least || r.Exact > c.most {
			t.Errorf("coarse rows %s: %v, must be %d to %d: %v", c.coarse, r, c.least, c.most, err)
		}
		attack, base := r.Share()
		t.Logf("coarse rows %s: %v, %d claimed, words right %.2f, by class %.2f", c.coarse, r, r.Claimed, attack, base)
	}
}

// TestPlansHideTogether: rows by three plans of preset auto give back nodes of few words where each plan sends them as they are;
// not as preset auto sends them, coarse and by one plan alone.
func TestPlansHideTogether(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: six runs; HEDDLE_LONG=1 does them")
	}
	shards, auto := cora(t, 3, map[string]string{"preset": plan.Auto})
	all, err := auto.CandidatesFor(shards[0])
	if err != nil {
		t.Fatal(err)
	}
	exact := func(change func(*plan.Plan)) int {
		var runs []*Run
		for _, c := range all {
			if c.Name != "residual" && c.Name != "last-hop" && c.Name != "labels" {
				continue
			}
			c.Plan.Exchange = "halo"
			change(&c.Plan)
			run, err := Train(t.Context(), c.Plan, shards, 0)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		r, err := ClassRows(t.Context(), runs, 1, Effort{Rows: 12, Tries: 1_000_000, Least: 2})
		if err != nil || len(runs) != 3 || r.Tried != 12 {
			t.Fatalf("%d rows by %d plans are tried, must be 12 by 3: %v", r.Tried, len(runs), err)
		}
		return r.Exact
	}
	if n := exact(func(p *plan.Plan) { p.WithholdFew, p.CoarseRows = false, false }); n < 6 {
		t.Errorf("%d rows are found by plans that all send them as they are, at least 6 must be", n)
	}
	if n := exact(func(*plan.Plan) {}); n != 0 {
		t.Errorf("%d rows of preset auto are found, must be 0", n)
	}
}

// TestColumnsGuessed: rows name at most a twentieth more of a node's words than its class does; without coarse rows
// they name more, and by components beside the class means more still. Those of preset auto's usual plan name less.
func TestColumnsGuessed(t *testing.T) {
	for _, c := range []struct {
		coarse, encoder, hops, kept string
		least, most                 float64
	}{
		{"true", "classes", "2", "auto", 0, 0.055}, {"true", "classes", "6", "all", 0, 0.05},
		{"false", "classes", "2", "auto", 0.055, 0.1}, {"true", "classes+pca:16", "2", "auto", 0.1, 0.2},
	} {
		if testing.Short() && c.most > 0.055 {
			t.Logf("SKIPPED: coarse rows %s, encoder %s, with -short", c.coarse, c.encoder)
			continue
		}
		shards, p := cora(t, 3, map[string]string{"preset": "frugal", "exchange": "halo", "coarse_rows": c.coarse, "encoder": c.encoder,
			"hops": c.hops, "hops_kept": c.kept})
		run, err := Train(t.Context(), p, shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.ClassColumns(t.Context(), 1, 400)
		if err != nil {
			t.Fatal(err)
		}
		if attack, base := r.Share(); r.Tried < 300 || attack-base < c.least || attack-base > c.most {
			t.Errorf("%+v: %.3f of the words in %d rows, %.3f without a row", c, attack, r.Tried, base)
		}
	}
}

// TestColumnsBesideComponents: where components and columns of classes cross, they name more of a node's words than
// columns of classes by themselves may.
func TestColumnsBesideComponents(t *testing.T) {
	long.Only(t)
	shards, p := cora(t, 3, map[string]string{"model": "sage", "encoder": "pca:16+classes", "exchange": "halo", "rounds": "2", "hidden": "64"})
	run, err := Train(t.Context(), p, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.ClassColumns(t.Context(), 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	if attack, base := r.Share(); r.Tried != 300 || attack-base < 0.07 || attack-base > 0.13 {
		t.Errorf("%.3f of the words in %d rows, %.3f without a row: the gap must be 0.07 to 0.13", attack, r.Tried, base)
	}
}

// TestLogitsTellLess: where rounds learn from residuals, the logits that cross by default name fewer of a node's words than
// columns of each round would.
func TestLogitsTellLess(t *testing.T) {
	long.Only(t)
	var gap []float64
	for _, alone := range []string{"-1", "0"} {
		shards, p := cora(t, 3, map[string]string{"preset": "frugal", "exchange": "halo", "class_target": "residual", "rounds_alone": alone})
		run, err := Train(t.Context(), p, shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.ClassColumns(t.Context(), 1, 300)
		if err != nil {
			t.Fatal(err)
		}
		attack, base := r.Share()
		gap = append(gap, attack-base)
	}
	if gap[0] < 0.01 || gap[0] > 0.035 || gap[0] > 0.8*gap[1] {
		t.Errorf("logits name %.3f of the words, must be 0.01 to 0.035 and at most four fifths of the %.3f that columns name", gap[0], gap[1])
	}
}

// TestHiddenRowsLeak: rows of features are found exactly in the hidden rows of encoder mlp.
func TestHiddenRowsLeak(t *testing.T) {
	shards, p := cora(t, 3, map[string]string{"encoder": "mlp", "layers": "1", "rounds": "30", "exchange": "halo"})
	run, err := Train(t.Context(), p, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.HiddenRows(t.Context(), 1, 12)
	if err != nil || r.Tried != 12 || r.Exact < 9 {
		t.Errorf("%v, at least 9 of 12 must be found: %v", r, err)
	}
}

// TestCheck: a site learns by itself, and soon, what its rows tell.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		given       map[string]string
		least, most float64 // fraction of exact rows
	}{
		{map[string]string{"encoder": "raw"}, 1, 1},
		{map[string]string{"encoder": "pca:128"}, 0.7, 1},
		{map[string]string{"encoder": "pca:8"}, 0, 0.2},
		{map[string]string{"preset": "frugal"}, 0, 0},
		{map[string]string{"encoder": "mlp"}, 0, 1}, // the fraction depends on how many rows there is time for
	} {
		shards, p := cora(t, 3, c.given)
		r, err := Check(t.Context(), p, shards[1], time.Second/2)
		share := float64(r.Exact) / float64(max(r.Tried, 1))
		if err != nil || r.Tried == 0 || share < c.least || share > c.most {
			t.Errorf("%v: %v, the fraction must be %g to %g: %v", c.given, r, c.least, c.most, err)
		}
	}
	shards, p := cora(t, 3, map[string]string{"encoder": "mlp", "layer_output": "logits"})
	if r, err := Check(t.Context(), p, shards[1], time.Second); err != ErrUnmeasured {
		t.Errorf("logits of encoder mlp: %v, %v", r, err)
	}
}
