package compare

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// sites are inputs of three sites, sampled by seed as builtIn samples four, and a quick plan.
func sites(edit func(*graph.Graph)) (*data, heddle.Plan) {
	p := heddle.Defaults("", "")
	p.Transport, p.Seed = "memory", 7
	return &data{closer: io.NopCloser(nil), run: func(k int) (input, error) {
		q := seeded(p, k)
		g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: 3, Classes: 4, Columns: 80, Train: 0.1, Val: 0.1},
			rng.New(q.Seed))
		if edit != nil {
			edit(g)
		}
		return cut(g, q, func(heddle.Event) {})
	}}, p
}

// compared runs a comparison and returns what it wrote and printed.
func compared(t *testing.T, all *data, seeds int) (r results, dir, text string) {
	t.Helper()
	c := comparing{RunFile: graphs.RunFile{Seeds: seeds, Out: t.TempDir()}}
	var out bytes.Buffer
	if err := c.compare(t.Context(), all, cli.NewWatch(io.Discard, true), &out, "heddle compare"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(c.Out, "compare.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, c.Out, out.String()
}

// Every figure equals the figure of a separate run, and the difference is over the same nodes.
func TestFiguresAreThoseOfTheRuns(t *testing.T) {
	all, _ := sites(nil)
	r, dir, text := compared(t, all, 2)
	ways := map[string]*wayResult{}
	for _, w := range r.Ways {
		ways[w.Way] = w
	}
	sum := 0.0
	for k := range 2 {
		in, err := all.run(k)
		if err != nil {
			t.Fatal(err)
		}
		o, err := heddle.Local{Plan: in.plan, Shards: in.shards}.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		one := ways[together].Runs[k]
		sent := o.Total()
		if one.Test != o.Test || *one.Val != o.Val || one.Bytes != sent.Total() || one.Seed != uint64(7+k) {
			t.Errorf("run %d together: %+v, by itself %v, %v, %d bytes", k, one, o.Test, o.Val, sent.Total())
		}
		outcome, err := heddle.Compare(t.Context(), in.graph, in.shards, heddle.Trial{Plan: in.plan, Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := ways[alone].Runs[k].Test; got != outcome[0].Test {
			t.Errorf("run %d alone: %v, by itself %v", k, got, outcome[0].Test)
		}
		sum += o.Test - outcome[0].Test
	}
	if math.Abs(r.Joining.Mean-sum/2) > 1e-12 || *ways[alone].Ahead != r.Joining || ways[together].Ahead != nil {
		t.Errorf("joining must gain %v (got %+v)", sum/2, r.Joining)
	}
	mean, nodes := 0.0, 0
	for _, s := range r.Sites {
		mean, nodes = mean+s.Together.Mean*float64(s.TestNodes), nodes+s.TestNodes
	}
	if math.Abs(mean/float64(nodes)-ways[together].Test.Mean) > 0.02 { // sites differ in size between runs
		t.Errorf("the sites' mean is %v, all together %v", mean/float64(nodes), ways[together].Test.Mean)
	}
	if math.Abs(ways[pooled].Test.Mean-ways[together].Test.Mean) > 0.03 { // 5 of 192 test nodes
		t.Errorf("closed form over sites is the same as over pooled data: %v and %v", ways[together].Test,
			ways[pooled].Test)
	}
	for _, want := range []string{r.Sentence, "each site alone", "Sums left the sites, and rows of at most", "site-2",
		"compare.html"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the output has no %q:\n%s", want, text)
		}
	}
	f, err := os.Open(filepath.Join(dir, "compare.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if lines, err := csv.NewReader(f).ReadAll(); err != nil || len(lines) != 1+5*2 {
		t.Errorf("%d lines of CSV must be a head and one for each way and run: %v", len(lines), err)
	}
	p, err := heddle.ReadPlan(read(t, filepath.Join(dir, "settings.yaml")), nil, new(graphs.RunFile))
	if err != nil || p.Seed != 7 || p.Method != plan.ClassMeans {
		t.Errorf("settings.yaml must repeat the run: %+v, %v", p, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A site without labels to learn from cannot train by itself: the comparison is over the other sites' nodes, and the
// page states that.
func TestSiteThatCannotTrainAlone(t *testing.T) {
	all, _ := sites(func(g *graph.Graph) {
		for i, s := range g.Site {
			if s == 1 && g.Split[i] != graph.Test {
				g.Split[i] = graph.None
			}
		}
	})
	r, _, text := compared(t, all, 1)
	if s := r.Sites[1]; s.Alone != nil || s.Ahead != nil || s.Fault == "" || s.Together == nil {
		t.Errorf("site 1: %+v", s)
	}
	in, err := all.run(0)
	if err != nil {
		t.Fatal(err)
	}
	o, err := heddle.Local{Plan: in.plan, Shards: in.shards}.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	right, nodes := 0.0, 0.0
	for _, k := range []int{0, 2} {
		x, n, err := o.Own[k].Score("accuracy", in.shards[k].Alone())
		if err != nil {
			t.Fatal(err)
		}
		right, nodes = right+x*float64(n), nodes+float64(n)
	}
	if want := right/nodes - r.Ways[0].Test.Mean; math.Abs(r.Joining.Mean-want) > 1e-12 {
		t.Errorf("over the sites that can train alone, joining must gain %v (got %v)", want, r.Joining.Mean)
	}
	if !strings.Contains(text, "site-1 could not train alone") || !strings.Contains(text, "One run;") {
		t.Errorf("the output does not say what is left out:\n%s", text)
	}
}

// A partition's pooled data are its parts together, whatever the order of their nodes.
func TestPartition(t *testing.T) {
	in, err := func() (input, error) { all, _ := sites(nil); return all.run(0) }()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if _, err := shard.WriteDir(dir, in.shards, shard.Meta{Sites: []string{"north", "south", "west"}}); err != nil {
		t.Fatal(err)
	}
	all, err := open(graphs.Source{Shards: dir}, in.plan, func(heddle.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	r, _, _ := compared(t, all, 1)
	if r.Sites[2].Site != "west" {
		t.Errorf("sites: %+v", r.Sites[2])
	}
	direct, _, _ := compared(t, func() *data { all, _ := sites(nil); return all }(), 1)
	for k, w := range r.Ways {
		if math.Abs(w.Test.Mean-direct.Ways[k].Test.Mean) > 0.005 {
			t.Errorf("%s: %v from the partition, %v from the graph", w.Way, w.Test.Mean, direct.Ways[k].Test.Mean)
		}
	}
}

func TestInterrupted(t *testing.T) {
	all, _ := sites(nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c := comparing{RunFile: graphs.RunFile{Seeds: 2, Out: t.TempDir()}}
	err := c.compare(ctx, all, cli.NewWatch(io.Discard, true), io.Discard, "heddle compare")
	if err == nil || !strings.Contains(err.Error(), "nothing is written") {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := os.ReadDir(c.Out); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Intervals: Student's t over runs, the standard error of the test nodes, and both.
func TestGain(t *testing.T) {
	runs := []difference{{value: 0.01, error: 0.003}, {value: 0.02, error: 0.003}, {value: 0.03, error: 0.003}}
	half := 4.302653 * 0.01 / math.Sqrt(3)
	for name, c := range map[string]struct {
		all  []difference
		same bool
		mean float64
		half float64
	}{
		"runs":           {runs, false, 0.02, half},
		"same nodes":     {runs, true, 0.02, math.Hypot(half, 1.96*0.003)},
		"one run":        {runs[:1], false, 0.01, 1.96 * 0.003},
		"runs are alike": {[]difference{{0.02, 0.004}, {0.02, 0.004}}, true, 0.02, 1.96 * 0.004},
	} {
		g := gainOf(c.all, c.same)
		if math.Abs(g.Mean-c.mean) > 1e-9 || math.Abs(g.High-g.Mean-c.half) > 1e-6 ||
			math.Abs(g.Mean-g.Low-c.half) > 1e-6 {
			t.Errorf("%s: the gain must be %v ± %v (got %+v)", name, c.mean, c.half, g)
		}
	}
	for text, g := range map[string]gain{
		"Joining helped: +3.1 points (95 % interval 2.0 to 4.2) over each site alone.":         {0.031, 0.02, 0.042},
		"Joining did not help: -1.2 points (95 % interval -2.0 to -0.4) over each site alone.": {-0.012, -0.02, -0.004},
		"Whether joining helps is open: +0.3 points (95 % interval -0.5 to 1.1) over each site alone; " +
			"more --seeds may narrow the interval.": {0.003, -0.005, 0.011},
	} {
		if got := sentenceOf(g, "", "each site alone", true); got != text {
			t.Errorf("the sentence must be %q (got %q)", text, got)
		}
	}
}

// A difference that rounds to nothing has no sign.
func TestPoints(t *testing.T) {
	if got := (&gain{-0.0004, -0.006, 0.0004}).String(); got != "0.0 (-0.6 to 0.0)" {
		t.Errorf("%q", got)
	}
}

// The bootstrap's standard error of a difference in accuracy is the known one: of the mean of +1, 0
// and −1 over nodes.
func TestBootstrap(t *testing.T) {
	const n = 400
	a, b := part{Scores: mat.New(n, 2), Labels: graph.Labels{Classes: 2, Class: make([]int32, n)}},
		part{Scores: mat.New(n, 2)}
	b.Labels = a.Labels
	sum, squares := 0.0, 0.0
	for i := range n {
		a.Rows, b.Rows = append(a.Rows, int32(i)), append(b.Rows, int32(i))
		x, y := i%5 != 0, i%3 != 0 // right, wrong
		for p, right := range map[*part]bool{&a: x, &b: y} {
			if !right {
				p.Scores.Row(i)[1] = 1
			}
		}
		d := 0.0
		if x && !y {
			d = 1
		} else if y && !x {
			d = -1
		}
		sum, squares = sum+d, squares+d*d
	}
	mean := sum / n
	want := math.Sqrt((squares/n - mean*mean) / n)
	d := differenceOf("accuracy", []part{a}, []part{b}, rng.New(1))
	if math.Abs(d.value-mean) > 1e-9 || d.error < 0.75*want || d.error > 1.25*want {
		t.Errorf("the difference must be %v ± %v (got %+v)", mean, want, d)
	}
}

// made is a table of positive columns, the more unequal the larger tails, with a label by rule. Half of the nodes
// train, a quarter validates.
func made(n, columns int, tails float64, label func(row []float32) int32) *graph.Graph {
	g := &graph.Graph{Name: "table", X: graph.Features{Dense: mat.New(n, columns)},
		Labels: graph.Labels{Classes: 2, Class: make([]int32, n)}, Split: make([]graph.Split, n),
		Adj: graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}}
	for i := range n {
		row := g.X.Dense.Row(i)
		for j := range row {
			row[j] = float32(math.Exp(tails * rng.New(uint64(j)).Normal(uint64(i))))
		}
		g.Labels.Class[i] = label(row)
		g.Split[i] = [...]graph.Split{graph.Train, graph.Val, graph.Train, graph.Test}[i%4]
	}
	return g
}

// The model of features only is linear if that suffices, and finds what no linear model of amounts finds.
func TestOnFeatures(t *testing.T) {
	for _, c := range []struct {
		name   string
		tails  float64
		label  func(row []float32) int32
		layers int
		least  float64
	}{
		{"interaction", 2, func(row []float32) int32 {
			if (row[0] > 1) != (row[1] > 1) {
				return 1
			}
			return 0
		}, 2, 0.93},
		{"sum", 0.3, func(row []float32) int32 {
			if row[0]-row[1] > 0 {
				return 1
			}
			return 0
		}, 1, 0.93},
	} {
		g := made(1200, 3, c.tails, c.label)
		p := heddle.Defaults("", "")
		p.Transport = "memory"
		best, _, err := onFeatures(t.Context(), p, g, []*shard.Shard{shard.Whole(g.Numbered())}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if layers := best.Runs[0].Plan.Gradient().Layers; best.Test < c.least || (layers > 1) != (c.layers > 1) {
			t.Errorf("%s: accuracy must be at least %v with %d layers (got %v with %d)", c.name, c.least, c.layers,
				best.Test, layers)
		}
	}
}

// Columns are scaled by training nodes, ranks are the same for a column and its logarithm, and test nodes change
// nothing.
func TestStandardized(t *testing.T) {
	g := made(400, 2, 2, func([]float32) int32 { return 0 })
	one := standardized(g, true).X.Dense
	sum, squares, n := 0.0, 0.0, 0.0
	for i, s := range g.Split {
		if v := float64(one.At(i, 0)); s == graph.Train {
			sum, squares, n = sum+v, squares+v*v, n+1
		}
		row := g.X.Dense.Row(i)
		if row[1] = float32(math.Log(float64(row[1]))); s == graph.Test {
			row[0] *= 1000
		}
	}
	if math.Abs(sum/n) > 1e-5 || math.Abs(squares/(n-1)-1) > 1e-4 {
		t.Errorf("over training nodes the mean must be 0 and the variance 1 (got %v, %v)", sum/n, squares/n)
	}
	other := standardized(g, true).X.Dense
	for i, s := range g.Split {
		for j := range one.Cols {
			if log := j == one.Cols/2; !log && s != graph.Test && one.At(i, j) != other.At(i, j) {
				t.Fatalf("node %d: column %d must not move with test nodes or a logarithm (%v, %v)", i, j, one.At(i, j),
					other.At(i, j))
			}
		}
	}
}
