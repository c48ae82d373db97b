package disclosure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// parts returns a graph in three parts.
func parts(t *testing.T) []*shard.Shard {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 90, Train: 0.1, Val: 0.1},
		rng.New(2))
	policy, err := partition.ParsePolicy("by-column")
	if err != nil {
		t.Fatal(err)
	}
	all, err := partition.Partition(g, policy, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, text string) plan.Plan {
	t.Helper()
	given := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		given[name] = strings.Trim(value, "[]")
	}
	p, err := plan.Read(nil, given, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Members = make([]plan.Member, 3)
	return *p
}

func of(t *testing.T, text string, own *shard.Shard) *Disclosure {
	t.Helper()
	d, err := Of(read(t, text), own)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestStored: the values that a row stores count, whatever the number of columns, and only nodes that others read.
func TestStored(t *testing.T) {
	own := parts(t)[1]
	d := of(t, "", own)
	read, values := map[int32]bool{}, []int(nil)
	for _, nodes := range own.Boundary {
		for _, i := range nodes {
			if !read[i] {
				_, val := own.X.Sparse.Row(int(i))
				values = append(values, len(val))
			}
			read[i] = true
		}
	}
	slices.Sort(values)
	if d.Nodes != len(read) || d.Nodes == own.Owned || !slices.Equal(d.Stored, values) ||
		d.Median() != values[len(values)/2] {
		t.Errorf("%d nodes of %d values; must be %d of %d", d.Nodes, d.Stored, len(read), values)
	}
	dense := *own
	dense.X = graph.Features{Dense: own.X.Sparse.Dense()}
	if got := of(t, "", &dense); !slices.Equal(got.Stored, values) {
		t.Errorf("dense rows store %d values, must be %d", got.Stored, values)
	}
	wide := *own
	wide.X = graph.Features{Dense: mat.New(own.Owned, 400)}
	for i := range own.Owned {
		copy(wide.X.Dense.Row(i), dense.X.Dense.Row(i))
	}
	if got := of(t, "", &wide); got.PerStored(9) != d.PerStored(9) {
		t.Errorf("columns without a value change the judgement: %v, must be %v", got.PerStored(9), d.PerStored(9))
	}
	alone := shard.Whole(dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 90, Train: 0.1,
		Val: 0.1}, rng.New(2)))
	if got := of(t, "", alone); got.Nodes != 0 || got.PerStored(9) != 0 || got.Bytes != 0 {
		t.Errorf("a site that nobody reads from discloses %+v", got)
	}
}

// TestJudge: numbers are judged by stored values.
func TestJudge(t *testing.T) {
	own := parts(t)[0]
	policy := admission.Policy{Encoders: []string{"raw", "mlp", "pca", "classes"}, LayerOutputs: []string{"hidden"},
		Methods: []string{"class-means", "layer-wise"}, MinMembers: 2}
	one := of(t, "method: layer-wise\nencoder: pca:16\nlayers: 1", own)
	share := one.PerStored(16)
	policy.MaxNumbers = share
	if err := one.Judge(policy); err != nil {
		t.Errorf("16 numbers for each of %d values: %v", one.Median(), err)
	}
	policy.MaxNumbers = share * 0.99
	one = of(t, "method: layer-wise\nencoder: pca:16\nlayers: 1", own)
	if err := one.Judge(policy); err == nil || !strings.HasPrefix(err.Error(), "policy.max_numbers: ") {
		t.Errorf("one number too many: %v", err)
	}
	if len(one.Sends) == 0 || one.Fresh != 16 {
		t.Error("a refused plan must still be shown")
	}
}

// TestLinesByKind: rows come before sums.
func TestLinesByKind(t *testing.T) {
	kinds := []train.Content{}
	for _, l := range of(t, "method: class-means", parts(t)[2]).Sends {
		if !slices.Contains(kinds, l.Kind) {
			kinds = append(kinds, l.Kind)
		} else if kinds[len(kinds)-1] != l.Kind {
			t.Fatalf("%s lies among %s", l.What, kinds[len(kinds)-1])
		}
	}
}

// TestSome: in a larger site the given number of nodes is attacked, first nodes that others read and nodes that train,
// with the edges among them.
func TestSome(t *testing.T) {
	own := parts(t)[1]
	if all, err := some(own, own.Owned); err != nil || all != own {
		t.Errorf("a small site must stay as it is: %v", err)
	}
	first := map[int32]bool{}
	for _, list := range own.Boundary {
		for _, i := range list {
			first[i] = true
		}
	}
	for _, i := range own.NodesIn(graph.Train) {
		first[i] = true
	}
	most := len(first) + 3
	less, err := some(own, most)
	if err != nil || less.Owned != most || less.Valid() != nil {
		t.Fatalf("%d nodes must be left: %v", most, err)
	}
	if got, want := len(less.NodesIn(graph.Train)), len(own.NodesIn(graph.Train)); got != want {
		t.Errorf("all %d training nodes must be left (got %d)", want, got)
	}
	if less.X.Rows() != most || len(less.Adj.Col) == 0 {
		t.Errorf("%d rows and some edges must be left (got %d rows, %d edges)", most, less.X.Rows(), len(less.Adj.Col))
	}
}

// TestAttackOfFewColumns: rows of few numeric columns have at most half as many numbers, and the page has what these
// reveal.
func TestAttackOfFewColumns(t *testing.T) {
	own := *parts(t)[1]
	own.X = graph.Features{Dense: mat.New(own.Owned, 6)}
	for i := range own.X.Dense.Data {
		own.X.Dense.Data[i] = float32(rng.New(1).Normal(uint64(i)))
	}
	d := of(t, "method: class-means", &own)
	text, err := d.Attack(t.Context(), &own, time.Second)
	if err != nil || d.Fresh < 1 || d.Fresh > 3 ||
		!strings.HasPrefix(text, fmt.Sprintf("%.0f numbers of each node are mixes of its 6 columns", d.Fresh)) {
		t.Errorf("%g numbers of 6 columns are sent, must be 1 to 3: %q, %v", d.Fresh, text, err)
	}
	d = of(t, "method: class-means\nhops: 0", &own)
	if text, err := d.Attack(t.Context(), &own, time.Second); err != nil || text != "only sums leave" {
		t.Errorf("without hops: %q, %v", text, err)
	}
}
