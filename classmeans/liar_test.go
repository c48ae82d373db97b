package classmeans

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

// liar changes what one peer gives to reductions.
type liar struct {
	comm.Reducer
	lie func(c *comm.Contribution)
}

func (l liar) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	l.lie(c)
	return l.Reducer.Reduce(ctx, c)
}

// in returns a lie about the reductions of one kind and round.
func in(kind string, round int, lie func(c *comm.Contribution)) func(c *comm.Contribution) {
	return func(c *comm.Contribution) {
		if c.ID.Kind == kind && c.ID.Round == round {
			lie(c)
		}
	}
}

func scaled(by float32) func(c *comm.Contribution) {
	return func(c *comm.Contribution) {
		for i := range c.Update {
			c.Update[i] *= by
		}
	}
}

// lies that no data explain, each of which was believed once, and what the others say of it.
var lies = map[string]struct {
	variant string
	lie     func(c *comm.Contribution)
	want    string
	named   bool // by who sums; else only the sum is known to be false
}{
	"negative label counts": {"labels", in("label counts", 0, func(c *comm.Contribution) { c.Counts[0] = -40 }),
		"a label count must be at most 225 (got 65496)", true},
	"labels of no node": {"labels", in("label counts", 0, func(c *comm.Contribution) { c.Counts[0]++ }),
		"of all classes at the other peers must be their", false},
	"many nodes": {"labels", in("column statistics", 0, func(c *comm.Contribution) { c.Counts[0] = 1e6 }),
		"the number of nodes must be at most", true},
	"many with edges": {"coarse", in("column statistics", 0, func(c *comm.Contribution) { c.Counts[1] = 1e6 }),
		"the number of peers with edges to others must be at most 3", true},
	"fewer with edges": {"coarse", in("column statistics", 0, func(c *comm.Contribution) { c.Counts[1] = -3 }),
		"the number of peers with edges to others must be at least 0 (got -3)", true},
	"long rows": {"labels", in("column statistics", 0, scaled(1e6)), "a column must be at most", true},
	"negative squares": {"labels", in("column statistics", 0, func(c *comm.Contribution) { c.Update[1] = -1 }),
		"the sum of squares of a column must be at least 0 (got -1)", true},
	"squares of no rows": {"labels", in("column statistics", 0, func(c *comm.Contribution) { c.Update[1] = 1e-3 }),
		"of column 0 at the other peers must be between", false},
	"rows that are longer": {"labels", in("column statistics", 0, scaled(4)), "at the other peers must", false},
	"NaN in the means": {"labels", in("class means", 0,
		func(c *comm.Contribution) { c.Update[4] = float32(math.NaN()) }), "update[4] must be finite (got NaN)", true},
	"huge means": {"labels", in("class means", 0, scaled(1e9)), "the sum of a feature over a class must be", true},
	"long means": {"labels", in("class means", 0, scaled(-4)), "must be", false},
	"nodes of a class": {"labels", in("class means", 0, func(c *comm.Contribution) { c.Counts[1] += unit }),
		"the training nodes of class 1 must be", false},
	"soft counts": {"labels", in("class means", 1, func(c *comm.Contribution) { c.Counts[1] *= 4 }), "must", false},
	"huge residual means": {"residual", in("class means", 1, scaled(-1e9)),
		"the sum of a feature over a class must be", true},
	"huge deviations": {"labels", in("deviations", 0, scaled(1e6)), "class's column must be", true},
	"deviations of nothing": {"labels", in("deviations", 0, func(c *comm.Contribution) { c.Update[0] *= 20 }),
		"of column 0 at the other peers must be between", false},
	"huge leads": {"labels", in("leads", 1, func(c *comm.Contribution) { c.Update[0] = 1e12 }),
		"the sum of the leads of a class must be", true},
	"many nodes that lead": {"labels", in("leads", 1, func(c *comm.Contribution) { c.Counts[0] = 1e6 }),
		"the number of nodes of a class must be at most", true},
	"huge diagonal": {"labels", in("normal equations", 0, diagonal(1e9)),
		"the Gram matrix's diagonal must be at most", true},
	"large diagonals": {"labels",
		in("normal equations", 0,
			func(c *comm.Contribution) { c.Update[2], c.Update[5], c.Update[9] = 6000, 6000, 6000 }),
		"the squares of the columns of round 1 at the other peers' training nodes must add up to at most", false},
	"negative diagonal": {"labels", in("normal equations", 0, diagonal(-1)),
		"the Gram matrix's diagonal must be at least 0", true},
	"nodes that weigh more": {"labels", in("normal equations", 0, scaled(2)),
		"the weights of all training nodes must add up to", false},
	"negative equations": {"labels", in("normal equations", 1, scaled(-1)),
		"the Gram matrix's diagonal must be at least 0", true},
	"no Gram matrix": {"labels", in("normal equations", 0, offDiagonal),
		"the Gram matrix of the other peers must be positive semidefinite", false},
	"labels turned around": {"labels", in("normal equations", 0, turned), "must explain at most", false},
	"random features":      {"residual", in("normal equations of random features", 0, scaled(1e3)), "must be", true},
	"negative right": {"labels", in("validation", 0, func(c *comm.Contribution) { c.Counts[2] = -1 }),
		"a count of validation nodes must be at most 19 (got 65535)", true},
	"more right than there": {"labels", in("validation", 0, func(c *comm.Contribution) { c.Counts[2] = 1e6 }),
		"a count of validation nodes must be at most", true},
	"validation nodes": {"labels", in("validation", 0, func(c *comm.Contribution) { c.Counts[len(c.Counts)-1]-- }),
		"the labelled validation nodes must be", false},
	"predicted classes": {"labels", in("predicted classes", 0, func(c *comm.Contribution) { c.Counts[0]++ }),
		"the labelled validation nodes of the other peers must be", false},
	"many predicted": {"labels",
		in("predicted classes", 0, func(c *comm.Contribution) { c.Counts[len(c.Counts)-1] = 1e4 }),
		"a count of nodes without a label must be at most", true},
	"right nodes": {"labels", in("moved logits", 0, func(c *comm.Contribution) { c.Counts[0]++ }), "must be", false},
	"many right": {"labels", in("moved logits", 0, func(c *comm.Contribution) { c.Counts[4] = 1e4 }),
		"a count of validation nodes must be at most", true},
	"moves of sites": {"labels", in("moves to the shares of sites", 0,
		func(c *comm.Contribution) { c.Counts[0] = 1e4 }), "a count of validation nodes must be at most", true},
	"test nodes": {"labels", in("finished model", 0, func(c *comm.Contribution) { c.Counts[len(c.Counts)-1]++ }),
		"the counts of the other peers", false},
	"several: bins": {"several classes", in("validation", 0,
		func(c *comm.Contribution) { c.Counts[len(c.Counts)-4] = -3 }), "must be at most 77 (got 65533)", true},
}

