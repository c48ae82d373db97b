package heddle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// islands returns graphs of several sites, without edges between them, and the graph of them all with its shards.
func islands(t *testing.T, sites int) (own []*graph.Graph, whole []*shard.Shard) {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300 * sites}, rng.New(1))
	owner := make([]int32, g.N()) // by blocks: JoinGraph numbers the nodes of the first member first
	for i := range owner {
		owner[i] = int32(i / 300)
	}
	var src, dst []int32
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if owner[i] == owner[j] {
				src, dst = append(src, j), append(dst, int32(i))
			}
		}
	}
	adj, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g.Adj, g.Typed, g.Site, g.Sites, g.IDs, g.Encoding = adj, graph.Relations{}, nil, nil, nil, nil
	if whole, err = shard.Cut(g, owner, sites); err != nil {
		t.Fatal(err)
	}
	for _, s := range whole {
		one := s.Alone()
		one.Name = g.Name
		own = append(own, one)
	}
	return own, whole
}

// TestJoinGraph: sites that hand over their graphs give the model of one process that has all parts, and a site with
// another number of features is named.
func TestJoinGraph(t *testing.T) {
	own, whole := islands(t, 3)
	p := read(t, "transport: memory")
	p.Peers = 3
	want, err := Local{Plan: p, Shards: whole}.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	results, errs := joinGraphs(t.Context(), newJoined(t, Local{Plan: p, Shards: whole}), own, t.TempDir())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, got := range results {
		if !slices.Equal(parametersOf(got), parametersOf(want)) || got.Test != want.Test {
			t.Errorf("site %d has another model: test %v, in one process %v", r, got.Test, want.Test)
		}
	}
	own[1].X = graph.OneHot(make([]int32, own[1].N()), 3)
	_, errs = joinGraphs(t.Context(), newJoined(t, Local{Plan: p, Shards: whole}), own, t.TempDir())
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "site-1") ||
		!strings.Contains(errs[0].Error(), "features") {
		t.Errorf("site 1 has 3 features: the error of site 0 must say so (got %v)", errs[0])
	}
}

// TestJoinGraphAfterAStop: a member that was stopped before it had written its part gathers again, and those that train
// already come back to it.
func TestJoinGraphAfterAStop(t *testing.T) {
	t.Parallel()
	own, whole := islands(t, 3)
	p := read(t, "transport: memory")
	p.Peers = 3
	j, dir := newJoined(t, Local{Plan: p, Shards: whole}), t.TempDir()
	want, errs := joinGraphs(t.Context(), j, own, dir)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r := range own {
		lost := "state"
		if r == 1 {
			lost = ""
		}
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprint(r), lost)); err != nil {
			t.Fatal(err)
		}
	}
	got, errs := joinGraphs(t.Context(), j, own, dir)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r := range got {
		if !slices.Equal(parametersOf(got[r]), parametersOf(want[r])) {
			t.Errorf("site %d has another model after the stop", r)
		}
	}
}

// joinGraphs runs all sites, each with its directory in dir.
func joinGraphs(ctx context.Context, j *joined, own []*graph.Graph, dir string, outside ...[]shard.Outside) ([]*Result,
	[]error) {
	results, errs := make([]*Result, len(own)), make([]error, len(own))
	var wait sync.WaitGroup
	for r, s := range j.sites {
		s.Shard, s.State = nil, ""
		var edges []shard.Outside
		if outside != nil {
			edges = outside[r]
		}
		wait.Go(func() {
			results[r], errs[r] = JoinGraph(ctx, j.plan, s, own[r], filepath.Join(dir, fmt.Sprint(r)), edges...)
		})
	}
	wait.Wait()
	return results, errs
}

// TestJoinGraphWithEdges: graphs and lists of edges to other sites give the model of the parts of the whole graph. A
// site that lists no edge where the others may is refused by name.
func TestJoinGraphWithEdges(t *testing.T) {
	before := runtime.NumGoroutine()
	const sites, each = 3, 300
	g := dataset.Sites(dataset.SitesConfig{Nodes: sites * each}, rng.New(1))
	g.Typed, g.Site, g.Sites, g.IDs, g.Encoding = graph.Relations{}, nil, nil, make([]string, g.N()), nil
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i], g.IDs[i] = int32(i/each), fmt.Sprint("node ", i)
	}
	whole, err := shard.Cut(g, owner, sites)
	if err != nil {
		t.Fatal(err)
	}
	var own []*graph.Graph
	outside := make([][]shard.Outside, sites)
	for r, s := range whole {
		own = append(own, s.Alone())
		own[r].Name = g.Name
		for i := range s.Owned {
			col, _ := s.Adj.Row(i)
			for _, j := range col {
				if of := s.Global[j]; int(j) >= s.Owned && (r < 2 || of < each) { // the second lists all with the third
					outside[r] = append(outside[r], shard.Outside{Node: int32(i), Site: fmt.Sprint("site-", of/each),
						Other: g.IDs[of]})
				}
			}
		}
	}
	p := read(t, "transport: memory")
	p.Peers = sites
	want, err := Local{Plan: p, Shards: whole}.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := newJoined(t, Local{Plan: p, Shards: whole})
	results, errs := joinGraphs(t.Context(), j, own, t.TempDir(), outside...)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, got := range results {
		if !slices.Equal(parametersOf(got), parametersOf(want)) || got.Test != want.Test {
			t.Errorf("site %d has another model: test %v, in one process %v", r, got.Test, want.Test)
		}
	}
	outside[2] = nil
	_, errs = joinGraphs(t.Context(), newJoined(t, Local{Plan: p, Shards: whole}), own, t.TempDir(), outside...)
	for r, err := range errs {
		if at, ok := errors.AsType[*PeerError](err); !ok || at.Name == "" {
			t.Errorf("site %d: the error must name a peer with another plan (got %v)", r, err)
		}
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// TestSplitAndJoin: one plan splits a graph and lets the sites join with the parts. Its members set the number of
// parts. The error names a site that does not come.
func TestSplitAndJoin(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 1200}, rng.New(1))
	p := read(t, "policy: random\ntransport: memory\nlink: latency=1ms")
	p.Peers = 2
	shards, err := Split(g, p)
	if err != nil {
		t.Fatal(err)
	}
	j := newJoined(t, Local{Plan: p, Shards: shards})
	j.plan.Peers, j.plan.Policy, j.plan.Transport, j.plan.Link = p.Peers, p.Policy, p.Transport, p.Link
	if _, errs := j.join(t.Context()); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	j.plan.Peers = plan.AutoPeers
	if parts, err := Split(g, j.plan); err != nil || len(parts) != 2 {
		t.Errorf("each member must have one part (got %d parts, error %v)", len(parts), err)
	}
	s := j.sites[0]
	s.Wait, s.State = 200*time.Millisecond, ""
	_, err = Join(t.Context(), j.plan, s)
	if late, ok := errors.AsType[*WaitError](err); !ok || !slices.Equal(late.Missing, []string{"site-1"}) {
		t.Errorf("the error must name site-1 as missing (got %v)", err)
	}
}
