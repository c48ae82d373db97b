package recorded

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/plan"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

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

// TestComponentsLeak: rows of 128 components are found exactly in the bytes of a run, and rows of nodes in the sum
// that finds the components: as docs/measurements/attacks.md has it.
func TestComponentsLeak(t *testing.T) {
	shards, p := cora(t, 3, map[string]string{"method": "layer-wise", "encoder": "pca:128", "exchange": "halo",
		"rounds": "1", "secure_sums": "off"})
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
		shards, p := cora(t, 3, map[string]string{"exchange": "halo", "coarse_rows": c.coarse})
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

// TestColumnsGuessed: rows name at most a twentieth more of a node's words than its class does; without coarse rows
// they name more, as the long form shows.
func TestColumnsGuessed(t *testing.T) {
	long, tried := testenv.LongForm(t), 150 // also fewer hops
	if long {
		tried = 400
	}
	for _, c := range []struct {
		coarse, hops string
		zeros        int // rows in the long form that are sent as zeros, which name nothing
		least, most  float64
	}{{"true", "2", 2, 0, 0.055}, {"true", "6", 1, 0, 0.055}, {"false", "2", 0, 0.055, 0.13}} {
		if !long && c.hops == "2" {
			continue
		}
		shards, p := cora(t, 3, map[string]string{"exchange": "halo", "coarse_rows": c.coarse, "hops": c.hops})
		run, err := Train(t.Context(), p, shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.ClassColumns(t.Context(), 1, tried)
		if err != nil {
			t.Fatal(err)
		}
		rows := tried
		if long {
			rows -= c.zeros
		}
		if attack, base := r.Share(); r.Tried != rows || attack-base < c.least || attack-base > c.most {
			t.Errorf("%+v: %.3f of the words in %d rows, %.3f without a row", c, attack, r.Tried, base)
		}
	}
}

// TestColumnsBesideComponents: columns of classes that are sent next to components name about as many of a node's words
// as columns of classes by themselves may.
func TestColumnsBesideComponents(t *testing.T) {
	testenv.OnlyLong(t)
	shards, p := cora(t, 3, map[string]string{"method": "layer-wise", "model": "sage", "encoder": "pca:16+classes",
		"exchange": "halo", "rounds": "2", "hidden": "64"})
	run, err := Train(t.Context(), p, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.ClassColumns(t.Context(), 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	if attack, base := r.Share(); r.Tried != 300 || attack-base < 0.02 || attack-base > 0.07 {
		t.Errorf("%.3f of the words in %d rows, %.3f without a row: the gap must be 0.02 to 0.07", attack, r.Tried,
			base)
	}
}

// TestLogitsTellLess: if rounds learn from residuals, the logits that are sent name few of a node's words.
func TestLogitsTellLess(t *testing.T) {
	testenv.OnlyLong(t)
	shards, p := cora(t, 3, map[string]string{"exchange": "halo", "class_target": "residual"})
	run, err := Train(t.Context(), p, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.ClassColumns(t.Context(), 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	if attack, base := r.Share(); attack-base < 0.01 || attack-base > 0.035 {
		t.Errorf("logits name %.3f of the words more than a guess without a row, must be 0.01 to 0.035", attack-base)
	}
}

// TestHiddenRowsLeak: rows of features are found exactly in the hidden rows of encoder mlp.
func TestHiddenRowsLeak(t *testing.T) {
	shards, p := cora(t, 3, map[string]string{"method": "layer-wise", "encoder": "mlp", "layers": "1", "rounds": "30",
		"exchange": "halo"})
	run, err := Train(t.Context(), p, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.HiddenRows(t.Context(), 1, 12)
	if err != nil || r.Tried != 12 || r.Exact < 9 {
		t.Errorf("%v, at least 9 of 12 must be found: %v", r, err)
	}
}
