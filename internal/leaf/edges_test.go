package leaf_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/mat"
)

// rowsOf returns the rows of a member's boundary, a number for each node and column.
func rowsOf(rank, n int) mat.Dense {
	x := mat.New(n, 3)
	for i := range x.Data {
		x.Data[i] = float32(100*rank+i) / 7
	}
	return x
}

// Each member gets only the sums of its neighbours' rows, less the rows of a leaf that was offline. A leaf sends and
// fetches the bytes of the formula.
func TestGather(t *testing.T) {
	const sites, members = 3, 7
	pairs := [][2]string{{"0 a", "3 a"}, {"0 a", "4 b"}, {"1 b", "3 b"}, {"3 a", "4 a"}, {"4 a", "3 a"}, {"5 a", "6 b"},
		{"5 a", "0 b"}, {"0 b", "1 b"}, {"6 a", "4 b"}}
	edges, err := leaf.NewEdges(pairs)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := meetOver(t, sites, members-sites, members-sites, false, edges)
		const away = 5 // sends nothing, and fetches
		sums, boundaries := make([]mat.Dense, members), make([]shard.BorderNodes, members)
		var run sync.WaitGroup
		for m := range members {
			run.Go(func() {
				var of interface {
					Boundary() shard.BorderNodes
					Gather(context.Context, comm.ReduceID, mat.Dense) (mat.Dense, error)
				}
				if m < sites {
					of = f.collectors[m]
				} else {
					of = f.join(t, m-sites, func(u leaf.Uplink) leaf.Uplink {
						if m == away {
							return offline{u}
						}
						return u
					})
				}
				boundaries[m] = of.Boundary()
				var err error
				if sums[m], err = of.Gather(t.Context(), comm.ReduceID{Kind: "rows"},
					rowsOf(m, len(boundaries[m].Rows))); err != nil {
					t.Errorf("member %d: %v", m, err)
				}
			})
		}
		run.Wait()
		f.end()
		rows, want := map[string][]float32{}, map[string][]float64{}
		for m, b := range boundaries {
			x := rowsOf(m, len(b.Rows))
			for k, i := range b.Rows {
				if rows[nodesOf(m)[i]] = x.Row(k); m == away {
					rows[nodesOf(m)[i]] = make([]float32, x.Cols)
				}
				want[nodesOf(m)[i]] = make([]float64, x.Cols)
			}
		}
		for k, pair := range pairs {
			if k == 4 { // the one before once more
				continue
			}
			for j := range 3 {
				want[pair[0]][j] += float64(rows[pair[1]][j])
				want[pair[1]][j] += float64(rows[pair[0]][j])
			}
		}
		for m, b := range boundaries {
			for k, i := range b.Rows {
				for j, v := range sums[m].Row(k) {
					if math.Abs(float64(v)-want[nodesOf(m)[i]][j]) > 1e-5 {
						t.Errorf("the sum of node %s has %g in column %d, must have %g", nodesOf(m)[i], v, j,
							want[nodesOf(m)[i]][j])
					}
				}
			}
		}
	})
	if a := (leaf.Agreement{Sites: 3}); a.GatheredBytes(6) != 3*(16+48) {
		t.Errorf("a leaf fetches %d bytes, must fetch %d", a.GatheredBytes(6), 3*(16+48))
	}
}

// offline is the uplink of a leaf whose shares never arrive.
type offline struct{ leaf.Uplink }

func (offline) Send(context.Context, int, []byte) error { return errors.New("offline") }

// Sites whose edges differ, or that have the same node, return errors; edges of a node to itself do not count.
func TestEdgesRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		other [][2]string
		ids   []string
		want  string
	}{
		"other edges": {[][2]string{{"a", "c"}}, nil, "the same edges"},
		"one node":    {[][2]string{{"a", "b"}}, []string{"a"}, `node "a" must be of one site`},
	} {
		t.Run(name, func(t *testing.T) {
			net := netsim.New(2, netsim.Config{})
			a := leaf.Agreement{Sites: 2, Least: 2, Most: 2, Edges: true}
			var all sync.WaitGroup
			for q, pairs := range [][][2]string{{{"a", "b"}}, test.other} {
				all.Go(func() {
					rules := open(2, 0)
					var err error
					if rules.Edges, err = leaf.NewEdges(pairs); err != nil {
						t.Error(err)
					}
					in, err := leaf.NewIntake(a, q, rules)
					if err != nil {
						t.Error(err)
					}
					g := comm.NewGroup(net.Transport(q), q, 2)
					s, err := leaf.NewCollector(a, g, g, in, in.Quorum(2, time.Second))
					if err != nil {
						t.Error(err)
					}
					ids := test.ids
					if q == 0 {
						ids = []string{"a"}
					}
					if err := s.Bind(t.Context(), ids); err == nil || !strings.Contains(err.Error(), test.want) {
						t.Errorf("site %d: the error is %v, must say %q", q, err, test.want)
					}
				})
			}
			all.Wait()
		})
	}
	if _, err := leaf.NewEdges([][2]string{{"a", "b"}, {"c", "c"}}); err == nil ||
		!strings.Contains(err.Error(), "edge 2") {
		t.Errorf("the error of an edge of a node to itself is %v, must name edge 2", err)
	}
	if _, err := leaf.NewIntake(leaf.Agreement{Sites: 2, Least: 2, Most: 2, Edges: true}, 0, open(2, 0)); err == nil {
		t.Error("an agreement with edges must need some")
	}
}