// diagonal makes the diagonal of the first Gram matrix so many times larger, but for the constant's.
func diagonal(by float32) func(c *comm.Contribution) {
	return func(c *comm.Contribution) {
		for i, at := 1, 2; i < 4; i, at = i+1, at+i+2 {
			c.Update[at] *= by
		}
	}
}

// offDiagonal makes a product of two columns larger than their lengths allow.
func offDiagonal(c *comm.Contribution) {
	c.Update[4] = 6 * float32(math.Sqrt(float64(c.Update[2]*c.Update[5])))
}

// turned makes the products with two classes so large that no labels have them, and leaves those of all classes.
func turned(c *comm.Contribution) {
	n := len(c.Update)
	off := 2 * float32(math.Sqrt(float64(c.Update[9]*c.Update[0])))
	c.Update[n-1] += off
	c.Update[n-2] -= off
}

// TestLiesEndTheRun: what one of four peers sends that no data explain ends the run of every other one within a second,
// and is not waited for. Where one peer sees what another sent, all name that one.
func TestLiesEndTheRun(t *testing.T) {
	for name, test := range lies {
		t.Run(name, func(t *testing.T) {
			g, c := variants[test.variant]()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := start(ctx, c, cut(t, g, 4), options{reducer: func(rank int, g *comm.Group) comm.Reducer {
				if rank == 2 {
					return liar{g, test.lie}
				}
				return g
			}})
			for k, err := range r.errs {
				if k == 2 {
					continue
				}
				at, named := errors.AsType[*comm.PeerError](err)
				if !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), test.want) ||
					test.named && (!named || at.Rank != 2) {
					t.Errorf("peer %d must refuse what peer 2 sent since %q (got %v)", k, test.want, err)
				}
			}
		})
	}
}

// TestNoFalseAlarm: runs over real graphs end well, whoever has which nodes: one of the peers may have all nodes of a
// class, or hardly any nodes at all. The long form tries every graph with every way.
func TestNoFalseAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	every := testenv.LongForm(t)
	for k, name := range []string{"cora", "amazon-photo", "chameleon-filtered", "tolokers"} {
		if name == "amazon-photo" && !every {
			continue // its features are words, as Cora's
		}
		g, err := dataset.Read(testenv.DataDir(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		owners := map[string]func(i int) int{
			"by class":  func(i int) int { return int(g.Labels.Class[i]+4) % 4 },
			"few nodes": func(i int) int { return max(0, 3-i) },
			"evenly":    func(i int) int { return i % 8 },
		}
		for h, how := range slices.Sorted(maps.Keys(owners)) {
			of := owners[how]
			owner, parts := make([]int32, g.N()), 1
			for i := range owner {
				owner[i] = int32(of(i))
				parts = max(parts, of(i)+1)
			}
			shards, err := shard.Cut(g, owner, parts)
			if err != nil {
				t.Fatal(err)
			}
			for i, target := range []string{"labels", "residual"} {
				for j, norm := range []string{"l2", "none"} {
					if (2*i+j+k+h)%4 != 0 && !every {
						continue
					}
					c := narrowed(g)
					c.Target, c.RowNorm, c.MinClass = target, norm, 1
					if target == "residual" {
						c.Random, c.ClassRounds = 32, 2
					}
					if how == "few nodes" {
						c.Metric, c.Balanced, c.Sums = "auc", true, "float32"
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					r := start(ctx, c, shards, options{})
					cancel()
					if err := errors.Join(r.errs...); errors.Is(err, comm.ErrRefused) {
						t.Errorf("%s, %s, %s, row_norm %s: %v", name, how, target, norm, err)
					} else if err != nil {
						t.Logf("%s, %s, %s, row_norm %s: %v", name, how, target, norm, err)
					}
				}
			}
		}
	}
}
