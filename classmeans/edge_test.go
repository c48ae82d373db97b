package classmeans

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/train"
)

// TestSmallClasses: a class of too few nodes sends no mean and is learned of all the same; where most
// are so small the run says what to do.
func TestSmallClasses(t *testing.T) {
	g := communities(300, 12)
	left := 0
	for i, k := range g.Labels.Class {
		if k == 2 && g.Split[i] == graph.Train {
			if left++; left > 4 {
				g.Split[i] = graph.Test
			}
		}
	}
	warned := ""
	r := mustRun(t, plain(g), cut(t, g, 2), options{setup: func(rank int, tr *Trainer) {
		tr.OnEvent = func(e train.Event) {
			if rank == 0 && e.Kind == train.Warning {
				warned = e.Text
			}
		}
	}})
	if !strings.HasPrefix(warned, "1 of 3 classes have fewer than 5 training nodes") {
		t.Errorf("warning %q", warned)
	}
	if v := r.trainers[0].Result().Final().Test; v < 0.8 {
		t.Errorf("test accuracy %.3f", v)
	}
	if u := r.trainers[0].model.Closed.Means[0].Value; u.At(0, 2) != 0 || u.At(0, 1) == 0 {
		t.Errorf("the small class has a mean of its own: %v", u.Row(0))
	}
	c := plain(g)
	c.MinClass = 100
	r = start(context.Background(), c, cut(t, g, 2), options{})
	if err := errors.Join(r.errs...); err == nil ||
		!strings.Contains(err.Error(), "lower min_class in the plan and in") {
		t.Errorf("classes of too few nodes: %v", err)
	}
}

// TestNothingToLearnOrValidate: no label is an error; without validation nodes a tenth of the training
// nodes validates, and a warning says so.
func TestNothingToLearnOrValidate(t *testing.T) {
	g := communities(300, 6)
	for i, split := range g.Split {
		if split == graph.Val {
			g.Split[i] = graph.Test
		}
	}
	warned := ""
	r := mustRun(t, plain(g), cut(t, g, 2), options{setup: func(rank int, tr *Trainer) {
		tr.OnEvent = func(e train.Event) {
			if rank == 0 && e.Kind == train.Warning {
				warned = e.Text
			}
		}
	}})
	if v := r.trainers[0].Result().Final(); v.Val != v.Val || v.Test < 0.8 ||
		!strings.Contains(warned, "no peer has a validation node") {
		t.Errorf("validation %g, test %g, warning %q", v.Val, v.Test, warned)
	}
	for i := range g.Split {
		g.Split[i] = graph.Test
	}
	r = start(context.Background(), plain(g), cut(t, g, 2), options{})
	if err := errors.Join(r.errs...); err == nil || !strings.Contains(err.Error(), "no peer has a training node") {
		t.Errorf("no training node: %v", err)
	}
}

// TestMissingLabels: training and validation nodes without a label count to nothing.
func TestMissingLabels(t *testing.T) {
	g := communities(300, 6)
	some := communities(300, 6)
	for i := range g.Labels.Class {
		if i/3%12 < 2 { // a half of the training and of the validation nodes
			some.Split[i], g.Labels.Class[i] = graph.Test, -1
		}
	}
	c := plain(g)
	c.Target = "labels"
	with, without := mustRun(t, c, cut(t, g, 2), options{}), mustRun(t, c, cut(t, some, 2), options{})
	if a, b := with.trainers[0].Result().Final(), without.trainers[0].Result().Final(); a.Val != b.Val {
		t.Errorf("validation %g, of nodes that have labels alone %g", a.Val, b.Val)
	}
}

// TestPeerFails: the others' errors name it, or one that failed since it did.
func TestPeerFails(t *testing.T) {
	g := communities(300, 12)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := start(ctx, plain(g), cut(t, g, 3), options{reducer: func(rank int, g *comm.Group) comm.Reducer {
		if rank == 2 {
			return failing{g}
		}
		return g
	}})
	for k, err := range r.errs[:2] {
		if at, ok := errors.AsType[*comm.PeerError](err); !ok || at.Rank == k {
			t.Errorf("peer %d: %v, want an error that names another peer", k, err)
		}
	}
}

// failing fails at the class means of the second round.
type failing struct{ comm.Reducer }

func (f failing) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind == "class means" && c.ID.Round == 1 {
		return comm.Reduced{}, errors.New("no power")
	}
	return f.Reducer.Reduce(ctx, c)
}

func TestConfigRefuses(t *testing.T) {
	g := communities(60, 6)
	for want, change := range map[string]func(*Config){
		`class_target must be one of ["auto" "labels" "residual"] (got "x")`: func(c *Config) { c.Target = "x" },
		"class_rounds must be 0 (auto) to 20 (got 21)":                       func(c *Config) { c.ClassRounds = 21 },
		"shrink must be above 0 (got 0)":                                     func(c *Config) { c.Shrink = 0 },
		"min_class must be at least 1 (got 0)":                               func(c *Config) { c.MinClass = 0 },
		"random_features must be at least -1 (got -2)":                       func(c *Config) { c.Random = -2 },
		`sums must be one of ["auto" "float32" "int16" "int8"] (got "int4")`: func(c *Config) { c.Sums = "int4" },
		"lambdas must be ascending, at least one (got [])":                   func(c *Config) { c.Lambdas = nil },
		"closed.hops must be 0 to 1000 (got -1)":                             func(c *Config) { c.Hops = -1 },
	} {
		c := plain(g)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := plain(g)
	c.Features++
	if _, err := New(c, shard.Whole(g)); err == nil || !strings.Contains(err.Error(), "must have 11 features") {
		t.Errorf("another width: %v", err)
	}
}
