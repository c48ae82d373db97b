package shard_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
)

// connected calls Connect at each member for its graph and edges, and returns the shards and errors.
func connected(t *testing.T, names []string, graphs []*graph.Graph,
	outside [][]shard.Outside) ([]*shard.Shard, []error) {
	t.Helper()
	all, errs := make([]*shard.Shard, len(names)), make([]error, len(names))
	net := netsim.New(len(names), netsim.Config{})
	var wait sync.WaitGroup
	for r := range names {
		wait.Go(func() {
			g := comm.NewGroup(net.Transport(r), r, len(names))
			defer g.Close()
			swap := func(what string, out [][]byte, limit int) ([][]byte, error) {
				return g.SendRecv(t.Context(), comm.Halo, what, out, limit)
			}
			s := shard.Whole(graphs[r])
			s.Rank, s.Parts = r, len(names)
			first, err := shard.Number(s, names, func(b []byte) ([][]byte, error) {
				out := make([][]byte, len(names))
				for q := range out {
					out[q] = b
				}
				in, err := swap("nodes", out, 1<<20)
				if err == nil {
					in[r] = b
				}
				return in, err
			})
			if err == nil {
				err = shard.Connect(s, first, names, outside[r], swap)
			}
			if err == nil {
				err = g.Barrier(t.Context())
			}
			all[r], errs[r] = s, err
		})
	}
	wait.Wait()
	return all, errs
}

// TestConnect: graphs of single sites and their lists of edges become the parts that the whole graph has.
func TestConnect(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 60}, rng.New(7))
	g.IDs = nil
	for i := range g.N() {
		g.IDs = append(g.IDs, fmt.Sprint("node ", i))
	}
	parts, err := partition.Partition(g, partition.ByColumn{}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var graphs []*graph.Graph
	outside := make([][]shard.Outside, len(parts))
	cross := 0
	for r, p := range parts {
		names, graphs = append(names, fmt.Sprint("site ", r)), append(graphs, p.Alone())
		for i := range p.Owned {
			col, _ := p.Adj.Row(i)
			for _, j := range col {
				for q := range parts {
					// Each edge is listed by both sites (0), by the first (1) or by the second (2).
					by := (p.Global[i] + p.Global[j]) % 3
					if int(j) >= p.HaloPtr[q] && int(j) < p.HaloPtr[q+1] && (by == 0 || (by == 1) == (r < q)) {
						outside[r] = append(outside[r], shard.Outside{Node: int32(i), Site: fmt.Sprint("site ", q),
							Other: g.IDs[p.Global[j]]})
					}
				}
				if int(j) >= p.Owned {
					cross++
				}
			}
		}
	}
	got, errs := connected(t, names, graphs, outside)
	if err := errors.Join(errs...); err != nil || cross == 0 {
		t.Fatalf("%d edges between sites: %v", cross, err)
	}
	id := map[int64]string{} // of the new numbers
	for r, s := range got {
		for i := range s.Owned {
			id[s.Global[i]] = parts[r].IDs[i]
		}
	}
	found := 0
	for r, s := range got {
		if err := s.Valid(); err != nil {
			t.Fatal(err)
		}
		for i := range s.Owned {
			had := map[string]bool{}
			col, _ := parts[r].Adj.Row(i)
			for _, j := range col {
				had[g.IDs[parts[r].Global[j]]] = true
			}
			col, _ = s.Adj.Row(i)
			for _, j := range col {
				if !had[id[s.Global[j]]] {
					t.Fatalf("site %d: node %d has a neighbor %s that it must not have", r, i, id[s.Global[j]])
				}
				if int(j) >= s.Owned {
					found++
				}
			}
		}
		for q, of := range s.Boundary { // what one sends is what the other has
			there := got[q].Global[got[q].HaloPtr[r]:got[q].HaloPtr[r+1]]
			here := []int64(nil)
			for _, i := range of {
				here = append(here, s.Global[i])
			}
			if !slices.Equal(here, there) {
				t.Errorf("sites %d and %d: %v is not %v", r, q, here, there)
			}
		}
	}
	if found != cross {
		t.Errorf("%d edges between sites, want %d", found, cross)
	}
}

// TestConnectRefuses: a name that does not exist, guesses, and lists that are wrong end it at all members.
func TestConnectRefuses(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 100, Sites: 2, Classes: 2, Columns: 60}, rng.New(7))
	parts, err := partition.Partition(g.Numbered(), partition.ByColumn{}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	graphs := []*graph.Graph{parts[0].Alone(), parts[1].Alone()}
	var guesses []shard.Outside
	for k := range 11 {
		guesses = append(guesses, shard.Outside{Site: "b", Other: fmt.Sprint("guess ", k)})
	}
	for want, list := range map[string][]shard.Outside{
		`b has no node "nobody"`: {{Node: 0, Site: "b", Other: "nobody"}},
		`one of ["a" "b"]`:       {{Node: 0, Site: "c", Other: "x"}},
		"in [0, ":                {{Node: 1000, Site: "b", Other: "x"}},
		"":                       guesses,
	} {
		_, errs := connected(t, []string{"a", "b"}, graphs, [][]shard.Outside{list, {}})
		var at *comm.PeerError
		if errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%v, want %s", errs[0], want)
		}
		if want == "" {
			if !strings.Contains(errs[1].Error(), "guesses names") || !errors.As(errs[0], &at) {
				t.Errorf("%v and %v, want that the second refuses guesses", errs[0], errs[1])
			}
		} else if !errors.As(errs[1], &at) || at.Name != "a" {
			t.Errorf("%v, want that the other names it", errs[1])
		}
	}
}
